"""Comparisons in running text: which agents a sentence puts above, below, first or level, on which score, by how much.

Rules over words, without a model: they know the phrases in the tables below and no grammar. How often they are right is
measured on labelled sentences (``docs/validation.md``). Every pattern is bounded, so that reading takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal

from assaymark.claims.words import count_words
from assaymark.records import AGGREGATE

RelationKind = Literal["above", "first", "last", "rank", "level", "differ"]
Stance = Literal["asserted", "denied", "not shown"]

LONGEST: Final = 2000
"""Characters of a sentence up to which it is read."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One comparison: ``left`` above, level with or apart from ``right``; first, last or at ``rank`` of all agents."""

    kind: RelationKind
    left: tuple[str, ...]
    right: tuple[str, ...] = ()
    stance: Stance = "asserted"
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What a sentence says of the agents of a run.

    ``gap`` is a difference in points, ``p`` the largest p-value that it states. ``outcome``, ``foreign``, ``share``,
    ``others``, ``sweeping`` and ``unclear`` hold the words that no score of a run can decide.
    """

    relations: tuple[Relation, ...]
    scores: tuple[str, ...] = (AGGREGATE,)
    gap: float | None = None
    p: float | None = None
    significant: bool = False
    outcome: str = ""
    foreign: str = ""
    share: str = ""
    others: str = ""
    sweeping: str = ""
    unclear: str = ""


# --- the words --------------------------------------------------------------------------------------------------------

_G: Final = "[\ue000-\uefff]"  # one or several agents that are named together
_ALL, _NONE = "\uf600", "\uf601"  # "all other agents" and "no other agent"
_D: Final = "[\uf700-\uf8fe]"  # a score
_EVERY_SCORE: Final = "\uf8ff"
_THING: Final = "(?:agents?|models?|systems?|bots?|baselines?|competitors?|contenders?|candidates?|entrants?|methods?)"
_COUNT: Final = "(?:two|three|four|five|six|seven|eight|nine|ten|\\d{1,3})"

_EVERYONE: Final = re.compile(
    rf"\b(?!each other)(?:(?:all|every|any|each|both)(?: of)?(?: the| its| our| these)?(?: (?:single|other|remaining|rival|competing))?"
    rf"(?: {_COUNT})?(?: other)? (?:others?|ones?|{_THING}|rivals?|peers?|of them)|(?:all|every|any) others?|them all|"
    rf"the (?:others|rest|field|pack|competition)(?: of the (?:field|pack|{_THING}))?|(?:its|our) (?:rivals|peers|competitors)|"
    rf"the other (?:{_COUNT}(?: {_THING})?|{_THING}s)|(?:every|any)(?:one|body|thing)(?: else)?)(?!\w)",
    re.I,
)
_NOBODY: Final = re.compile(
    rf"\b(?:no(?: other)? {_THING}|none of (?:the|its)(?: other)?(?: {_COUNT})? (?:others|{_THING}|rivals)|"
    r"nobody(?: else)?|no one(?: else)?|none)\b", re.I,
)  # fmt: skip

_UP: Final = (
    r"beat(?:s|ing)?(?! by)|out(?:perform|scor|rank|class|shin|pac|strip|play|smart)\w{0,3}(?! by)|outdo(?:es|ing)?|outdid|"
    r"surpass(?:es|ed|ing)?(?! by)|defeat(?:s|ed|ing)?(?! by)|dominat(?:es|ed|ing|e)|edg(?:es?|ed|ing)(?: out| past)?|"
    r"bested(?! by)|bests|trounc\w{1,3}|crush(?:es|ed)|smash(?:es|ed)|destroy(?:s|ed)|eclips(?:es|ed)|trumps|overt(?:akes|ook)|"
    r"(?:wins?|won|prevails?|prevailed|triumphs?|triumphed) (?:over|against)|ahead of|in front of|superior to|"
    r"improves? (?:on|upon|over)|a (?:step|cut|notch) (?:up from|above)|(?:prefer\w*|preferable) to|"
    r"(?:choose|pick|prefer\w*|favou?r\w*|recommend\w*|select|chose) (?=[^.]{1,40} (?:over|to)\b)|"
    r"(?:lead|edge|advantage|victory|win|superiority|margin|improvement|gain|success) (?:over|against)|more than a match for"
)
_WEAK_UP: Final = r"leads?|leading|led|tops|topped|exceed(?:s|ed|ing)?|above|over"
_DOWN: Final = (
    r"(?:is |are |was |were |been |being |gets? |got )?(?:\w+ly )?(?:beaten|out(?:performed|scored|ranked|classed|shone|paced)|"
    r"surpassed|defeated|bested|dominated|overtaken|eclipsed|topped|edged out) by|loses? (?:out )?(?:to|against)|"
    r"lost (?:out )?(?:to|against)|trail(?:s|ed|ing)?(?: behind)?|lag(?:s|ged|ging)?(?: behind)?|inferior to|falls? short of|"
    r"fell short of|underperform(?:s|ed|ing)?|(?:falls?|fell|comes? in|came in|finish(?:es|ed)|ranks?|ranked|is|was|are|"
    r"far|well|just|right) behind|no match for|a (?:step|notch) (?:down from|below)|"
    r"can ?not (?:keep up with|match|touch|compete with)|(?:comes?|came|gets?) (?:nowhere near|close to)"
)
_WEAK_DOWN: Final = r"below|beneath"
_TIE: Final = (
    r"t(?:ies|ied|ie)(?: with| for)?|on (?:a )?par(?: with)?|level with|(?:just |exactly )?as (?:good|strong|well) as|"
    r"comparable(?: to| with)?|equivalent(?: to)?|equally (?:well|good|strong)|(?:just )?the same as|equal(?: to)?|"
    r"neck and neck(?: with)?|rivals(?= )|(?:a )?(?:draw|tie|dead heat)(?: between| with)|similar(?:ly)?(?: to| results| scores| performance)?|"
    r"keeps? (?:up|pace) with|match(?:es|ed)?(?! by)|(?:no|little) (?:real )?difference between|do(?:es)? not differ|"
    r"within \d[\d.]* (?:points? )?of|score alike|nothing (?:between|separates)|≈|~"
)
_BETTER: Final = r"better|stronger|smarter|superior"
_WORSE: Final = r"worse|weaker|poorer"
_AMOUNT: Final = r"higher|greater|more|lower|less|fewer"
_OTHER_ER: Final = (
    r"(?:fast|slow|cheap|larg|small|long|short|new|old|saf|risk[iy]|bold|calm|strict|simpl|quick|light|heav[iy]|bus[iy]|"
    r"bigg|rich|pric[iy]|eas[iy]|hard|clear|word[iy]|ters|wors|tidi|nois[iy]|lean|tight)"
)
_LINK: Final = (
    r"\b(?:is|are|was|were|be|been|being|remains?|remained|becomes?|became|stays?|prov(?:es|ed)|turn(?:s|ed) out|"
    r"emerg(?:es|ed)|ranks?|ranked|rated|rank|comes?|came|finish(?:es|ed)?|plac(?:es|ed|e)|scor(?:es|ed|e)|performs?|performed|"
    r"did|do|does|work(?:s|ed)|looks?|stands?|stood|takes?|took|claims?|claimed|wins?|won|earn(?:s|ed)|gets?|got|has|have|had|"
    r"achiev(?:es|ed)|reach(?:es|ed)|sets?|deliver(?:s|ed)|show(?:s|ed)|post(?:s|ed)|handl(?:es|ed)|manag(?:es|ed)|treats?|"
    r"explain(?:s|ed)|reason(?:s|ed)|siz(?:es|ed)|uses?|used|as|with|crown(?:s|ed)|nam(?:es|ed)|sits?|sat|holds?|held|made|makes?|=)\b|="
)
_FIELD: Final = (
    r"the (?:field|pack|leaderboard|league|table|rankings?|board|benchmark|comparison|race|competition|contest|study|"
    r"evaluation|group|way|charts?|list|arena|pile)"
)
_END: Final = r"\s*(?:$|[.,;:!?)\"]|—|–)"
_AFTER_FIRST: Final = (
    rf"(?={_END}|\s+(?:overall|{_THING}|one|perform\w+|scor\w+|results?|rationales?|reasoning|of (?!all\b)|in|on|at|among|"
    rf"across|for|all|we|here|by (?!an?\b)|over|and|with|quality|average|mean|ratings?|grades?|marks?|when|so|from|this|"
    rf"trading|choice|option|points?|place|rank|position|spot|again|is|was|goes|went|belongs|according|amongst|between|"
    rf"out|to date|overall)\b|\s+(?:{_G}|{_D}))"
)
_FIRST: Final = (
    rf"(?:(?<!at )(?<!its )(?<!their )(?<!second[ -])(?<!next )best(?:-performing|-scoring)?|first(?! to\b)|top(?:-ranked|-scoring|-performing)?|strongest|"
    rf"leading|highest|smartest|winning){_AFTER_FIRST}|(?:number one|no\. ?1|#1|1st|leader|winner|winners|champion|"
    rf"state[- ]of[- ]the[- ]art|sota|unbeaten|unmatched|unrivalled|unrivaled|second to none|out front|in the lead|on top|"
    rf"the crown|the title|gold)\b|ahead(?={_END})|most (?:capable|successful|impressive)"
)
_FIRST_VERB: Final = (
    rf"\b(?:wins|won|win|leads|led|lead|tops|topped|top|dominates|dominated|triumphs|prevails)(?={_END}|\s+(?:{_FIELD}|overall|"
    rf"hands down|by|across|here|again|everywhere|every time|easily|clearly|convincingly|comfortably|(?:on|in|at) (?:the )?"
    rf"(?:{_D}|{_EVERY_SCORE})|(?:on|in) (?:our|this|the) (?:benchmark|study|test|tests|comparison|evaluation|leaderboard)|"
    rf"our (?:benchmark|leaderboard|comparison|evaluation|table|ranking)|this (?:benchmark|comparison|evaluation|ranking)|{_ALL})\b|\s+(?:{_ALL}))"
)
_LAST: Final = (
    rf"(?:(?<!its )(?<!their )worst|weakest|lowest|last|bottom){_AFTER_FIRST}|dead last|in last place|at the bottom|brings up the rear|"
    rf"(?:trails|lags behind|loses to|is behind|is worse than|scores below|ranks below) {_ALL}"
)
_RANKS: Final = {"second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5}
_RANK: Final = (
    rf"(?:second|third|fourth|fifth|2nd|3rd|4th|5th)(?:[- ](?:place|best|spot|position))?{_AFTER_FIRST}|runner-?up"
)
_SUPERLATIVE: Final = rf"(?:most|least) [a-z]{{3,20}}|{_OTHER_ER}est\b"

_CUES: Final[tuple[tuple[str, str], ...]] = (
    ("last", _LAST), ("first verb", _FIRST_VERB), ("rank", _RANK),
    ("tie", rf"(?:{_TIE})(?!\w)"), ("down", rf"(?:{_DOWN})\b"), ("up", rf"(?:{_UP})"),
    ("than", rf"(?:{_BETTER}|{_WORSE}|{_AMOUNT}|{_OTHER_ER}(?:e?r|ier)|more [a-z]{{3,20}}|less [a-z]{{3,20}})\b"),
    ("as", r"as [a-z]{3,20} as"), ("differ", r"(?:differ(?:s|ence|ences)?|gap)\b(?= (?:between|from|significantly|clearly))"),
    ("first", _FIRST), ("superlative", _SUPERLATIVE),
    ("weak up", rf"(?:{_WEAK_UP})\b"), ("weak down", rf"(?:{_WEAK_DOWN})\b"), ("up", "[>≥≫]"), ("down", "[<≤≪]"),
)  # fmt: skip
_CUE: Final = re.compile(
    "|".join(
        rf"(?P<c{at}>(?<![\w-])(?:{words}))" if words[0] != "[" else f"(?P<c{at}>{words})"
        for at, (_, words) in enumerate(_CUES)
    ),
    re.I,
)

_CLEAR: Final = (  # words that may stand between a comparison and the agent it compares with
    r"(?:(?:the|its|our|their|an?|even|both|either|also|all|of|that|those|agents?|models?|systems?|baselines?|reference|strong|"
    r"stronger|much|larger|bigger|smaller|previous|older|newer|popular|rivals?|competitors?|scores?|score|results?|rationales?|"
    r"texts?|reasoning|answers?|runner-up|opponents?|only|just|every|single|other|than|any|far|over|out|by|with|to|against|"
    r"does|did|do|is|was|are|what|for|between|\w{3,14}ly|[\"'(]|(?:by|of) [+−-]?\d[\d.,]*(?: ?%| points?)? ?(?:over)?)\s*){0,8}"
)
_OBJECT: Final = re.compile(rf"\s*{_CLEAR}({_G}|{_ALL}|{_NONE}|\b(?:it|them)\b)", re.I)
_AGAINST: Final = re.compile(
    rf"\b(?:compared (?:with|to)|relative to|versus|vs\.?|against|unlike|than|over|between|of)\s+{_CLEAR}({_G}|{_ALL})",
    re.I,
)
_SELF: Final = re.compile(
    r"\s*[^.]{0,40}?\bthan (?:last|expected|before|ever|its?\b|usual|itself|we\b|you\b|i\b|in\b|on\b|at\b|the (?:previous|last|"
    r"week|month|day|year)|that\b|what|\d|half|anticipated|planned)", re.I,
)  # fmt: skip
_ELSE: Final = re.compile(
    r"\s*(?:[a-z]{1,14} ){0,3}?(?:than )?(?:the |a |an |our |its |most |any |all )?(?P<else>(?:previous |prior |human |passive |naive "
    r"|simple )?(?:market|index|benchmark|buy[- ]and[- ]hold|equal[- ]weight\w*|baselines?|humans?|people|experts?|analysts?|"
    r"traders?|investors?|random|chance|state of the art|predecessor|hedge funds?)\b|(?-i:[A-Z])[\w.&-]+(?: (?-i:[A-Z\d])[\w.&-]*){0,3})",
    re.I,
)
_SCORELIKE: Final = re.compile(
    rf"\b(?:scor\w+|ratings?|grad(?:es?|ed)|marks?|ranks?|points?|quality|average|mean|median|overall|results?|performance|"
    rf"rationales?|texts?|reasoning|answers?|explanations?|decisions?|kappa)\b|{_D}|{_EVERY_SCORE}", re.I,
)  # fmt: skip
_OUTCOME: Final = re.compile(
    r"\b(?:returns?|profits?|profitab\w+|p&l|pnl|sharpe|money|gains|earn(?:s|ed|ing)? (?!a\b|the\b|\w+ scores?)\w+|alpha\b|"
    r"portfolio value|wealth|(?:trading|investment|investing) (?:agent|model|system|bot|performance|results?)\b|(?:trades|invests) \w*(?:better|best|worse)|better "
    r"(?:trader|investor)|(?:best|worst) (?:trader|investor)|drawdowns?|makes? more|made more|in production|live trading|"
    r"real[- ]world|real money)\b", re.I,
)  # fmt: skip
_FOREIGN: Final = re.compile(
    r"\b(?:speed|latency|costs?|prices?|priced|expensive|tokens?|memory|throughput|turnover|popular\w*|stars|downloads|users|"
    r"volatil\w+|robust\w*|reliab\w+|safety|energy|verbos\w+|words|trades|holdings|length|size|accura\w+|fees?)\b", re.I,
)  # fmt: skip
_SWEEPING: Final = re.compile(
    r"\b(?:always|never loses|every time|guaranteed|(?:on|in|under|across) (?:any|every|all) (?:possible )?(?:markets?|conditions?|"
    r"circumstances)|universally|everywhere)\b", re.I,
)  # fmt: skip
_IF: Final = re.compile(
    r"\b(?:whether|if|would|should|could have|hop(?:es?|ed|ing)|aim(?:s|ed|ing)?|wants?|wanted|goals?|expect(?:s|ed)?|hypothes\w+|"
    r"suppos\w+|imagin\w+|let us|let's|to see|designed to|meant to|supposed to|trying to|tries to|tried to|trained to|"
    r"plan(?:s|ned)? to|predict\w*|wish(?:es)?|unless|until|which (?:agent|model|system|one|of)|how (?:well|much|often|far)|who|"
    r"in order to|attempt\w*|claims? that|claimed that|rumou?r\w*|alphabetical\w*|once|question of|can you)\b", re.I,
)  # fmt: skip
_NOT: Final = re.compile(
    r"\b(?:not|never|no longer|fail(?:s|ed)? to|neither|nor|hardly|nowhere near|no|without|false that|wrong that|far from)\b",
    re.I,
)
_OPEN: Final = re.compile(
    r"\bcan ?not be (?:ranked|ordered|separated|told apart|distinguished|compared)|\b(?:do|does|did|can ?|could) ?not (?:rank|order|"
    r"show|support|prove|establish|say|tell|claim|conclude|demonstrate|license|separate|distinguish|find)|\bindistinguishable|"
    r"\bstatistical(?:ly)? (?:tie|tied|equal)|\b(?:no|not|without|never)(?: a| any)? (?:statistically )?(?:significant(?:ly)?|supported|resolved|established|"
    r"shown|proven|clear|known|enough evidence|statistically|ranking|order)\b|\b(?:not|n't) \w{0,12} ?significantly|\binconclusive|\btoo close to call|"
    r"\bno evidence|\bun(?:clear|resolved|decided|known|supported)\b|\bremains? open|\bcan(?:not| not) be ranked", re.I,
)  # fmt: skip
_SPLIT: Final = re.compile(
    r"\s*;\s*|:(?=\s)|\s[—–]\s|\s--\s|—|,?\s(?:but|while|whereas|although|though|yet|because|since|so)\s|[()]|,\s(?=which|who)",
    re.I,
)
_NUMBER: Final = (
    rf"(?P<n>[+]?\d{{1,6}}(?:\.\d{{1,6}})?|\.\d{{1,6}}|half a|an?|{'|'.join(count_words(n) for n in range(1, 13))})"
)
_UNIT: Final = r"(?P<unit>\s?%| ?percent(?:age points?)?| ?pp\b|[ -]points?\b| ?pts?\b| ?x\b| times\b|-?fold\b)"
_GAP: Final = (
    re.compile(
        rf"\b(?:by|of|margin of|a|with)\s+(?:only |just |about |around |roughly |nearly |almost |over |more than |some |a full |an? )?{_NUMBER}(?![\d.]*\d)(?:{_UNIT}|(?=\s*(?:$|[,.;)]| on| over)))",
        re.I,
    ),
    re.compile(
        rf"\(\s*(?:by )?(?P<n>[+]\d{{1,6}}(?:\.\d{{1,6}})?|\d{{1,6}}(?:\.\d{{1,6}})?(?=[ -]?point)){_UNIT}?", re.I
    ),
    re.compile(
        rf"\b{_NUMBER}{_UNIT}\s*(?:above|below|ahead|behind|higher|lower|better|worse|more|less|lead|gap|margin|advantage|stronger)\b",
        re.I,
    ),
)
_P: Final = re.compile(r"\bp(?:-value)?\s*(?P<op>[<=≤]|of)\s*(?P<p>0?\.\d{1,8})\b", re.I)
_SIGNIFICANT: Final = re.compile(r"\bsignificant(?:ly)?\b", re.I)
_CONTRACTED: Final = (
    (re.compile(r"\b(?:can't|cannot)\b", re.I), "can not"), (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"(?<=\w)n't\b", re.I), " not"),
)  # fmt: skip
_AND: Final = re.compile(
    rf"(?:(?P<pre>both|either|neither) )?{_G}(?:, {_G}){{0,40}}(?:,? (?:and|or|nor|&|as well as|plus) |/| / )(?:the |also )?{_G}(?:/{_G}){{0,9}}",
    re.I,
)
_IS: Final = re.compile(
    rf"({_G})'s (?=(?:ahead|better|the|on par|tied|behind|above|below|worse|clearly|far|still|way|now|just|not|almost|no|"
    r"level|as good|in)\b)", re.I,
)  # fmt: skip
_SIZES: Final = "mini|nano|pro|turbo|sonnet|opus|haiku|flash|lite|max|ultra|preview|instruct|chat|large|small|medium|plus|next|coder"
_PLAIN: Final = frozenset(
    "and or but is are was were has have had does did do will can may the in on at by for with vs versus over to than as of "
    "beats beat outperforms outscores outranks leads tops wins ranks scores trails loses ties matches edges surpasses "
    "dominates comes finishes takes crowned not also still again both first second third last best worst agent model "
    "performs places remains handles explains reasons clearly".split()
)
COMMON: Final = frozenset(
    "a i it the one two three four five six seven eight nine ten first second third last best worst better top all none other "
    "others agent agents model models system baseline hold random control average mean score base test new old".split()
)
"""Names that are words of their own: agents of these names are looked for by their aliases alone."""


# --- names ------------------------------------------------------------------------------------------------------------


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).casefold()


def _spelled(name: str) -> str:
    """A pattern for a name, its parts joined by a blank, a hyphen, an underscore, or nothing beside a digit."""
    parts = re.split(r"[\s_-]+", name.strip())
    found = re.escape(parts[0])
    for one, other in pairwise(parts):
        least = 0 if one[-1:].isdigit() or other[:1].isdigit() else 1
        found += rf"[\s_-]{{{least},2}}" + re.escape(other)
    return found


@dataclass(frozen=True)
class Names:
    """The agents and scores of a run, as texts call them; ``aliases`` are further names of agents."""

    agents: tuple[str, ...]
    scores: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def unlooked(self) -> tuple[str, ...]:
        """Agents whose names are common words, and that have no alias: they are not looked for."""
        return tuple(name for name in self.agents if _key(name) in COMMON and name not in self.aliases.values())

    @cached_property
    def by_key(self) -> Mapping[str, str]:
        """Agents by all of their names."""
        own = {_key(name): name for name in self.agents if _key(name) not in COMMON}
        return own | {_key(alias): agent for alias, agent in self.aliases.items()}

    @cached_property
    def _named(self) -> re.Pattern[str]:
        names = [name for name in self.agents if _key(name) not in COMMON] + list(self.aliases)
        spelled = sorted((_spelled(name) for name in names if name.strip()), key=len, reverse=True)
        return re.compile(rf"(?<![\w.\\-])(?:{'|'.join(spelled) or '(?!)'})(?![\w]|-\w|\.\w|/\w{{0,20}}\.)", re.I)

    @cached_property
    def _scored(self) -> list[tuple[re.Pattern[str], str]]:
        """Patterns of the scores: whole names, and their words where only one score has them."""
        found = [(r"(?:the )?(?:overall|aggregate)(?: scores?| quality| ranking)?", AGGREGATE)]
        words: dict[str, list[str]] = {}
        for score in self.scores:
            if score != AGGREGATE:
                found.append((_spelled(score.replace("_", " ")), score))
                for word in re.split(r"[\s_-]+", score):
                    words.setdefault(word.casefold(), []).append(score)
        for word, having in words.items():
            if len(having) == 1 and len(word) > 3:
                lead = r"(?<=\bon )|(?<=\bin )|(?<=\bat )|(?<=\bfor )|(?<=handles )|(?<=handling )|(?<=manages )|(?<=treats )|(?<=handled )"
                found.append((rf"(?:{lead})(?:the )?{re.escape(word)}s?", having[0]))
        return [(re.compile(rf"\b{words}\b", re.I), score) for words, score in found]

    def mentions(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where agents are named: start, end, agent. A longer proper name is another thing."""
        words = [word for word in text.split() if len(word) > 3]
        titled = sum(word[:1].isupper() for word in words) > 0.8 * len(words)
        before = -1
        for found in self._named.finditer(text):
            start, end = found.span()
            after = text[end : end + 40]
            word = re.match(r"\s([A-Z][a-z]+)\b", after)
            longer = word is not None and not titled and word[1].lower() not in _PLAIN and found[0][:1].isupper()
            kin = re.match(rf"[\s-](?:{_SIZES})\b", after, re.I)
            inside = text[start - 1 : start] == "/" and before != start - 1
            if longer or kin or inside or re.match(r"@[\w.]", after):
                continue
            yield start, end, self.by_key[_key(found[0])]
            before = end

    def find_score(self, words: str) -> str | None:
        """The score of this name; None if there is none."""
        plain = _key(words.strip().removeprefix("the "))
        if plain in ("overall", "overallscore", "aggregate", "aggregatescore"):
            return AGGREGATE
        return next((score for score in self.scores if _key(score) == plain), None)


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shape:
    """A sentence with a sign in the place of each group of agents and of each score."""

    text: str
    groups: dict[str, tuple[str, ...]]
    neither: set[str]
    scores: dict[str, str]

    def agents(self, sign: str) -> tuple[str, ...]:
        return self.groups.get(sign, ())


def _shape(sentence: str, names: Names) -> _Shape:
    text = sentence.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"').replace("−", "-")
    text = " ".join(text.split())
    groups: dict[str, tuple[str, ...]] = {}
    neither: set[str] = set()
    pieces, at = [], 0
    for n, (start, end, agent) in enumerate(names.mentions(text)):
        if n >= 500:
            break
        groups[sign := chr(0xE000 + n)] = (agent,)
        pieces += [text[at:start], sign]
        at = end
    text = "".join([*pieces, text[at:]])
    for pattern, words in _CONTRACTED:
        text = pattern.sub(words, text)
    scores: dict[str, str] = {}
    for pattern, score in names._scored:
        sign = chr(0xF700 + len(scores))
        scores[sign] = score
        text = pattern.sub(sign, text)
    text = re.sub(
        r"\b(?:on|in|across|over|by) (?:all|every|each)(?: of the| the)?(?: (?:single|\w{3,5}))? (?:dimensions?|criteri(?:a|on)|scores?|metrics?|ax[ei]s|"
        r"measures?|category|categories)\b", f"on {_EVERY_SCORE}", text, flags=re.I,
    )  # fmt: skip
    text = _NOBODY.sub(_NONE, _EVERYONE.sub(_ALL, _IS.sub(r"\1 is ", text)))

    def together(found: re.Match[str]) -> str:
        signs = re.findall(_G, found[0])
        rest = text[found.end() : found.end() + 60]
        compared = _CUE.search(text[: found.start()]) is not None
        # "A beats B, and C beats D": the last name begins a comparison of its own.
        if compared and re.match(r"\s(?:\w+ly )?(?:is|are|was|ranks|scores|comes)?\s?", rest) and _starts_cue(rest):
            keep = found[0].rfind(signs[-1])
            head = found[0][:keep]
            return _joined(head, signs[:-1]) + signs[-1]
        return _joined(found[0], signs)

    def _joined(words: str, signs: list[str]) -> str:
        if len(signs) < 2:
            return words
        sign = chr(0xE200 + len(groups))
        groups[sign] = tuple(dict.fromkeys(agent for one in signs for agent in groups[one]))
        if words.lower().startswith("neither"):
            neither.add(sign)
        return sign + words[words.rfind(signs[-1]) + 1 :]

    return _Shape(_AND.sub(together, text), groups, neither, scores)


def _starts_cue(rest: str) -> bool:
    found = re.match(r"\s(?:(?:\w+ly|also|still|is|are|was|then|ranks|scores|comes) ){0,2}", rest)
    return found is not None and _CUE.match(rest, found.end()) is not None


def read_sentence(sentence: str, names: Names, before: Sequence[str] = ()) -> Reading | None:
    """What a sentence compares; None if it compares no agent of the run. ``before`` are agents named just before it.

    A question, a condition ("if"), a plan or a hope asserts nothing. A comparison with something that the run does not
    have, or on something that it does not score, is returned with the words that say so.
    """
    if len(sentence) > LONGEST or sentence.rstrip(" \"')*_”’").endswith("?"):
        return None
    shape = _shape(sentence, names)
    if not shape.groups and not (before and re.match(r"(?:it|this (?:agent|model|system))\b", sentence, re.I)):
        return None
    return _Reader(shape, names, tuple(before)).reading()


class _Reader:
    """Reads the clauses of one sentence from left to right."""

    def __init__(self, shape: _Shape, names: Names, before: tuple[str, ...]) -> None:
        self.shape, self.names, self.before = shape, names, before
        self.relations: list[Relation] = []
        self.words = dict.fromkeys(("outcome", "foreign", "others", "unclear"), "")
        self.subject: tuple[str, ...] = before[:1] if re.match(r"(?:it|this)\b", shape.text, re.I) else ()
        self.last = self.subject
        self.open = bool(_OPEN.search(shape.text))

    def reading(self) -> Reading | None:
        text, at = self.shape.text, 0
        for cut in [*_SPLIT.finditer(text), None]:
            end = len(text) if cut is None else cut.start()
            self._clause(text[at:end], text[:at], text[end:])
            at = end if cut is None else cut.end()
        if self.open and not self.relations:
            self._open()
        if not self.relations and not (self.words["others"] or self.words["unclear"] or self.words["foreign"]):
            return None
        gap, share = self._gap()
        scores = [self.shape.scores[sign] for sign in text if sign in self.shape.scores]
        if _EVERY_SCORE in text:
            scores += [one for one in self.names.scores if one != AGGREGATE]
        named = [one for one in dict.fromkeys(scores) if one != AGGREGATE] or [AGGREGATE]
        p, sweeping, outcome = _P.search(text), _SWEEPING.search(text), _OUTCOME.search(text)
        return Reading(
            tuple(dict.fromkeys(self.relations)), tuple(named), gap, float(p["p"]) if p else None,
            bool(_SIGNIFICANT.search(text)) and not self.open, self.words["outcome"] or (outcome[0] if outcome else ""),
            self.words["foreign"], share, self.words["others"], sweeping[0] if sweeping else "", self.words["unclear"],
        )  # fmt: skip

    # --- clauses ---

    def _clause(self, text: str, before: str, after: str) -> None:
        inside = before.endswith("(") or text.lower().startswith(("which ", "who "))
        inherited = self.last if inside else self.subject or self.last
        previous: tuple[str, ...] = inherited
        taken = 0
        for cue in _CUE.finditer(text):
            if cue.start() < taken or not cue[0].strip():
                continue
            kind = _CUES[int((cue.lastgroup or "c0")[1:])][0]
            head = text[: cue.start()]
            if _IF.search(head) or (_IF.search(before) and not re.search(r"[.;:]\s*$", before)):
                continue
            left, possessed = self._left(head, previous)
            found = self._relation(kind, cue, left, possessed, head, text[cue.end() :], text)
            if found is not None:
                taken = found
                previous = left or previous
        if not inside and previous:
            self.subject = previous
        if signs := re.findall(_G, text):
            self.last = self.shape.agents(signs[-1])

    def _left(self, head: str, inherited: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        """Who stands before a comparison, and the noun that belongs to them, as in "A's latency"."""
        if (
            re.search(
                r"(?:,|\band|\bor|\bbut|\bthen)\s+(?:(?:\w+ly|also|then|is|are|even|still|not)\s+){0,3}$", head, re.I
            )
            and inherited
        ):
            return inherited, ""
        for sign in re.finditer(rf"({_G}|{_NONE}|{_ALL})('s?(?= |$))?", head[::1]):
            found = sign
        if not re.search(f"{_G}|{_NONE}|{_ALL}", head):
            pronoun = re.search(r"\b(?:it|this agent|this model|this system|they|which|who)\b", head, re.I)
            return (inherited if pronoun or not head.strip(" ,\"'") else inherited), ""
        signs = list(re.finditer(rf"({_G}|{_NONE}|{_ALL})('s?(?= |$))?", head))
        for found in reversed(signs):
            between = head[found.end() :]
            if len(between) > 120:
                break
            if not found[2]:
                return self._who(found[1]), ""
            noun = re.match(
                r"\s(?:\w+ ){0,2}?([a-z&]+)\s(?=(?:is|are|was|were|came|comes|ranks?|scores?|scored|looks?|reads?)\b)",
                between + " ",
                re.I,
            )
            if noun:
                return self._who(found[1]), noun[1]
            if re.match(r"\s*$", between):
                return self._who(found[1]), "\0"
        return inherited, ""

    def _who(self, sign: str) -> tuple[str, ...]:
        if sign in (_NONE, _ALL):
            return (sign,)
        return self.shape.agents(sign)

    def _right(self, rest: str, left: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """Who stands behind a comparison, and where in ``rest`` that ends."""
        found = _OBJECT.match(rest)
        if found is None:
            return (), 0
        if found[1].lower() in ("it", "them"):
            others = [one for one in (self.last, self.subject, self.before) if one and one != left]
            return (others[0] if others else ()), found.end()
        return self._who(found[1]), found.end()

    # --- comparisons ---

    def _relation(
        self, kind: str, cue: re.Match[str], left: tuple[str, ...], possessed: str, head: str, rest: str, clause: str
    ) -> int | None:
        """Note what one cue says; returns up to where it was read, or None if it says nothing about agents."""
        word = cue[0].lower()
        if possessed and possessed != "\0" and not _SCORELIKE.search(possessed):
            self._criterion(possessed)
        if kind in ("first", "first verb", "last", "rank", "superlative"):
            return self._alone(kind, cue, left, possessed, head, rest)
        if possessed == "\0" and kind not in ("up", "weak up", "differ"):
            return None
        if kind in ("than", "as"):
            return self._than(kind, cue, left, head, rest, clause)
        right, end = self._right(rest, left)
        if not right and kind in ("up", "down", "tie", "differ") and (found := _AGAINST.search(clause)):
            right, end = self._who(found[1]), 0
            right = () if right == left else right
        if kind == "differ" or (kind == "tie" and re.search("between|differ|separates", word)):
            both = right if len(right) > 1 else tuple(dict.fromkeys((*left, *right)))
            self._pairs("level" if kind == "tie" else "differ", both, (), head, denied=False)
            return cue.end() + end if len(both) > 1 else None
        if kind == "tie":
            if not right and len(left) > 1 and re.search(rf"{_G}|between", head + rest[:30]):
                if word.startswith("match") and re.match(r"\s+\w", rest):
                    return None
                self._pairs("level", left, (), head)
                return cue.end()
            if left and right and left[0] not in (_ALL, _NONE):
                self._add("level", left, right, head)
                return cue.end() + end
            if "similar" not in word and "match" not in word and "equal" not in word:
                self._else(left, rest)
            return None
        if not left:
            if kind == "up" and word.split()[0] in (
                "choose",
                "pick",
                "prefer",
                "favor",
                "favour",
                "recommend",
                "select",
                "chose",
                "prefers",
            ):
                left, end = self._right(rest, ())
                right, more = self._right(re.sub(r"^\s*(?:over|to)\b", "", rest[end:]), left)
                if left and right:
                    self._add("above", left, right, head)
                    return cue.end() + end + more
            return None
        if re.match(r"(?:choose|pick|prefer|favou?r|recommend|select|chose)", word):
            return None  # the agents stand behind it, around "over" or "to"
        if not right:
            if kind in ("up", "down"):
                self._else(left, rest)
            return None
        if word == "over" and not re.search(
            r"\b(?:prefer\w*|cho[os]s?e\w*|pick\w*|favou?r\w*|recommend\w*|select\w*|rank\w*|plac\w*|put|win|won|lead|victory)\b[^.]{0,40}$",
            head,
            re.I,
        ):
            return None
        upward = kind in ("up", "weak up")
        if word.startswith(("come", "came", "get")) and "close" in word:
            if left != (_NONE,) and not _NOT.search(head[-25:]):
                return None
            head = "" if left != (_NONE,) else head
            if left == (_NONE,):
                self.relations.append(Relation("first", right, stance="asserted"))
                return cue.end() + end
        self._add("above", *((left, right) if upward else (right, left)), head)
        return cue.end() + end

    def _than(
        self, kind: str, cue: re.Match[str], left: tuple[str, ...], head: str, rest: str, clause: str
    ) -> int | None:
        """ "better than", "more accurate than", "higher returns than", "as fast as"."""
        word = cue[0].lower()
        upto = re.search(r"\bthan\b", rest[:80], re.I)
        middle = rest[: upto.start()] if upto else re.split(r"[,.;]", rest[:60])[0]
        if kind == "as":
            right, end = self._right(rest, left)
            if left and right:
                if re.match(r"as (?:bad|poor|weak)", word):
                    self._add("level", left, right, head)
                else:
                    self._criterion(word[3:-3])
                    self._add("level", left, right, head)
                return cue.end() + end
            return None
        generic = re.fullmatch(f"{_BETTER}|{_WORSE}", word) is not None
        amount = re.fullmatch(_AMOUNT, word) is not None
        right: tuple[str, ...] = ()
        end = 0
        if upto:
            right, end = self._right(rest[upto.start() :], left)
            end += upto.start()
        elif found := _AGAINST.search(clause):
            right = self._who(found[1])
        if not left:
            if not right or not (front := re.findall(_G, head)):
                return None
            left = self.shape.agents(front[-1])
        if not right:
            if upto:
                if not _SELF.match(rest):
                    self._else(left, rest[upto.start() :])
                return None
            if not generic:
                return None
            if not re.search(_LINK, head, re.I) or re.match(
                r"\s+(?!on\b|in\b|at\b|overall|here|agent|model|system|of the two)[a-z]", rest, re.I
            ):
                return None
            named = tuple(dict.fromkeys(a for one in re.findall(_G, clause) for a in self.shape.agents(one)))
            others = tuple(one for one in named if one not in left) or tuple(
                one for one in self.before if one not in left
            )
            if not others and len(self.names.agents) == 2:
                others = tuple(one for one in self.names.agents if one not in left)
            if not others:
                self.words["unclear"] = f"{word} than which agent"
                return cue.end()
            right = others
        right = tuple(one for one in right if one not in left) or right
        if amount and middle.strip() and not _SCORELIKE.search(middle):
            self._criterion(middle)
        elif not generic and not amount:
            self._criterion(word)
        elif generic and middle.strip() and (found := _FOREIGN.search(middle)):
            self._criterion(found[0])
        down = word in ("lower", "less", "fewer") or word.startswith("less ") or re.fullmatch(_WORSE, word)
        self._add("above", *((right, left) if down else (left, right)), head)
        return cue.end() + end

    def _alone(
        self, kind: str, cue: re.Match[str], left: tuple[str, ...], possessed: str, head: str, rest: str
    ) -> int | None:
        """First, last, at a rank, or a superlative: the agent stands before it behind a verb, or after it."""
        word, end = cue[0].lower(), cue.end()
        signs = re.findall(f"{_G}|{_NONE}|{_ALL}", head)
        between = re.split(f"{_G}|{_NONE}|{_ALL}", head)[-1] if signs else head
        if possessed == "\0" or re.match(r"'s?\s", between):
            if not re.match(r"'s? (?:\w+ ){0,2}\w* ?(?:is|was|are|were|ranks|comes|came|scored|scores)\b", between):
                return None
        after = re.match(
            rf"(?:\s+(?:[\w-]+|{_D})){{0,6}}?(?:\s*[:,=—–]|\s+(?:is|was|are|were|goes to|went to|turned out to be|remains?|belongs to|for|named))\s+"
            rf"(?:(?:again|still|clearly|by far|therefore|once again|now|the|our|agent) ){{0,2}}({_G})(?!')", rest, re.I,
        )  # fmt: skip
        linked = re.search(_LINK, between, re.I) or re.fullmatch(
            r",?\s*(?:-\s*)?(?:(?:the|our|clear|overall|a|by far|always)\s+)*", between
        )
        if kind == "first verb":
            linked = re.fullmatch(
                r"[\s,]*(?:(?:\w+ly|also|still|again|now|then|always|even|just|not|does|did|do|never|and|has|have|who|which|that|could|may|might|all|both|will|can)\s+){0,4}",
                between,
            )
        who = (
            left
            if (
                left
                and (
                    signs
                    or head.strip().lower() in ("it", "")
                    or re.match(r"\W*(?:it|which|who|this)\b", head, re.I)
                    or linked
                )
                and linked
            )
            else ()
        )
        if len(between) > 70:
            who = ()
        if kind == "superlative" and re.match(
            r"most (?:of|days?|dates?|weeks?|cases|recent\w*|likely|trades|other|stocks|people|users|models|agents|important\w*)|least ",
            word,
        ):
            return None
        if kind in ("first", "superlative") and re.match(r"first", word) and who and not re.search(
            r"\b(?:ranks?|ranked|comes?|came|plac\w+|finish\w*|is|was|are|were|takes?|took|in|gets?|got|earn\w*|holds?|held|scor\w+|as|be|rated|wins?|won|the)\s+(?:(?:a|the|clearly|easily|again|joint|dead|equal|now|still|only|also|not|\w+ly)\s+){0,2}$", between, re.I
        ):  # fmt: skip
            return None
        if not who and after and not re.search(r"\b(?:its|their|his|our|your)\s+$", head, re.I):
            who, end = self.shape.agents(after[1]), cue.end() + after.end()
            if re.match(r"first$", word) and not re.match(
                r"\s+(?:place|rank|position|spot|agent|model|system|prize)", rest, re.I
            ):
                return None
        if not who or who == (_ALL,):
            return None
        denied = who == (_NONE,)
        if denied:
            return None
        if kind == "superlative" or (
            word == "highest" and not _SCORELIKE.search(rest[:60]) and re.match(r"\s+[a-z]", rest)
        ):
            self._criterion(word if kind == "superlative" else rest.strip().split(" ")[0])
        elif found := _FOREIGN.search(rest[:30]):
            if re.match(r"\s+(?:on|in|at|for|of)?\s*(?:the )?\w+", rest) and found.start() < 25:
                self._criterion(found[0])
        if kind == "rank":
            named = next((n for name, n in _RANKS.items() if name in word), 2)
            self._add("rank", who, (), head, rank=named)
        else:
            self._add("last" if kind == "last" else "first", who, (), head)
        return end

    # --- what was found ---

    def _criterion(self, words: str) -> None:
        """Note on what a comparison is, where it is not on a score."""
        plain = words.strip(" ,")
        if found := _OUTCOME.search(plain):
            self.words["outcome"] = found[0]
        elif plain and not _SCORELIKE.search(plain):
            self.words["foreign"] = plain[:60]

    def _else(self, left: tuple[str, ...], rest: str) -> None:
        """Note something that agents are compared with and that the run does not have."""
        found = _ELSE.match(rest)
        if found and left and left[0] not in (_ALL, _NONE):
            self.words["others"] = found["else"][:60]

    def _stance(self, head: str, denied: bool = False) -> Stance:
        if self.open:
            return "not shown"
        near = re.split(rf",\s|{_G}", head)[-1][-60:]
        return "denied" if denied != bool(_NOT.search(near)) else "asserted"

    def _add(
        self, kind: RelationKind, left: tuple[str, ...], right: tuple[str, ...], head: str, *, rank: int = 0
    ) -> None:
        stance = self._stance(head)
        for sign in self.shape.neither:
            if sign in head and stance != "not shown":
                stance = "denied"
        if kind == "above" and (left == (_NONE,) or right == (_NONE,)):
            kind, left, right = ("first", right, ()) if left == (_NONE,) else ("last", left, ())
        elif kind == "above" and right == (_ALL,):
            kind, right = "first", ()
        elif kind == "above" and left == (_ALL,):
            kind, left, right = "last", right, ()
        elif kind == "level" and (_ALL in (*left, *right) or _NONE in (*left, *right)):
            if left == (_NONE,):
                self.relations.append(Relation("first", right))
            return
        right = tuple(one for one in right if one not in left)
        if kind in ("above", "level") and not right:
            return
        self.relations.append(Relation(kind, left, right, stance, rank))

    def _pairs(
        self, kind: RelationKind, both: tuple[str, ...], right: tuple[str, ...], head: str, *, denied: bool = False
    ) -> None:
        named = tuple(one for one in both if one not in (_ALL, _NONE))
        if len(named) > 1:
            self.relations.append(Relation(kind, named, right, self._stance(head, denied)))

    def _open(self) -> None:
        """ "A and B cannot be ranked": no direction, only that none is shown."""
        named = tuple(dict.fromkeys(a for one in re.findall(_G, self.shape.text) for a in self.shape.agents(one)))
        if len(named) > 1:
            self.relations.append(Relation("differ", named, (), "not shown"))
        elif named and re.search(r"\b(?:first|best)\b", self.shape.text, re.I):
            self.relations.append(Relation("first", named, (), "not shown"))

    def _gap(self) -> tuple[float | None, str]:
        """A difference in points, or the words of one that is in another unit."""
        for pattern in _GAP:
            for found in pattern.finditer(self.shape.text):
                unit = (found["unit"] or "").strip(" -").lower()
                if found["n"].lower() in ("a", "an") and not unit.startswith("point"):
                    continue
                if unit and not unit.startswith(("point", "pt")):
                    return None, found[0].strip()
                words = found["n"].lower().strip()
                small = {count_words(n): float(n) for n in range(1, 13)} | {"half a": 0.5, "a": 1.0, "an": 1.0}
                if not unit and words in small:
                    continue
                return small.get(words) or float(words.lstrip("+")), ""
        return None, ""
