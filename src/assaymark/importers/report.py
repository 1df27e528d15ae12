"""The result of an import: its records, and a report on counts, missing data and problems."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from itertools import combinations
from json.encoder import encode_basestring as quoted
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

import assaymark.records as records
from assaymark.errors import LISTED, InputError, Problem
from assaymark.notebook import Part, Result
from assaymark.portfolio.broker import CheckKind

EXAMPLES = 3
"""Number of examples that a report has for each kind of missing data."""

NO_TEXT = "text"
"""Entry of ``Decision.missing`` if the agent wrote no text that a judge can read."""

REPLAYED: Final = "replayed"
"""Flag of a decision that was written more than a day after its step."""

NEXT: Final = "to the agent's next step"
"""Horizon of an outcome from one step of an agent to its next."""

NO_NEXT: Final = "outcome at a next step"
"""Name of the missing outcome of a decision whose agent has no next step, or no value at it."""

WHOLE: Final = "whole log"
"""Horizon of an outcome from an agent's first step to its last."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Number of times that something was missing, and the first few places."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImportReport(Result):
    """The account of one import: denominators first, then everything a reader should know before using the records.

    ``good`` and ``bad`` count decisions: imported, and left out because of ``problems`` of their own or of the round
    they belong to. ``missing`` counts data that the source names but does not contain, ``no_place`` data that it
    contains and that no record has a field for: it was read, but is not in the run folder's tables.
    ``verified`` counts files whose hash was recomputed and matched, ``unverifiable`` those that a hash list names but
    that are not there, both by file name. ``never_met`` lists the pairs of agents without a common question: nothing
    can be said about them as a pair. ``replicates`` counts decisions beyond the first of an agent on a question; at 0
    an agent's own noise is undefined.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    source: str
    good: int
    bad: int
    counts: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    no_place: Mapping[str, Missing] = field(default_factory=dict)
    verified: Mapping[str, int] = field(default_factory=dict)
    unverifiable: Mapping[str, int] = field(default_factory=dict)
    no_text: tuple[str, ...] = ()
    never_met: tuple[tuple[str, str], ...] = ()
    replicates: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def _parts(self) -> Iterable[Part]:
        return self.lines()

    def lines(self) -> tuple[str, ...]:
        """Return the report as plain lines, most important first."""
        out = [f"{self.source}: {self.good} decision{'s' * (self.good != 1)} imported, {self.bad} left out"]
        for before, counts in (("", self.counts), ("format ", self.formats), ("flag ", self.flags)):
            out += [f"{before}{name}: {n}" for name, n in counts.items()]
        if self.verified:
            out.append(f"hashes verified: {sum(self.verified.values())}")
        if self.unverifiable:
            out.append(f"hashes of absent files: {sum(self.unverifiable.values())}")
        for before, items in (("missing", self.missing), ("no place for", self.no_place)):
            out += [f"{before} {name}: {gap.count} (such as {', '.join(gap.examples)})" for name, gap in items.items()]
        if self.no_text:
            out.append(f"without any text to judge: {len(self.no_text)}")
        out += [f"never met: {a} and {b}" for a, b in self.never_met]
        rest = len(self.problems) - LISTED
        out += [*self.notes, *map(str, self.problems[:LISTED])]
        return (*out, f"and {rest} more") if rest > 0 else tuple(out)


@dataclass(frozen=True, slots=True)
class Imported:
    """The records of one import. ``contexts`` are by content id; ``texts`` has the JSON of those already encoded."""

    decisions: tuple[records.Decision, ...]
    contexts: Mapping[str, records.Context]
    outcomes: tuple[records.Outcome, ...]
    report: ImportReport
    texts: Mapping[str, str] = field(default_factory=dict)


class Tally:
    """Collects counts, missing data and problems for the report while an import runs."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.verified: Counter[str] = Counter()
        self.unverifiable: Counter[str] = Counter()
        self.texts: dict[str, str] = {}
        self._missing: dict[str, Missing] = {}
        self._no_place: dict[str, Missing] = {}

    def problem(self, place: str, message: str) -> None:
        """Note one problem of the input."""
        self.problems.append(Problem(place, message))

    def missing(self, name: str, example: object, times: int = 1, counts: dict[str, Missing] | None = None) -> None:
        """Count something that the source should contain and does not."""
        counts = self._missing if counts is None else counts
        before, example = counts.get(name, Missing(count=0)), str(example)
        more = () if len(before.examples) == EXAMPLES or example in before.examples else (example,)
        counts[name] = Missing(count=before.count + times, examples=(*before.examples, *more))

    def no_place(self, name: str, example: object, times: int = 1) -> None:
        """Count something in the source that no record has a field for."""
        self.missing(name, f"{example!s:.60}", times, self._no_place)

    def refuse(self, source: str, keep_going: bool = False) -> None:
        """Raise `InputError` with every problem, if there is any, unless ``keep_going``."""
        if self.problems and not keep_going:
            raise InputError(source, list(dict.fromkeys(self.problems)))

    def imported(
        self, source: str, decisions: Sequence[records.Decision], contexts: Mapping[str, records.Context],
        outcomes: Sequence[records.Outcome], bad: int, notes: Sequence[str] = (), lacking: str = "",
    ) -> Imported:  # fmt: skip
        """Build the result of the import, without contexts that no decision uses.

        ``lacking`` is the name of the missing datum of decisions without an outcome, or without one at the next step
        (`NO_NEXT`); if it is empty, the importer has noted missing data itself.
        """
        resolved = {outcome.record_id for outcome in outcomes if lacking != NO_NEXT or outcome.horizon == NEXT}
        for decision in decisions if lacking else ():
            for name in (*decision.missing, *((lacking,) if decision.record_id not in resolved else ())):
                if name != NO_TEXT:  # reported on a separate line
                    self.missing(name, decision.record_id)
        used = {decision.context_id for decision in decisions}
        contexts = {name: context for name, context in contexts.items() if name in used}
        counts = {
            "decisions": len(decisions), "contexts": len(contexts), "agents": len({d.agent.id for d in decisions}),
            "clusters": len({d.cluster for d in decisions}), "outcomes": len(outcomes),
            "facts": sum(len(context.facts) for context in contexts.values()),
        }  # fmt: skip
        cycles: dict[str, set[str]] = {}
        for decision in decisions:
            cycles.setdefault(decision.agent.id, set()).add(decision.cycle)
        report = ImportReport(
            source=source, good=len(decisions), bad=bad, counts=counts | dict(self.counts),
            formats=dict(sorted(Counter(d.format for d in decisions).items())),
            flags=dict(sorted(Counter(flag for d in decisions for flag in d.flags).items())),
            missing=dict(self._missing), no_place=dict(self._no_place),
            verified=dict(sorted(self.verified.items())), unverifiable=dict(sorted(self.unverifiable.items())),
            no_text=tuple(d.record_id for d in decisions if NO_TEXT in d.missing),
            never_met=tuple((a, b) for a, b in combinations(sorted(cycles), 2) if cycles[a].isdisjoint(cycles[b])),
            replicates=sum(d.replicate > 1 for d in decisions), notes=tuple(notes),
            problems=tuple(dict.fromkeys(self.problems)),
        )  # fmt: skip
        return Imported(tuple(decisions), contexts, tuple(outcomes), report, self.texts)


class TableProblems:
    """Problems of a table by kind, so that frequent ones do not hide others: at most `LISTED` of each are stored."""

    def __init__(self, source: str) -> None:
        self.source, self._more = source, Counter[str]()
        self._kinds: dict[str, list[tuple[int, Problem]]] = {}

    def add(self, place: str, message: str, row: int = -1, kind: str = "") -> None:
        """Add a problem at a row; -1 for one of the whole table."""
        problems = self._kinds.setdefault(kind, [])
        if len(problems) < LISTED:
            problems.append((row, Problem(place, message)))
        else:
            self._more[kind] += 1

    def rows(self, bad: NDArray[Any], say: Callable[[int], tuple[str, str]]) -> None:
        """Add one problem per row (numbers or a mask) as a new kind; ``say`` gives place and message of listed rows."""
        kind, places = f"{len(self._kinds)}", np.flatnonzero(bad) if bad.dtype == bool else np.sort(bad)
        for place in places[:LISTED].tolist():
            self.add(*say(place), place, kind)
        self._more[kind] += max(0, places.size - LISTED)

    @property
    def summaries(self) -> tuple[str, ...]:
        """The first problem of each kind with a count of the others, as notes on rows that are left out."""
        counts = {kind: len(problems) - 1 + self._more[kind] for kind, problems in self._kinds.items()}
        return tuple(
            f"{problems[0][1]}" + (f" (and {counts[kind]} more like it)" if counts[kind] else "")
            for kind, problems in self._kinds.items()
        )

    def refuse(self) -> None:
        """Raise `InputError` if there are problems: the first of each kind, then the second, ..., sorted by row."""
        ranked = [(place, *problem) for problems in self._kinds.values() for place, problem in enumerate(problems)]
        ranked.sort(key=lambda entry: entry[0])
        if ranked:
            shown = sorted(ranked[:LISTED], key=lambda entry: entry[1])
            more = len(ranked) - len(shown) + self._more.total()
            raise InputError(self.source, [problem for *_, problem in shown], more)


def context_id(context: records.Context, cache: dict[int, tuple[Any, str]], texts: dict[str, str]) -> str:
    """Compute a context's `content_id`; ``cache`` has the JSON of shared parts by identity, ``texts`` the whole."""
    for fact in context.facts:
        if id(fact) not in cache:  # its keys in alphabetical order; its value was found finite when it was read
            value = quoted(fact.value) if isinstance(fact.value, str) else repr(fact.value)
            text = (
                f'{{"as_of":{_time(fact.as_of)},"available_at":{_time(fact.available_at)},"field":{quoted(fact.field)}'
                f',"id":{quoted(fact.id)},"instrument":{quoted(fact.instrument)},"note":{quoted(fact.note)}'
                f',"source":{quoted(fact.source)},"unit":{quoted(fact.unit)},"value":{value}}}'
            )
            cache[id(fact)] = fact, text
    text = records.canonical_json(replace(context, facts=(), instruments=(), series=()))
    for name in ("facts", "instruments", "series"):
        parts: tuple[Any, ...] = getattr(context, name)
        for part in parts:
            if id(part) not in cache:
                cache[id(part)] = part, records.canonical_json(part)
        # quotes inside JSON strings are escaped, so the key occurs only once
        text = text.replace(f'"{name}":[]', f'"{name}":[{",".join(cache[id(part)][1] for part in parts)}]', 1)
    texts[name := records.sha256_text(text)] = text
    return name


_time = lru_cache(maxsize=4096)(records.canonical_json)  # all facts of a context share a few


def agent_of(name: str, model: str) -> records.Agent:
    """Build an agent whose family is the vendor of its model, or the model itself if the vendor is unknown."""
    return records.Agent(name, maker_of(model) or model, model)


def rationales_of(texts: Iterable[tuple[str, records.RationaleKind]]) -> tuple[records.Rationale, ...]:
    """Build rationales from texts with their kinds, in order, without blank ones."""
    return tuple(records.Rationale(text, kind) for text, kind in texts if text.strip())


def text_missing(rationales: Iterable[records.Rationale]) -> tuple[str, ...]:
    """Return `NO_TEXT` as missing if no rationale is judged; texts of kind arena and holding are not judged."""
    return () if any(r.kind not in ("arena", "holding") and r.text.strip() for r in rationales) else (NO_TEXT,)


def week_of(day: date) -> str:
    """Return the ISO week of a day, the default cluster of sources without clusters."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def replay_notes(decisions: Iterable[records.Decision], noun: str) -> list[str]:
    """Return a note on decisions that were written more than a day after their ``noun``, if there are any."""
    late = sum(REPLAYED in decision.flags for decision in decisions)
    were = "decision was" if late == 1 else "decisions were"
    note = f"{late} {were} written more than a day after the {noun}: kept, flagged {REPLAYED}"
    return [f"{note}; the models may have known what came next"] if late else []


EQUAL_WEIGHT: Final = "equal weight"
"""Baseline that buys every symbol with equal weight at the first step, and holds."""

CASH: Final = "cash"
"""Baseline that stays in cash."""

RecordedFill = tuple[str, str, str, int, str, float, float | None, float]
"""Day, agent, record id, number, symbol, signed units, price (None if unknown) and cost of an executed order."""

RecordedBook = tuple[str, str, str, float, float, float, Mapping[str, float], tuple[str, ...]]
"""Day, agent, state, cash, NAV, costs, positions, and the symbols that are valued at an earlier price.

The state is ``ok``, or ``not stated`` if the log has no portfolio on that day and the previous one is carried over."""

RecordedCheck = tuple[str, CheckKind, int, int, tuple[str, ...]]
"""Agent, kind, number of checks and of passed checks, and the mismatches: record id, tab, sentence."""


@dataclass(slots=True)
class RecordedTrack:
    """One track of a log: capital, symbols with prices, the day of each decision, and rows for a season's tables."""

    capital: float
    currency: str
    universe: tuple[str, ...]
    days: Mapping[str, str]
    fills: list[RecordedFill] = field(default_factory=list)
    books: list[RecordedBook] = field(default_factory=list)
    baselines: list[RecordedBook] = field(default_factory=list)
    checks: list[RecordedCheck] = field(default_factory=list)


# Vendors by model name: a dated table, whose use is reported and can be overridden by ``--family``.

MAKERS_OF: Final = "2026-11"
"""Month of the last revision of the vendor table."""

MAKERS: Final = {
    "openai": r"gpt|o[134](?![a-z0-9])|chatgpt|openai|davinci|codex", "anthropic": r"claude|anthropic",
    "google": r"gemini|gemma|palm-2|learnlm|google", "meta": r"llama|meta(?![a-z])", "alibaba": r"qwen|qwq|qvq|tongyi",
    "deepseek": r"deepseek", "mistral": r"mistral|mixtral|ministral|codestral|magistral|pixtral", "xai": r"grok|xai",
    "cohere": r"command-|cohere|aya-", "microsoft": r"phi|wizardlm|microsoft", "lg": r"exaone",
    "moonshot": r"kimi|moonshot", "zhipu": r"glm|chatglm|zhipu", "minimax": r"minimax|abab", "01-ai": r"yi(?![a-z])",
    "nvidia": r"nemotron|nvidia", "ai21": r"jamba|jurassic", "amazon": r"nova-|titan-|amazon",
    "ibm": r"granite-|ibm(?![a-z])", "databricks": r"dbrx|dolly", "upstage": r"solar-|upstage", "yanolja": r"eeve",
    "tencent": r"hunyuan", "baidu": r"ernie", "bytedance": r"doubao|seed(?![a-z])", "tii": r"falcon-",
    "lmsys": r"vicuna|fastchat", "stanford": r"alpaca-", "perplexity": r"sonar-|perplexity|pplx", "reka": r"reka-",
    "snowflake": r"snowflake", "allenai": r"olmo|tulu",
}  # fmt: skip
_FOUND: Final = {maker: re.compile(rf"(?<![a-z0-9])(?:{words})", re.I) for maker, words in MAKERS.items()}
_PERSON: Final = re.compile(r"(?<![a-z])(?:humans?|person|people|expert|annotator|crowd(?:worker)?)(?![a-z])", re.I)


def maker_of(name: str) -> str | None:
    """Return the vendor of a model, by the first known word of its name; None if it has none."""
    places = {maker: match.start() for maker, words in _FOUND.items() if (match := words.search(name))}
    return min(places, key=lambda maker: (places[maker], maker)) if places else None


def family_of(name: str) -> str:
    """Normalise a vendor's name to its spelling in the table; unknown names are only stripped."""
    plain = name.strip().lower()
    return plain if plain in MAKERS else name.strip()


def is_person(name: str) -> bool:
    """True if a judge's name denotes a person: human_1, expert-a."""
    return _PERSON.search(name.replace("_", " ")) is not None
