"""Extract comparisons from text: agents above, below, first or level, on which score, and by how much.

A rule-based parser without a model: it matches the phrases in ``comparisons.toml``. Its accuracy is measured on
labelled sentences (``docs/validation.md``). Patterns are bounded, so parsing takes linear time.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
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
    """One comparison: ``left`` above, level with or different from ``right``; or first, last or at ``rank``.

    ``scores`` are those of its own clause, where every comparison of the sentence has such.
    """

    kind: RelationKind
    left: Agents
    right: Agents = ()
    stance: Stance = "asserted"
    rank: int = 0
    scores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A parsed sentence: the comparisons of agents in it.

    ``gap`` is a difference in points as it is written, or a bound of one by its ``gap_sign``, ``margin`` a bound for
    agents that are level, ``p`` a stated p-value behind ``p_sign``, ``levels`` the scores of agents; ``rest`` is the
    text without these and without names, ``unread`` what of it no run can check.
    ``outcome``, ``foreign``, ``share``, ``others``, ``sweeping`` and ``unclear`` hold words that the
    scores of a run cannot decide.
    """

    relations: tuple[Relation, ...]
    scores: tuple[str, ...] = (AGGREGATE,)
    gap: str = ""
    gap_sign: Literal["", "<", ">"] = ""
    margin: float | None = None
    p: float | None = None
    p_sign: str = ""
    levels: tuple[tuple[str, str], ...] = ()
    rest: str = ""
    unread: tuple[str, ...] = ()
    significant: bool = False
    outcome: str = ""
    foreign: str = ""
    share: str = ""
    others: str = ""
    sweeping: str = ""
    unclear: str = ""


TABLE: Final = tomllib.loads(files("assaymark.claims").joinpath("comparisons.toml").read_text(encoding="utf-8"))
_G: Final = "[\ue000-\uefff]"  # placeholder characters for agents, for all or no others, and for scores
_ALL, _NONE, _D, _EVERY = "\uf600", "\uf601", "[\uf700-\uf8fe]", "\uf8ff"
NUMERALS: Final = {count_words(n): n for n in range(1, 13)}
"""The numbers that are written as words."""
_SMALL: Final = {words: str(n) for words, n in NUMERALS.items()} | {"half a": "0.5", "a": "1", "an": "1"}
_NUMBER: Final = rf"(?P<n>[+-]?\d{{1,6}}(?:\.\d{{1,6}})?|\.\d{{1,6}}|{'|'.join(_SMALL)})"
_UNIT: Final = r"(?P<unit>\s?%| ?percent(?:age points?)?| ?pp\b|[ -]points?\b| ?pts?\b| ?x\b| times\b|-?fold\b)"


def _filled(words: str | list[str]) -> str:
    """Return an entry of the table as one pattern, the signs of other entries replaced."""
    text = f"(?:{'|'.join(words)})" if isinstance(words, list) else words
    signs = {
        "{G}": _G, "{ALL}": _ALL, "{NONE}": _NONE, "{D}": _D, "{EVERY}": _EVERY, "{NUMBER}": _NUMBER, "{UNIT}": _UNIT,
        "{NUMERALS}": "|".join(NUMERALS),
    }  # fmt: skip
    for sign in re.findall(r"\{[A-Z_]+\}", text):
        text = text.replace(sign, signs.get(sign) or _filled(TABLE[sign[1:-1].lower()]))
    return text


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return an entry of ``comparisons.toml`` as a compiled pattern."""
    return re.compile(_filled(TABLE[name]), re.I)


@cache
def _patterns(name: str) -> list[re.Pattern[str]]:
    return [re.compile(_filled(words), re.I) for words in TABLE[name]]


_CUES: Final[Sequence[tuple[str, str]]] = [(kind, _filled(words)) for kind, words in TABLE["cues"]]
_CUE: Final = re.compile("|".join(f"(?P<c{at}>{words})" for at, (_, words) in enumerate(_CUES)), re.I)
_PLAINER: Final = [(re.compile(_filled(words), re.I), plainer) for words, plainer in TABLE["plainer"]]
_RANKS: Final = {"second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5}
COMMON: Final = frozenset(TABLE["common"].split())
"""Common words: agents with these names are matched by their aliases only."""
_PLAIN: Final = frozenset(TABLE["plain"].split())


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
            if not (longer or inside or re.match(rf"[\s-](?:{TABLE['sizes']})\b|@[\w.]", text[end : end + 20], re.I)):
                yield start, end, self.by_key[name_key(match[0])]
                before = end


def read_sentence(sentence: str, names: RunNames, before: Sequence[str] = ()) -> ParsedSentence | None:
    """Parse a sentence; None if it asserts nothing on agents of the run, or of those named just ``before`` it."""
    if len(sentence) > LONGEST or sentence.rstrip(" \"')*_”’").endswith("?"):
        return None
    if not (before and pattern("it").match(sentence)) and next(names.mentions(sentence), None) is None:
        return None
    return _SentenceParser(sentence, names, tuple(before)).parse()


class _SentenceParser:
    """Parses the clauses of one sentence from left to right, with placeholders for groups of agents and for scores."""

    def __init__(self, sentence: str, names: RunNames, before: Agents) -> None:
        self.names, self.before = names, before
        self.groups: dict[str, Agents] = {_ALL: (_ALL,), _NONE: (_NONE,)}
        self.neither: set[str] = set()
        self.any_other = re.search(r"\bany\b", sentence, re.I) is not None
        self.scores: dict[str, str] = {}
        self.text = self._mask(sentence)
        self.rest = self.clause = self.text  # what is not read yet, and the clause that is read
        self.relations, self.here = list[Relation](), tuple[str, ...]()
        self.found = dict.fromkeys(("outcome", "foreign", "others", "unclear"), "")
        self.subject = before[:1] if pattern("it").match(self.text) else ()
        self.last, self.open = self.subject, bool(pattern("open").search(self.text))
        self.named: list[Agents] = []

    def _mask(self, sentence: str) -> str:
        text = sentence.translate(str.maketrans("’‘“”−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "''\"\"--0123456789"))
        text, pieces, at = " ".join(text.split()), list[str](), 0
        for n, (start, end, agent) in enumerate(self.names.mentions(text)):
            self.groups[sign := chr(0xE000 + n)] = (agent,)
            pieces += [text[at:start], sign]
            at = end
        text = "".join([*pieces, text[at:]])
        for n, (named, score) in enumerate(self.names.scored[:500]):
            self.scores[sign := chr(0xF700 + n)] = score
            text = named.sub(sign, text)
        text = pattern("every_score").sub(f"on {_EVERY}", text)
        for plain, words in _PLAINER:
            text = plain.sub(words, text)
        return pattern("and").sub(self._merge_names, text)

    def _merge_names(self, match: re.Match[str]) -> str:
        """Replace agents that are named together by one placeholder."""
        signs, text = re.findall(_G, match[0]), match.string
        follows = pattern("cue_follows").match(text, match.end())
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
        text, at, clauses = self.text, 0, list[tuple[str, str]]()
        for cut in [*pattern("split").finditer(text), None]:
            end = len(text) if cut is None else cut.start()
            clauses.append((text[at:end], text[:at]))
            at = end if cut is None else cut.end()
        opens = [clause for clause, _ in clauses if pattern("open").search(clause)]
        # "B and C cannot be ranked" leaves their order open; "but not significantly", that of the sentence
        everywhere = any(len(self._agents(clause)) < 2 for clause in opens)
        left_open = list[str]()
        for clause, before in clauses:
            self.open, known = everywhere or clause in opens, len(self.relations)
            self.here, self.clause = tuple(dict.fromkeys(self._scores(clause))), clause
            self._clause(clause, before)
            left_open += [clause] if self.open and not everywhere and len(self.relations) == known else []
        for part in [text] if everywhere and not self.relations else left_open:
            named = self._agents(part)  # no direction, only that no order is shown
            if len(named) > 1 or (named and re.search(r"\b(?:first|best)\b", part, re.I)):
                self.relations.append(Relation("differ" if len(named) > 1 else "first", named, (), "not shown"))
        levels = self._levels()
        if not any((self.relations, opens, self.found["others"], pattern("unasserted").search(text))):
            # "A scores 4.1, B 3.9" compares them by their scores
            for (high, winner), (low, other) in pairwise(sorted(((float(n), who) for who, n in levels), reverse=True)):
                if high > low:
                    self._add("above", (winner,), (other,), "")
        if not (self.relations or self.found["others"] or self.found["unclear"] or levels):
            return None
        gap, sign, share = self._size(_patterns("gap"))
        margin, _, rough = self._size(_patterns("margin"))
        if (asked := pattern("benchmark").search(text) or pattern("people").search(text)) and not self.found["foreign"]:
            self.found["foreign"] = asked[1]
        words = {of: next((m[0] for m in pattern(of).finditer(text)), "") for of in ("sweeping", "outcome", "factor")}
        number, sign_of_p, p = pattern("p_value").search(text), "", None
        if number and number["p"]:
            self._read(*number.span())
            exponent = re.sub(r"^10\^?", "1e", re.sub(r"\s?[x×·*]\s?10\^?", "e", number["p"]))
            p, sign_of_p = float(exponent), number["sign"].lower()
        unread = [number[0]] if number and p is None and not number["sign"].isalpha() else []
        unread += [match[0] for name in ("partly", "scope") for match in pattern(name).finditer(text)]
        for match in pattern("no_size").finditer(self.rest):
            self._read(*match.span())
        apart = all(one.scores for one in self.relations)
        relations = (one if apart else replace(one, scores=()) for one in self.relations)
        scores = tuple(score for score in dict.fromkeys(self._scores(text)) if score != AGGREGATE)
        return ParsedSentence(
            tuple(dict.fromkeys(relations)), scores or (AGGREGATE,), gap, sign,
            0.0 if rough else float(margin) if margin else None, p, sign_of_p, levels, self.rest, tuple(unread),
            bool(pattern("significant").search(text)) and not opens, self.found["outcome"] or words["outcome"],
            self.found["foreign"], share or rough or words["factor"], self.found["others"], words["sweeping"],
            self.found["unclear"],
        )  # fmt: skip

    def _agents(self, text: str) -> Agents:
        """Return the agents that a part of the text names."""
        return tuple(dict.fromkeys(agent for group in re.findall(_G, text) for agent in self.groups[group]))

    def _scores(self, text: str) -> list[str]:
        """Return the scores that a part of the text names."""
        return [self.scores[sign] for sign in text if sign in self.scores] + [*self.names.scores] * (_EVERY in text)

    def _read(self, start: int, end: int) -> None:
        """Blank out what has been read of `rest`."""
        self.rest = f"{self.rest[:start]}{' ' * (end - start)}{self.rest[end:]}"

    def _levels(self) -> tuple[tuple[str, str], ...]:
        """Return the scores that agents are said to have, as in "A scores 4.1" or, of several, "A (4.1)"."""
        found = [match for form in _patterns("own_score") for match in form.finditer(self.text)]
        several = len({match["who"] for match in found}) > 1
        found = [match for match in found if several or pattern("scorelike").search(match[0])]
        for match in found:
            self._read(*match.span("n"))
        return tuple((agent, match["n"]) for match in found for agent in self.groups[match["who"]])

    # --- clauses ---

    def _clause(self, text: str, before: str) -> None:
        inside = before.endswith("(") or text.lower().startswith(("which ", "who "))
        previous = self.last if inside else self.subject or self.last
        supposed = re.split(r"[.;:,](?:\s|$)", before)[-1]
        parsed_to = 0
        for cue in _CUE.finditer(text):
            head = text[: cue.start()]
            parts = re.split(r"[,:]\s", head)
            asserted = not pattern("unasserted").search(parts[-1] if len(parts) > 1 else supposed + head)
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
                measured = pattern("measured").search(head[: match.start()])
                return self.groups[match[1]], measured[1] if measured else ""
            noun = pattern("noun").match(between + " ")
            if noun or not between.strip(" .0123456789"):
                return self.groups[match[1]], (noun[1] or "") if noun else "" if between.strip() else "'s"
        return inherited, ""

    def _right(self, rest: str, left: Agents) -> tuple[Agents, int]:
        """Return the agents after a comparison, and where in ``rest`` the match ends."""
        match = pattern("object").match(rest)
        if match is None:
            return (), 0
        if match[1].lower() in ("it", "them"):
            others = [who for who in (*self.named[::-1], self.last, self.subject, self.before) if who and who != left]
            return (others[0] if others else ()), match.end()
        return self.groups[match[1]], match.end()

    # --- comparisons ---

    def _compare(self, cue: re.Match[str], left: Agents, noun: str, head: str) -> int | None:
        """Parse the comparison at one cue; returns where the match ends, or None if it compares no agents."""
        kind, word, rest = _CUES[int((cue.lastgroup or "c0")[1:])][0], cue[0].lower(), cue.string[cue.end() :]
        if (
            noun
            and noun != "'s"
            and (pattern("foreign").search(noun) or pattern("outcome").search(noun) or "'" in head)
        ):
            self._criterion(noun)
        if kind in ("first", "first verb", "last", "rank", "superlative"):
            return self._single(kind, cue, left, head, rest)
        if noun == "'s" and kind not in ("up", "differ"):
            return None
        if kind in ("than", "as"):
            return self._than(cue, left, head, rest)
        right, end = self._right(rest, left)
        weak = pattern("weak").fullmatch(word) is not None
        right = () if weak and re.match(r"\s(?:it|them)\b", rest, re.I) else right
        if not right and not weak and (match := pattern("against").search(cue.string)):
            right = () if self.groups[match[1]] == left else self.groups[match[1]]
        if kind == "differ" or (kind == "tie" and re.search("between|differ|separates", word)):
            both = right if len(right) > 1 else tuple(dict.fromkeys((*left, *right)))
            if len(both) < 2:
                return None
            self._add("level" if kind == "tie" else "differ", both, (), "" if kind == "tie" else head)
            return cue.end() + end
        if kind == "tie":
            return self._tie(cue, left, right, end, head, rest)
        if pattern("choice").match(word):
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
        continued = word in ("then", "followed by")
        if word == "over" or continued:
            if not pattern("listed" if continued else "chosen").search(head):
                return None
            left = self.named[-1] if continued and self.named else left
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
        generic, amount = (pattern(name).fullmatch(word) for name in ("generic", "any_amount"))
        right, end = self._right(rest[upto.start() :], left) if upto else ((), 0)
        end += upto.start() if upto else 0
        if not upto and (match := pattern("against").search(cue.string)):
            right = self.groups[match[1]]
        if not left and right and (front := re.findall(_G, head)):
            left = self.groups[front[-1]]
        if not left:
            return None
        if not right and upto:
            if not pattern("than_self").match(rest):
                self._note_outsider(left, rest[upto.start() :])
            return None
        if not right:
            ends = r"\s+(?!on\b|in\b|at\b|overall|here|agent|model|system|of the two)[a-z]"
            if not generic or not pattern("linked").search(head) or re.match(ends, rest, re.I):
                return None
            # The agents that are named otherwise, or before, or the other one of two
            every = self.names.agents if len(self.names.agents) == 2 else ()
            groups = (self._agents(cue.string), self.before, every)
            rest_of = (tuple(agent for agent in group if agent not in left) for group in groups)
            right = next((group for group in rest_of if group), ())
            if not right:
                self.found["unclear"] = f"{word} than which agent"
                return cue.end()
        right = tuple(agent for agent in right if agent not in left) or right
        verb = head.split()[-1] if word in ("more", "less") and head.split() else ""
        if amount and middle.strip() and not pattern("scorelike").search(middle):
            self._criterion(middle)
        elif verb and not middle.strip() and not re.search(_G, verb) and not pattern("linked").search(verb):
            self._criterion(verb)
        elif not generic and not amount:
            self._criterion(word)
        elif generic and (match := pattern("foreign").search(middle)):
            self._criterion(match[0])
        elif generic and not pattern("linked").search(head) and (did := re.search(r"[a-z]+ [a-z]+\s*$", head)):
            self._criterion(did[0])  # "understands markets better than"
        down = pattern("down_amount").match(word)
        self._add("above", *((right, left) if down else (left, right)), head)
        return cue.end() + end

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
        if pattern("no_superlative").match(word):
            return None
        apposed = re.fullmatch(r",?\s*(?:-\s*)?(?:(?:the|our|clear|overall|a|by far|always)\s+)*", between)
        linked = (
            pattern("before_verb").fullmatch(between)
            if kind == "first verb"
            else pattern("linked").search(between) or apposed or head.startswith("with ")
        )
        pronoun = re.match(r"\W*(?:it|which|who|this|with)\b", head, re.I) or not head.strip()
        agents = left if linked and (signed or pronoun) and len(between) <= 70 else ()
        if word == "first" and agents and not pattern("ranked").search(between):
            return None
        after = (
            None if re.search(r"\b(?:its|their|his|our|your)\s+$", head, re.I) else pattern("named_after").match(rest)
        )
        if not agents and after:
            if word == "first" and not re.match(
                r"\s+(?:place|rank|position|spot|agent|model|system|prize)", rest, re.I
            ):
                return None
            agents, end = self.groups[after[1]], cue.end() + after.end()
        if not agents or agents[0] in (_ALL, _NONE):
            return None
        criterion = pattern("foreign").search(rest[:30])
        if kind == "superlative":
            self._criterion(word)
        elif word == "highest" and re.match(r"\s+[a-z]", rest) and not pattern("scorelike").search(rest[:60]):
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
        if match := pattern("outcome").search(plain):
            self.found["outcome"] = match[0]
        elif plain and not pattern("scorelike").search(plain):
            self.found["foreign"] = plain[:60]

    def _note_outsider(self, left: Agents, rest: str) -> None:
        """Record a comparison with something that is not in the run."""
        apart = pattern("apart").search(self.text)
        match = pattern("named_else").match(rest) or (
            pattern("named_else").match(self.text, apart.end()) if apart else None
        )
        if match and left and left[0] not in (_ALL, _NONE):
            self.found["others"] = match["else"][:60].rstrip(".")

    def _add(self, kind: RelationKind, left: Agents, right: Agents, head: str, *, rank: int = 0) -> None:
        context = re.split(rf",\s|{_G}", head)[-1][-60:]
        negated = pattern("negation").search(context)
        if negated and self.any_other and {_ALL} & {*left, *right}:  # "not worse than any other"
            left, right, head, negated = right, left, "", None
        denied = negated or pattern("denial").search(head) or self.neither.intersection(self.clause)
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
            self.relations.append(Relation(kind, left, right, stance, rank, self.here))
            if kind == "above" and stance == "asserted" and pattern("only").search(head):
                others = tuple(agent for agent in self.names.agents if agent not in {*left, *right})
                self.relations.append(Relation(kind, others, right, "denied", 0, self.here))

    def _size(self, patterns: Sequence[re.Pattern[str]]) -> tuple[str, Literal["", "<", ">"], str]:
        """Return a difference in points with the sign of a bound, or the text of one in another unit."""
        for form in patterns:
            for match in form.finditer(self.text):
                unit, words = (match["unit"] or "").strip(" -").lower(), match["n"].lower()
                if re.search(r"\d (?:and|to) $", self.text[: match.start("n")]):
                    continue  # the end of a range
                if unit and not unit.startswith(("point", "pt")) and words not in ("a", "an"):
                    return "", "", match[0].strip()
                if unit.startswith(("point", "pt")) or (not unit and words not in _SMALL):
                    self._read(*match.span("n"))
                    size, before = _SMALL.get(words, words), self.text[: match.start("n")]
                    # "the difference is -0.6" names no direction, "ahead by -0.6" and "A beats B (-0.6)" do
                    ahead = [one.left[:1] for one in self.relations[:1]] == [self._agents(self.text)[:1]]
                    signed = r"by\b|[\d+-]|scor" + (r"|\(\s*-" if ahead else "")
                    size = size if re.match(signed, match[0], re.I) else size.lstrip("+-")
                    bound: Literal["", "<", ">"] = "<" if pattern("less").search(before) else ""
                    return size, bound or (">" if pattern("more").search(before) else ""), ""
        return "", "", ""
