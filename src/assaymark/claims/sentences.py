"""Extract comparisons from text: agents above, below, first or level, on which score, and by how much.

A rule-based parser without a model: it matches the phrases in ``comparisons.toml``. Its accuracy is measured on
labelled sentences (``docs/validation.md``). Patterns are bounded, so parsing takes linear time.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Final, Literal

from assaymark.claims.messages import count_words
from assaymark.records import AGGREGATE

RelationKind = Literal["above", "first", "last", "rank", "level", "differ"]
Stance = Literal["asserted", "denied", "not shown"]
Agents = tuple[str, ...]

LONGEST: Final = 1000
"""Maximum characters of a sentence; longer ones are not parsed."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One comparison: ``left`` above, level with or different from ``right``; or first, last or at ``rank``."""

    kind: RelationKind
    left: Agents
    right: Agents = ()
    stance: Stance = "asserted"
    rank: int = 0


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A parsed sentence: the comparisons of agents in it.

    ``gap`` is a difference in points, ``margin`` a bound of one, ``p`` a stated p-value behind ``p_sign``, ``unread`` a
    number of this kind that is not read. ``outcome``, ``foreign``, ``share``, ``others``, ``sweeping`` and ``unclear``
    hold words that the scores of a run cannot decide.
    """

    relations: tuple[Relation, ...]
    scores: tuple[str, ...] = (AGGREGATE,)
    gap: float | None = None
    margin: float | None = None
    p: float | None = None
    p_sign: str = ""
    unread: str = ""
    significant: bool = False
    outcome: str = ""
    foreign: str = ""
    share: str = ""
    others: str = ""
    sweeping: str = ""
    unclear: str = ""


_TABLE: Final = tomllib.loads(files("assaymark.claims").joinpath("comparisons.toml").read_text(encoding="utf-8"))
_G: Final = "[\ue000-\uefff]"  # placeholder characters for agents, for all or no others, and for scores
_ALL, _NONE, _D, _EVERY = "\uf600", "\uf601", "[\uf700-\uf8fe]", "\uf8ff"


def _words(name: str) -> str:
    """Return the phrases of one entry of the table as one pattern."""
    words = _TABLE[name]
    text = f"(?:{'|'.join(words)})" if isinstance(words, list) else str(words)
    signs = {"{G}": _G, "{ALL}": _ALL, "{NONE}": _NONE, "{D}": _D, "{EVERY}": _EVERY}
    for sign in re.findall(r"\{[A-Z_]+\}", text):
        text = text.replace(sign, signs.get(sign) or _words(sign[1:-1].lower()))
    return text


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_words(name), re.I)


_BETTER, _WORSE, _AMOUNT, _CLEAR = (_words(name) for name in ("better", "worse", "amount", "clear"))
_THAN: Final = (
    rf"(?:{_BETTER}|{_WORSE}|{_AMOUNT}|{_words('other_er')}(?:e?r|ier)|more [a-z]{{3,20}}|less [a-z]{{3,20}})\b"
)
_CUES: Final[tuple[tuple[str, str], ...]] = (
    ("last", _words("last")), ("first verb", _words("first_verb")), ("rank", _words("rank")),
    ("tie", rf"{_words('tie')}(?!\w)"), ("down", rf"{_words('down')}\b"),
    ("up", rf"{_words('up')}(?:(?<=\s)|(?!\w))"), ("than", _THAN), ("as", "as [a-z]{3,20} as"),
    ("differ", _words("differ")),
    ("first", _words("first")), ("superlative", _words("superlative")), ("up", rf"{_words('weak_up')}\b"),
    ("down", rf"{_words('weak_down')}\b"),
)  # fmt: skip
_SIGNS: Final = (("up", "[>≥≫]"), ("down", "[<≤≪]"))
_KINDS: Final = [kind for kind, _ in (*_CUES, *_SIGNS)]
_WEAK: Final = re.compile(rf"(?:{_words('weak_up')}|{_words('weak_down')})", re.I)
_CUE: Final = re.compile(
    "|".join(
        [f"(?P<c{at}>(?<![\\w-]){words})" for at, (_, words) in enumerate(_CUES)]
        + [f"(?P<c{at}>{words})" for at, (_, words) in enumerate(_SIGNS, len(_CUES))]
    ),
    re.I,
)
_EVERYONE: Final = re.compile(rf"\b(?!each other){_words('everyone')}(?!\w)", re.I)
_NOBODY: Final = re.compile(rf"\b{_words('nobody')}\b", re.I)
_LINK: Final = re.compile(rf"\b{_words('link')}\b|=", re.I)
_SCORELIKE, _OUTCOME, _FOREIGN, _SWEEPING, _UNASSERTED, _NOT, _OPEN = map(
    _pattern, ("scorelike", "outcome", "foreign", "sweeping", "unasserted", "negation", "open")
)
_SPLIT, _BEFORE_VERB, _RANKED, _NAMED_AFTER, _EVERY_SCORE, _CHOSEN, _NO_SUPERLATIVE, _OWN_SCORE, _DENIAL = map(
    _pattern,
    ("split", "before_verb", "ranked", "named_after", "every_score", "chosen", "no_superlative", "own_score", "denial"),
)
_OBJECT: Final = re.compile(rf"\s*{_CLEAR}({_G}|{_ALL}|{_NONE}|\b(?:it|them)\b)", re.I)
_AGAINST: Final = re.compile(
    rf"\b(?:compared (?:with|to)|relative to|versus|vs\.?|against|unlike|than|over|between|of)\s+{_CLEAR}({_G}|{_ALL})",
    re.I,
)
_SELF: Final = re.compile(rf"[^.]{{0,40}}?\bthan {_words('self')}", re.I)
_ELSE: Final = _pattern("named_else")
_AND: Final = re.compile(
    rf"(?:(?:both|either|neither) )?{_G}(?:, {_G}){{0,40}}(?:,? (?:and|or|nor|&|as well as|plus) |/| / )(?:the |also )?"
    rf"{_G}(?:/{_G}){{0,9}}", re.I,
)  # fmt: skip
_CUE_FOLLOWS: Final = re.compile(r"\s(?:(?:\w+ly|also|still|is|are|was|were|then|ranks|scores|comes) ){0,2}", re.I)
_CHOICE: Final = re.compile(r"(?:choose|pick|prefer|favou?r|recommend|select|chose|\w+ of )", re.I)
_RANKS: Final = {"second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5}
NUMERALS: Final = {count_words(n): n for n in range(1, 13)}
"""The numbers that are written as words."""
_SMALL: Final = {words: float(n) for words, n in NUMERALS.items()} | {"half a": 0.5, "a": 1.0, "an": 1.0}
_NUMBER: Final = rf"(?P<n>[+-]?\d{{1,6}}(?:\.\d{{1,6}})?|\.\d{{1,6}}|{'|'.join(_SMALL)})"
_UNIT: Final = r"(?P<unit>\s?%| ?percent(?:age points?)?| ?pp\b|[ -]points?\b| ?pts?\b| ?x\b| times\b|-?fold\b)"
_GAP, _MARGIN = (
    [re.compile(words.replace("{NUMBER}", _NUMBER).replace("{UNIT}", _UNIT), re.I) for words in _TABLE[name]]
    for name in ("gap", "margin")
)
_UNREAD: Final = _pattern("unread")
_APART: Final = re.compile(r"\b(?:compared (?:with|to)|relative to|versus|vs\.?)(?= )", re.I)
_NOUN: Final = re.compile(
    rf"\s(?:\w+ ){{0,2}}?([a-z&]+|{_D})\s(?:is|are|was|were|came|comes|ranks?|scored?|scores|looks?|reads?|remains?)\b",
    re.I,
)
_MEASURED: Final = re.compile(r"\b([a-z&]{2,20}) of (?:the )?$", re.I)
_IT: Final = re.compile(r"(?:it|this (?:agent|model|system))\b", re.I)
_P: Final = re.compile(
    r"(?<!top[ _-])\bp(?:-values?)?\s*(?P<sign>[<>]{1,2}|[=≤≥≈~]|of|is|was|below|under|above|over)\s*"
    r"(?P<p>(?:(?:\d?\.\d{1,9}|\d)(?:e-\d{1,3}|\s?[x×·*]\s?10\^?-\d{1,3})?|10\^?-\d{1,3})(?![\d%]|\s?%))?",
    re.I,
)
_BENCHMARK: Final = re.compile(r"\bon (?:the )?(\w*(?:[A-Z]{2,}|[a-z][A-Z]|-?[Bb]ench)[\w-]*)")
_SIGNIFICANT: Final = re.compile(r"\bsignificant(?:ly)?\b", re.I)
_PLAINER: Final = (
    (re.compile(r"\b(?:can't|cannot)\b", re.I), "can not"), (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"(?<=\w)n't\b", re.I), " not"),
    (re.compile(rf"({_G})'s (?=(?:{_TABLE['is_instead']})\b)", re.I), r"\1 is "),
    (_EVERYONE, _ALL), (_NOBODY, _NONE),
)  # fmt: skip
COMMON: Final = frozenset(_TABLE["common"].split())
"""Common words: agents with these names are matched by their aliases only."""
_PLAIN: Final = frozenset(_TABLE["plain"].split())


def name_key(text: str) -> str:
    """Normalise a name: case-folded, without spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", text).casefold()


def _name_pattern(name: str) -> str:
    """Return a pattern for a name, its parts joined by a space, hyphen or underscore, or nothing next to a digit."""
    parts = re.split(r"[\s_-]+", name.strip())
    pattern = re.escape(parts[0])
    for part, other in pairwise(parts):
        least = 0 if part[-1:].isdigit() or other[:1].isdigit() else 1
        pattern += rf"[\s_-]{{{least},2}}" + re.escape(other)
    return pattern


@dataclass(frozen=True)
class RunNames:
    """The agents and scores of a run, for matching in texts; ``aliases`` are further names of agents."""

    agents: Agents
    scores: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def common(self) -> Agents:
        """Agents without an alias whose names are common words; they are not matched."""
        return tuple(agent for agent in self.agents if name_key(agent) in COMMON and agent not in self.aliases.values())

    @cached_property
    def by_key(self) -> Mapping[str, str]:
        """Agents by all normalised names that are matched."""
        names = {name_key(name): name for name in self.agents if name_key(name) not in COMMON}
        return names | {name_key(alias): agent for alias, agent in self.aliases.items()}

    @cached_property
    def _named(self) -> re.Pattern[str]:
        names = [name for name in (*self.agents, *self.aliases) if name_key(name) in self.by_key]
        spelled = sorted((_name_pattern(name) for name in names if name.strip()), key=len, reverse=True)
        return re.compile(rf"(?<![\w.\\-])(?:{'|'.join(spelled) or '(?!)'})(?![\w]|-\w|\.\w|/\w{{0,20}}\.)", re.I)

    @cached_property
    def scored(self) -> list[tuple[re.Pattern[str], str]]:
        """Patterns of the scores: full names, and words that occur in only one score's name."""
        patterns = [(r"(?:the )?(?:overall|aggregate)(?: scores?| quality| ranking)?", AGGREGATE)]
        named = [score for score in self.scores if score != AGGREGATE and name_key(score) not in COMMON]
        patterns += [(_name_pattern(score.replace("_", " ")), score) for score in named]
        words = [(word.casefold(), score) for score in named for word in re.split(r"[\s_-]+", score) if len(word) > 3]
        leads = ("on ", "in ", "at ", "for ", "handles ", "handling ", "manages ", "treats ", "handled ")
        lead = "|".join(rf"(?<=\b{lead})" for lead in leads)
        for word, score in words:
            if [other for other, _ in words].count(word) == 1:
                patterns.append((rf"(?:{lead})(?:the )?{re.escape(word)}s?", score))
        return [(re.compile(rf"\b{words}\b", re.I), score) for words, score in patterns]

    def mentions(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the mentions of agents as (start, end, agent); part of a longer proper name is not a mention."""
        words = [word for word in text.split() if len(word) > 3]
        titled = sum(word[:1].isupper() for word in words) > 0.8 * len(words)
        before = -1
        for match in self._named.finditer(text):
            start, end = match.span()
            word = re.match(r"\s([A-Z][a-z]+)\b", text[end : end + 40])
            longer = word is not None and not titled and word[1].lower() not in _PLAIN and match[0][:1].isupper()
            inside = text[start - 1 : start] == "/" and before != start - 1
            if not (longer or inside or re.match(rf"[\s-](?:{_TABLE['sizes']})\b|@[\w.]", text[end : end + 20], re.I)):
                yield start, end, self.by_key[name_key(match[0])]
                before = end


LIKE: Final = 0.85
"""Share of words, in order, that a sentence has in common with a claim of which it is taken for a variant."""


def sentence_form(text: str, names: RunNames) -> list[str]:
    """Return the words of a sentence, with one sign for every agent and another for every number."""
    for start, end, _ in [*names.mentions(text)][::-1]:
        text = f"{text[:start]}@{text[end:]}"
    words = re.findall(r"@|[+-]?\d[\d.,]*(?=\W|$)|\w+(?:-\w+)*", text.replace("−", "-").casefold())
    return ["#" if word[-1:] == "." or word[:1] in "+-0123456789" or word in NUMERALS else word for word in words]


def likeness(form: Sequence[str], words: Sequence[str]) -> float:
    """Return the share of words that two forms have in common: in order, or of those of the sentence if it has six."""
    common = (Counter(form) & Counter(words)).total()
    if 2 * common < LIKE * (len(form) + len(words)):  # no order makes it more
        return common / len(words) if len(words) > 5 else 0.0
    return SequenceMatcher(None, form, words, autojunk=False).ratio()


def read_sentence(sentence: str, names: RunNames, before: Sequence[str] = ()) -> ParsedSentence | None:
    """Parse a sentence; None if it asserts nothing on agents of the run, or of those named just ``before`` it."""
    if len(sentence) > LONGEST or sentence.rstrip(" \"')*_”’").endswith("?"):
        return None
    if not (before and _IT.match(sentence)) and next(names.mentions(sentence), None) is None:
        return None
    return _SentenceParser(sentence, names, tuple(before)).parse()


class _SentenceParser:
    """Parses the clauses of one sentence from left to right, with placeholders for groups of agents and for scores."""

    def __init__(self, sentence: str, names: RunNames, before: Agents) -> None:
        self.names, self.before = names, before
        self.groups: dict[str, Agents] = {_ALL: (_ALL,), _NONE: (_NONE,)}
        self.neither: set[str] = set()
        self.scores: dict[str, str] = {}
        self.text = self._mask(sentence)
        self.relations: list[Relation] = []
        self.found = dict.fromkeys(("outcome", "foreign", "others", "unclear"), "")
        self.subject = before[:1] if _IT.match(self.text) else ()
        self.last, self.open = self.subject, bool(_OPEN.search(self.text))
        self.named: list[Agents] = []

    def _mask(self, sentence: str) -> str:
        text = sentence.translate(str.maketrans("’‘“”−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "''\"\"--0123456789"))
        text, pieces, at = " ".join(text.split()), list[str](), 0
        for n, (start, end, agent) in enumerate(self.names.mentions(text)):
            self.groups[sign := chr(0xE000 + n)] = (agent,)
            pieces += [text[at:start], sign]
            at = end
        text = "".join([*pieces, text[at:]])
        for n, (pattern, score) in enumerate(self.names.scored[:500]):
            self.scores[sign := chr(0xF700 + n)] = score
            text = pattern.sub(sign, text)
        text = _EVERY_SCORE.sub(f"on {_EVERY}", text)
        for pattern, words in _PLAINER:
            text = pattern.sub(words, text)
        return _AND.sub(self._merge_names, text)

    def _merge_names(self, match: re.Match[str]) -> str:
        """Replace agents that are named together by one placeholder."""
        signs, text = re.findall(_G, match[0]), match.string
        follows = _CUE_FOLLOWS.match(text, match.end())
        # "A beats B, and C beats D": the last name starts a new comparison.
        starts_new = follows and _CUE.match(text, follows.end()) and _CUE.search(text, 0, match.start())
        joined, tail = (signs[:-1], match[0][match[0].rfind(signs[-1]) :]) if starts_new else (signs, "")
        if len(joined) < 2:
            return match[0]
        self.groups[sign := chr(0xE900 + len(self.groups))] = tuple(
            dict.fromkeys(a for s in joined for a in self.groups[s])
        )
        if match[0].lower().startswith("neither"):
            self.neither.add(sign)
        return f"{sign}, and {tail}" if tail else sign

    def parse(self) -> ParsedSentence | None:
        """Parse all clauses and combine the results."""
        text, at = self.text, 0
        for cut in [*_SPLIT.finditer(text), None]:
            end = len(text) if cut is None else cut.start()
            self._clause(text[at:end], text[:at])
            at = end if cut is None else cut.end()
        if self.open and not self.relations:
            # "A and B cannot be ranked": no direction, only that no order is shown
            named = tuple(dict.fromkeys(a for group in re.findall(_G, self.text) for a in self.groups[group]))
            if len(named) > 1 or (named and re.search(r"\b(?:first|best)\b", self.text, re.I)):
                self.relations.append(Relation("differ" if len(named) > 1 else "first", named, (), "not shown"))
        if not any((self.relations, self.open, self.found["others"], _UNASSERTED.search(text))):
            # "A scores 4.1, B 3.9" compares them by their scores
            stated = [(float(match["n"]), self.groups[match[1]]) for match in _OWN_SCORE.finditer(self.text)]
            if len({agents for _, agents in stated}) > 1 and _SCORELIKE.search(self.text):
                for (high, winners), (low, other) in pairwise(sorted(stated, reverse=True)):
                    if high > low:
                        self._add("above", winners, other, "")
        if not self.relations and not (self.found["others"] or self.found["unclear"]):
            return None
        (gap, share), (margin, rough) = self._size(_GAP), self._size(_MARGIN)
        unread = _UNREAD.search(text) if gap is None and margin is None and not share + rough else None
        scores = [self.scores[sign] for sign in text if sign in self.scores]
        scores += self.names.scores if _EVERY in text else ()
        if (benchmark := _BENCHMARK.search(text)) and not self.found["foreign"]:
            self.found["foreign"] = benchmark[1]
        p, sweeping, outcome = _P.search(text), _SWEEPING.search(text), _OUTCOME.search(text)
        if p and not p["p"]:
            unread, p = (unread if p["sign"].isalpha() else p), None
        return ParsedSentence(
            tuple(dict.fromkeys(self.relations)),
            tuple(score for score in dict.fromkeys(scores) if score != AGGREGATE) or (AGGREGATE,),
            gap, 0.0 if rough else margin, _p_value(p["p"]) if p else None, p["sign"].lower() if p else "",
            unread[0] if unread else "", bool(_SIGNIFICANT.search(text)) and not self.open, share=share or rough,
            outcome=self.found["outcome"] or (outcome[0] if outcome else ""), sweeping=sweeping[0] if sweeping else "",
            foreign=self.found["foreign"], others=self.found["others"], unclear=self.found["unclear"],
        )  # fmt: skip

    # --- clauses ---

    def _clause(self, text: str, before: str) -> None:
        inside = before.endswith("(") or text.lower().startswith(("which ", "who "))
        previous = self.last if inside else self.subject or self.last
        supposed = re.split(r"[.;:,](?:\s|$)", before)[-1]
        parsed_to = 0
        for cue in _CUE.finditer(text):
            head = text[: cue.start()]
            parts = re.split(r"[,:]\s", head)
            asserted = not _UNASSERTED.search(parts[-1] if len(parts) > 1 else supposed + head)
            if cue.start() < parsed_to or "?" in text[cue.end() :] or not asserted:
                continue
            self.named = [self.groups[sign] for sign in re.findall(_G, head)]
            left, noun = self._left(head, previous)
            if (end := self._compare(cue, left, noun, head)) is not None:
                parsed_to, previous = end, left or previous
        if not inside and previous:
            self.subject = previous
        if signs := re.findall(_G, text):
            self.last = self.groups[signs[-1]]

    def _left(self, head: str, inherited: Agents) -> tuple[Agents, str]:
        """Return the agents before a comparison and their noun, as in "A's latency"; "'s" if the noun is missing."""
        joined = re.search(
            r"(?:,|\band|\bor|\bbut|\bthen)\s+(?:(?:\w+ly|also|now|then|is|are|has|have|even|still|not)\s+){0,3}$",
            head,
            re.I,
        )
        signs = list(re.finditer(rf"({_G}|{_NONE}|{_ALL})('s?(?= |$))?", head))
        if joined or not signs:
            return inherited or (self.groups[signs[0][1]] if signs else ()), ""
        if re.search(r"\b(?:it|them) $", head, re.I):
            return self.groups[signs[-1][1]], ""
        for match in reversed(signs):
            between = head[match.end() :]
            if len(between) > 120:
                break
            if not match[2]:
                measured = _MEASURED.search(head[: match.start()])
                return self.groups[match[1]], measured[1] if measured else ""
            noun = _NOUN.match(between + " ")
            if noun or not between.strip(" .0123456789"):
                return self.groups[match[1]], noun[1] if noun else "" if between.strip() else "'s"
        return inherited, ""

    def _right(self, rest: str, left: Agents) -> tuple[Agents, int]:
        """Return the agents after a comparison, and where in ``rest`` the match ends."""
        match = _OBJECT.match(rest)
        if match is None:
            return (), 0
        if match[1].lower() in ("it", "them"):
            others = [who for who in (*self.named[::-1], self.last, self.subject, self.before) if who and who != left]
            return (others[0] if others else ()), match.end()
        return self.groups[match[1]], match.end()

    # --- comparisons ---

    def _compare(self, cue: re.Match[str], left: Agents, noun: str, head: str) -> int | None:
        """Parse the comparison at one cue; returns where the match ends, or None if it compares no agents."""
        kind, word, rest = _KINDS[int((cue.lastgroup or "c0")[1:])], cue[0].lower(), cue.string[cue.end() :]
        if noun and noun != "'s" and (_FOREIGN.search(noun) or _OUTCOME.search(noun) or "'" in head):
            self._criterion(noun)
        if kind in ("first", "first verb", "last", "rank", "superlative"):
            return self._single(kind, cue, left, head, rest)
        if noun == "'s" and kind not in ("up", "differ"):
            return None
        if kind in ("than", "as"):
            return self._than(cue, left, head, rest)
        right, end = self._right(rest, left)
        weak = _WEAK.fullmatch(word) is not None
        right = () if weak and re.match(r"\s(?:it|them)\b", rest, re.I) else right
        if not right and not weak and (match := _AGAINST.search(cue.string)):
            right = () if self.groups[match[1]] == left else self.groups[match[1]]
        if kind == "differ" or (kind == "tie" and re.search("between|differ|separates", word)):
            both = right if len(right) > 1 else tuple(dict.fromkeys((*left, *right)))
            if len(both) < 2:
                return None
            self._add("level" if kind == "tie" else "differ", both, (), "" if kind == "tie" else head)
            return cue.end() + end
        if kind == "tie":
            return self._tie(cue, left, right, end, head, rest)
        if _CHOICE.match(word):
            high, at = self._right(rest, ())
            low, more = self._right(re.sub(r"^\s*(?:over|to)\b", "", rest[at:]), high)
            if not high or not low:
                return None
            self._add("above", high, low, head)
            return cue.end() + at + more
        if not left or not right:
            if left and not weak and kind in ("up", "down"):
                self._note_outsider(left, rest)
            return None
        if word == "over" and not _CHOSEN.search(head):
            return None
        if re.match(r"(?:come|came|get).*close", word):  # "nobody comes close to A", and nothing else that is close
            if left == (_NONE,):
                self._add("first", right, (), "")
            return cue.end() + end if left == (_NONE,) else None
        self._add("above", *((left, right) if kind == "up" else (right, left)), head)
        return cue.end() + end

    def _tie(
        self, cue: re.Match[str], left: Agents, right: Agents, end: int, head: str, rest: str
    ) -> int | None:  # fmt: skip
        """Parse "level with" and its synonyms, between two groups or within one."""
        word = cue[0].lower()
        if not right and len(left) > 1 and not (word.startswith("match") and re.match(r"\s+\w", rest)):
            self._add("level", left, (), head)
            return cue.end()
        if left and right and left[0] not in (_ALL, _NONE):
            self._add("level", left, right, head)
            return cue.end() + end
        if not re.match("similar|match|equal", word):
            self._note_outsider(left, rest)
        return None

    def _than(self, cue: re.Match[str], left: Agents, head: str, rest: str) -> int | None:
        """Parse "better than", "more accurate than", "higher returns than" and "as fast as"."""
        word = cue[0].lower()
        if word.startswith("as "):
            right, end = self._right(rest, left)
            if not left or not right:
                return None
            self._criterion("" if re.match("as (?:bad|poor|weak)", word) else word[3:-3])
            self._add("level", left, right, head)
            return cue.end() + end
        upto = re.search(r"\bthan\b", rest[:80], re.I)
        middle = rest[: upto.start()] if upto else re.split(r"[,.;]", rest[:60])[0]
        generic, amount = (re.fullmatch(pattern, word) for pattern in (f"{_BETTER}|{_WORSE}", _AMOUNT))
        right, end = self._right(rest[upto.start() :], left) if upto else ((), 0)
        end += upto.start() if upto else 0
        if not upto and (match := _AGAINST.search(cue.string)):
            right = self.groups[match[1]]
        if not left and right and (front := re.findall(_G, head)):
            left = self.groups[front[-1]]
        if not left:
            return None
        if not right and upto:
            if not _SELF.match(rest):
                self._note_outsider(left, rest[upto.start() :])
            return None
        if not right:
            ends = r"\s+(?!on\b|in\b|at\b|overall|here|agent|model|system|of the two)[a-z]"
            if not generic or not _LINK.search(head) or re.match(ends, rest, re.I):
                return None
            right = self._the_other(left, cue.string)
            if not right:
                self.found["unclear"] = f"{word} than which agent"
                return cue.end()
        right = tuple(agent for agent in right if agent not in left) or right
        verb = head.split()[-1] if word in ("more", "less") and head.split() else ""
        if amount and middle.strip() and not _SCORELIKE.search(middle):
            self._criterion(middle)
        elif verb and not middle.strip() and not re.search(_G, verb) and not _LINK.search(verb):
            self._criterion(verb)
        elif not generic and not amount:
            self._criterion(word)
        elif generic and (match := _FOREIGN.search(middle)):
            self._criterion(match[0])
        down = re.match(rf"lower|less|fewer|{_WORSE}", word)
        self._add("above", *((right, left) if down else (left, right)), head)
        return cue.end() + end

    def _the_other(self, left: Agents, clause: str) -> Agents:
        """Return the agents that ``left`` is compared with in a sentence that has "better" without "than"."""
        named = tuple(dict.fromkeys(a for group in re.findall(_G, clause) for a in self.groups[group]))
        every = self.names.agents if len(self.names.agents) == 2 else ()
        rest = (tuple(agent for agent in some if agent not in left) for some in (named, self.before, every))
        return next((group for group in rest if group), ())

    def _single(self, kind: str, cue: re.Match[str], left: Agents, head: str, rest: str) -> int | None:
        """Parse first, last, a rank or a superlative, with its agent before it (linked by a verb) or after it."""
        word, end = cue[0].lower(), cue.end()
        between = re.split(f"{_G}|{_NONE}|{_ALL}", head)[-1]
        signed = between != head
        of_mine = re.match(r"'s?(?:\s|$)", between)
        if of_mine and not re.match(
            rf"'s? (?:\w+ |{_D} ){{0,3}}(?:is|was|are|were|ranks|comes|came|scored|scores|remains?)\b", between
        ):
            return None
        if _NO_SUPERLATIVE.match(word):
            return None
        apposed = re.fullmatch(r",?\s*(?:-\s*)?(?:(?:the|our|clear|overall|a|by far|always)\s+)*", between)
        linked = _BEFORE_VERB.fullmatch(between) if kind == "first verb" else _LINK.search(between) or apposed
        pronoun = re.match(r"\W*(?:it|which|who|this)\b", head, re.I) or not head.strip()
        agents = left if linked and (signed or pronoun) and len(between) <= 70 else ()
        if word == "first" and agents and not _RANKED.search(between):
            return None
        after = None if re.search(r"\b(?:its|their|his|our|your)\s+$", head, re.I) else _NAMED_AFTER.match(rest)
        if not agents and after:
            if word == "first" and not re.match(
                r"\s+(?:place|rank|position|spot|agent|model|system|prize)", rest, re.I
            ):
                return None
            agents, end = self.groups[after[1]], cue.end() + after.end()
        if not agents or agents[0] in (_ALL, _NONE):
            return None
        criterion = _FOREIGN.search(rest[:30])
        if kind == "superlative":
            self._criterion(word)
        elif word == "highest" and re.match(r"\s+[a-z]", rest) and not _SCORELIKE.search(rest[:60]):
            self._criterion(rest.strip().split(" ")[0])
        elif criterion and criterion.start() < 25:
            self._criterion(criterion[0])
        if kind == "rank":
            self._add("rank", agents, (), head, rank=next((n for name, n in _RANKS.items() if name in word), 2))
            if word.endswith("only to"):
                first, at = self._right(rest, agents)
                self._add("first", first, (), head)
                return end + at
        else:
            self._add("last" if kind == "last" else "first", agents, (), head)
        return end

    # --- results ---

    def _criterion(self, words: str) -> None:
        """Record the criterion of a comparison that is not on a score."""
        plain = words.strip(" ,")
        if match := _OUTCOME.search(plain):
            self.found["outcome"] = match[0]
        elif plain and not _SCORELIKE.search(plain):
            self.found["foreign"] = plain[:60]

    def _note_outsider(self, left: Agents, rest: str) -> None:
        """Record a comparison with something that is not in the run."""
        apart = _APART.search(self.text)
        match = _ELSE.match(rest) or (_ELSE.match(self.text, apart.end()) if apart else None)
        if match and left and left[0] not in (_ALL, _NONE):
            self.found["others"] = match["else"][:60].rstrip(".")

    def _add(self, kind: RelationKind, left: Agents, right: Agents, head: str, *, rank: int = 0) -> None:
        context = re.split(rf",\s|{_G}", head)[-1][-60:]
        denied = _NOT.search(context) or _DENIAL.search(head) or any(sign in head for sign in self.neither)
        stance: Stance = "denied" if denied else "asserted"
        stance = "not shown" if self.open else stance
        if kind == "above" and (left == (_NONE,) or right == (_NONE,)):
            kind, left, right = ("first", right, ()) if left == (_NONE,) else ("last", left, ())
        elif kind == "above" and (right == (_ALL,) or left == (_ALL,)):
            kind, left, right = ("first", left, ()) if right == (_ALL,) else ("last", right, ())
        elif kind == "level" and left == (_NONE,):
            kind, left, right = "first", right, ()
        right = tuple(agent for agent in right if agent not in left)
        several = right or (kind in ("level", "differ") and len(left) > 1)
        named = left and not {_ALL, _NONE} & {*left, *right}
        if named and (several or kind in ("first", "last", "rank")):
            self.relations.append(Relation(kind, left, right, stance, rank))

    def _size(self, patterns: Sequence[re.Pattern[str]]) -> tuple[float | None, str]:
        """Return a difference in points, or the text of one in another unit."""
        for pattern in patterns:
            for match in pattern.finditer(self.text):
                unit, words = (match["unit"] or "").strip(" -").lower(), match["n"].lower()
                if unit and not unit.startswith(("point", "pt")) and words not in ("a", "an"):
                    return None, match[0].strip()
                if unit.startswith(("point", "pt")) or (not unit and words not in _SMALL):
                    size = _SMALL.get(words) or float(words)
                    # "the difference is -0.6" names no direction, "ahead by -0.6" does
                    return (size if re.match(r"by\b|[\d+-]|scor", match[0], re.I) else abs(size)), ""
        return None, ""


def _p_value(text: str) -> float:
    """Return the number of a p-value, also one with a power of ten."""
    return float(re.sub(r"^10\^?", "1e", re.sub(r"\s?[x×·*]\s?10\^?", "e", text)))
