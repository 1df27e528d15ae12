"""A frozen-input round as a `Context`: what the agents were shown, as far as it was kept, and what was not kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, timezone
from json.encoder import encode_basestring as quoted
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, ConfigDict, Field

from assaymark.importers.capitalbench.briefing import (
    DECISION,
    QUALITY,
    RETURNS,
    briefing_facts,
    quality_facts,
    table_facts,
)
from assaymark.importers.read import joined, moment, note, object_as_shape, yaml_tree
from assaymark.importers.report import SHA256, Tally, as_shape
from assaymark.records import Constraint, Context, Fact, Instrument, canonical_json, sha256_text

# When a round's information ended, read from the briefing in the many ways it was written there.


_MENTION = re.compile(r"(?:research|information|data)\s+cut-?off|available\s+through|frozen\s+at", re.I)
_ISO = re.compile(
    r"(?P<day>20\d\d-\d\d-\d\d)[T ](?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)\s?"
    r"(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d:\d\d)"
)
_WORDS = re.compile(
    r"(?P<day>[A-Z][a-z]+ \d{1,2}, 20\d\d),?(?: at)? (?P<clock>\d{1,2}:\d\d(?::\d\d)?)\s?(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s?(?P<zone>UTC\b|GMT\b|[A-Z][A-Za-z]+/[A-Za-z_]+)"
)

# How far behind its mention a cutoff is looked for: sentences are shorter, and a hostile line can be endless.
_REACH = 300


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The last moment the material speaks of, and where that was read."""

    at: datetime
    source: str


def stated(text: str) -> tuple[datetime, int] | None:
    """The cutoff a text states and the line where it does, or None.

    Only a time that follows a mention of the cutoff counts: in its line or, below a heading, in the next line that
    holds something. A decision deadline is never taken for it.

    >>> stated("# Briefing\\n\\nResearch cutoff: July 17, 2026 at 10:15 UTC. Deadline: July 18, 2026 at 09:00 UTC")
    (datetime.datetime(2026, 7, 17, 10, 15, tzinfo=datetime.timezone.utc), 3)
    >>> stated("Decision deadline: 2026-07-18T09:00:00Z") is None
    True
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        for mention in _MENTION.finditer(line):
            found = _first_time(_before_deadline(line[mention.end() : mention.end() + _REACH]))
            if found is not None:
                return found, number
            if line.startswith("#"):
                below = next(
                    ((n, s) for n, s in enumerate(lines[number : number + 5], number + 1) if s.strip()), (number, "")
                )
                found = _first_time(_before_deadline(below[1][:_REACH]))
                if found is not None:
                    return found, below[0]
    return None


def _before_deadline(text: str) -> str:
    """The part of a line that cannot be about the deadline."""
    return re.split(r"deadline", text, maxsplit=1, flags=re.I)[0]


def _first_time(text: str) -> datetime | None:
    """The first complete point in time of a text; one without a zone is none."""
    iso, words = _ISO.search(text), _WORDS.search(text)
    if iso and (not words or iso.start() < words.start()):
        return _made(iso["day"], "%Y-%m-%d", iso["clock"], "", iso["zone"])
    return _made(words["day"], "%B %d, %Y", words["clock"], words["half"] or "", words["zone"]) if words else None


def _made(day: str, pattern: str, clock: str, half: str, zone: str) -> datetime | None:
    """A moment from its printed parts, or None where they name none."""
    hours, minutes, seconds = (*clock.split(":"), "0")[:3]
    try:
        date = datetime.strptime(day, pattern)
        hour = int(hours) % 12 + (12 if half[:1] in "Pp" else 0) if half else int(hours)
        local = date + timedelta(hours=hour, minutes=int(minutes), seconds=float(seconds))
        return local.replace(tzinfo=_zone(zone)).astimezone(UTC)
    except (ValueError, ZoneInfoNotFoundError, OverflowError):
        return None


def _zone(name: str) -> timezone | ZoneInfo:
    if name in ("Z", "UTC", "GMT"):
        return UTC
    if "/" in name:
        return ZoneInfo(name)
    sign = -1 if name[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(name[1:3]), minutes=int(name[4:6])))


NEEDED = ("briefing.md", "hashes.json", "manifest.yaml", "options.yaml", "prompt.md")
"""Without these a round is no context."""

MARKET = (RETURNS, DECISION, QUALITY)

OUTCOME_FILES = ("entry_prices.csv", "exit_prices.csv")
"""Prices that scored the round. Exit prices are what happened next. Entry prices were often fixed after the call (the
entry can be the close that follows it), so neither is ever shown, hashed into a context, or made a fact."""

ALLOWED = ("round_id", *NEEDED, *MARKET, *OUTCOME_FILES)
"""Every key that a line of the contexts file may have."""

RENDERED = "rendered model input (round metadata and mechanical appendix)"
"""What every agent saw and no round kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One entry of ``options.yaml``."""

    __pydantic_config__ = ConfigDict(extra="ignore")

    id: Annotated[str, Field(min_length=1)]
    name: str
    symbol: str | None = None
    tiingo_symbol: str | None = None
    asset_class: str = ""
    option_group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options file: everything that could be chosen."""

    __pydantic_config__ = ConfigDict(extra="ignore")

    options: Annotated[list[Option], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The fields of ``manifest.yaml`` that are used; the arena adds others as it goes."""

    __pydantic_config__ = ConfigDict(extra="ignore", allow_inf_nan=False)

    round_id: str
    horizon: str
    entry_date: date
    exit_date: date
    created_at: str
    decision_deadline: AwareDatetime
    notes: str = ""
    portfolio_constraints: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashList:
    """The files a round froze, by path, with their hashes."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    algorithm: Annotated[str, Field(pattern="^sha256$")]
    files: dict[str, Annotated[str, Field(pattern=SHA256)]]


@dataclass(frozen=True, slots=True)
class Round:
    """A round that was read: its context, the context's name, and what scoring needs from the manifest."""

    id: str
    context_id: str
    context: Context
    horizon: str
    exit_date: date
    deadline: datetime
    options: frozenset[str]


class RoundReader:
    """Reads rounds one after another; files that many rounds share are parsed once."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._universes: dict[str, dict[str, Instrument]] = {}
        self._briefings: dict[tuple[str, str, datetime], tuple[Fact, ...]] = {}

    def read(self, name: str, line: int, files: Mapping[str, str]) -> Round | None:
        """The round in one line of the contexts file, or None after its problems were noted."""
        place = f"{name} line {line}"
        absent = [wanted for wanted in ("round_id", *NEEDED) if not files.get(wanted)]
        if absent:
            self.tally.problem(place, f"a round without {', '.join(absent)}; needed: {', '.join(NEEDED)}")
            return None
        before = len(self.tally.problems)
        place = f"{place} ({files['round_id']})"
        for key in sorted(set(files) - set(ALLOWED)):
            self.tally.problem(joined(place, key), f"unknown key (allowed: {', '.join(ALLOWED)})")
        missing = self._verified(place, files)
        universe = self._universe(place, files["options.yaml"])
        manifest = self._manifest(place, files)
        cutoff = self._cutoff(place, files, manifest) if manifest else None
        facts = self._facts(place, files, universe, cutoff) if universe and cutoff else ()
        if len(self.tally.problems) > before or not (manifest and universe and cutoff):
            return None
        return self._made(files, manifest, universe, cutoff, facts, missing)

    def _verified(self, place: str, files: Mapping[str, str]) -> tuple[str, ...]:
        """Checks every hash that can be checked (by file name); returns what the round froze and does not hold."""
        try:
            listed = object_as_shape(HashList, files["hashes.json"])
        except ValueError as exc:
            note(self.tally, joined(place, "hashes.json"), exc)
            return ()
        missing = []
        for path, expected in sorted(listed.files.items()):
            name = path.rsplit("/", 1)[-1]
            if name not in files or name in OUTCOME_FILES:
                missing.append(path)
                self.tally.unverifiable[name] += 1
                self.tally.missing(f"file {name}", files["round_id"])
                continue
            seen = hashlib.sha256(files[name].encode("utf-8", "surrogatepass")).hexdigest()
            if seen != expected:
                self.tally.problem(
                    joined(place, path), f"does not match its hash (got {seen[:12]}, listed {expected[:12]})"
                )
            else:
                self.tally.verified[name] += 1
        return tuple(missing)

    def _universe(self, place: str, text: str) -> dict[str, Instrument]:
        """The options as instruments by id; empty after a problem."""
        if text not in self._universes:
            try:
                options = as_shape(Options, yaml_tree(text)).options
            except ValueError as exc:
                note(self.tally, joined(place, "options.yaml"), exc)
                return {}
            self._universes[text] = {option.id: _instrument(option) for option in options}
            if len(self._universes[text]) < len(options):
                self.tally.problem(joined(place, "options.yaml"), "an option id stands twice")
        return self._universes[text]

    def _manifest(self, place: str, files: Mapping[str, str]) -> Manifest | None:
        place = joined(place, "manifest.yaml")
        try:
            tree = yaml_tree(files["manifest.yaml"])
            if isinstance(tree, dict) and tree.get("portfolio_constraints", 0) is None:
                del tree["portfolio_constraints"]
            manifest: Manifest = as_shape(Manifest, tree)
        except ValueError as exc:
            note(self.tally, place, exc)
            return None
        if manifest.round_id != files["round_id"]:
            self.tally.problem(place, f"round_id: is another round's (got {manifest.round_id!r})")
        return manifest

    def _cutoff(self, place: str, files: Mapping[str, str], manifest: Manifest) -> Cutoff | None:
        """From the briefing, else the manifest's notes, else when the manifest was made; never the deadline."""
        in_briefing, in_notes = stated(files["briefing.md"]), stated(manifest.notes)
        if in_briefing:
            return Cutoff(in_briefing[0], f"briefing.md line {in_briefing[1]}")
        if in_notes:
            return Cutoff(in_notes[0], "manifest.yaml notes")
        try:
            made = moment(manifest.created_at)
        except ValueError as exc:
            self.tally.problem(joined(place, "manifest.yaml", "created_at"), str(exc))
            return None
        self.tally.missing("stated cutoff (created_at stands in)", files["round_id"])
        return Cutoff(made, "manifest.yaml created_at")

    def _facts(
        self, place: str, files: Mapping[str, str], universe: Mapping[str, Instrument], cutoff: Cutoff
    ) -> tuple[Fact, ...]:
        facts: tuple[Fact, ...] = ()
        for name in MARKET:
            if name not in files:
                continue
            try:
                if name == QUALITY:
                    facts += quality_facts(files[name], universe, cutoff.at)
                else:
                    facts += table_facts(name, files[name], universe, cutoff.at)
            except ValueError as exc:
                note(self.tally, joined(place, name), exc)
        if RETURNS not in files and DECISION not in files:
            self.tally.missing("market table", files["round_id"])
        return facts + self._briefing(files, universe, cutoff)

    def _briefing(
        self, files: Mapping[str, str], universe: Mapping[str, Instrument], cutoff: Cutoff
    ) -> tuple[Fact, ...]:
        key = (files["briefing.md"], files["options.yaml"], cutoff.at)
        if key not in self._briefings:
            self._briefings[key] = briefing_facts(files["briefing.md"], _rows(universe.values()), cutoff.at)
        return self._briefings[key]

    def _made(
        self,
        files: Mapping[str, str],
        manifest: Manifest,
        universe: Mapping[str, Instrument],
        cutoff: Cutoff,
        facts: tuple[Fact, ...],
        missing: tuple[str, ...],
    ) -> Round:
        context = Context(
            completeness="partial",
            cutoff=cutoff.at,
            cutoff_source=cutoff.source,
            prompt=prompt_of(files),
            facts=facts,
            instruments=tuple(universe.values()),
            constraints=constraints_of(manifest.portfolio_constraints),
            missing=(RENDERED, *missing),
        )
        return Round(
            id=files["round_id"],
            context_id=context_id(context),
            context=context,
            horizon=manifest.horizon,
            exit_date=manifest.exit_date,
            deadline=manifest.decision_deadline,
            options=frozenset(universe),
        )


def context_id(context: Context) -> str:
    """`content_id` of a context, five times as fast: its thousand facts are flat and share their few times."""
    moments = {at for fact in context.facts for at in (fact.available_at, fact.as_of)}
    times = {at: canonical_json(at) for at in moments}
    facts = ",".join(_fact_json(fact, times) for fact in context.facts)
    # In JSON text a quote inside a string is escaped, so the key can stand there only once.
    return sha256_text(canonical_json(replace(context, facts=())).replace('"facts":[]', f'"facts":[{facts}]', 1))


def _fact_json(fact: Fact, times: Mapping[datetime | None, str]) -> str:
    """The canonical JSON of one fact, keys in alphabetical order; its value was found finite when it was read."""
    value = quoted(fact.value) if isinstance(fact.value, str) else repr(fact.value)
    return (
        f'{{"as_of":{times[fact.as_of]},"available_at":{times[fact.available_at]},"field":{quoted(fact.field)}'
        f',"id":{quoted(fact.id)},"instrument":{quoted(fact.instrument)},"note":{quoted(fact.note)}'
        f',"source":{quoted(fact.source)},"unit":{quoted(fact.unit)},"value":{value}}}'
    )


def prompt_of(files: Mapping[str, str]) -> str:
    """The text put to the agents, as far as it was kept: task, briefing, options, in the arena's order."""
    task, briefing, options = (files[name].strip() for name in ("prompt.md", "briefing.md", "options.yaml"))
    return f"{task}\n\n## Briefing\n\n{briefing}\n\n## Options\n\n{options}\n"


def _instrument(option: Option) -> Instrument:
    names = (option.id, option.id.replace("_", " "), option.symbol, option.tiingo_symbol, option.name)
    return Instrument(
        id=option.id,
        symbol=option.symbol,
        name=option.name,
        asset_class=option.asset_class,
        group=option.option_group,
        aliases=tuple(dict.fromkeys(name for name in names if name)),
    )


def _rows(instruments: Iterable[Instrument]) -> dict[str, str]:
    """How a table row may begin that is about an instrument."""
    return {alias.upper(): one.id for one in instruments for alias in one.aliases}


_LIMITS: Mapping[str, tuple[str, float, str, str]] = {
    "min_holdings": ("min_holdings", 1.0, "count", "portfolio"),
    "max_holdings": ("max_holdings", 1.0, "count", "portfolio"),
    "allocation_increment_pct": ("weight_increment", 0.01, "nav", "holding"),
    "min_allocation_pct": ("min_weight", 0.01, "nav", "holding"),
    "max_total_allocation_pct": ("max_total_weight", 0.01, "nav", "portfolio"),
    "max_economic_exposure_pct": ("max_weight", 0.01, "nav", "economic_exposure_cluster"),
    "allow_cash": ("allow_cash", 1.0, "bool", "portfolio"),
    "allow_benchmark_asset": ("allow_benchmark", 1.0, "bool", "portfolio"),
}


def constraints_of(given: Mapping[str, float | None]) -> tuple[Constraint, ...]:
    """The manifest's rules as constraints; percentages become fractions of NAV, an empty rule is no rule.

    >>> constraints_of({"max_holdings": 5, "max_economic_exposure_pct": None})
    (Constraint(kind='max_holdings', limit=5.0, unit='count', scope='portfolio'),)
    """
    made = []
    for name, value in given.items():
        if value is None:
            continue
        kind, factor, unit, scope = _LIMITS.get(name, (name, 1.0, "count", "portfolio"))
        made.append(Constraint(kind=kind, limit=float(value) * factor, unit=unit, scope=scope))
    return tuple(made)
