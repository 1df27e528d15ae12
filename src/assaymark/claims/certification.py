"""``verdicts.json`` and the certificates: each has the tables to recompute a verdict, and no judged text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from assaymark import __version__
from assaymark.claims import levels as rule
from assaymark.claims.findings import HUMAN_P
from assaymark.claims.levels import Index, Rules, SeasonGates, usable_tests
from assaymark.claims.messages import Phrase, built_in_text, english
from assaymark.claims.orders import PairRow, rows_of, summary_of
from assaymark.claims.verdicts import kind_of, prepare_human_tests
from assaymark.notebook import MARKS, Collapsed, Heading, Part, Result, display_parts
from assaymark.notebook import Quote as SaidPart
from assaymark.protocol import AgentSpec, Study
from assaymark.records import AGGREGATE, JSON, LEVELS, Claim, Level, Measurement, Rows, Verdict, sha256_text, to_json
from assaymark.text import clean, prose

if TYPE_CHECKING:
    from assaymark.claims.season_claims import SeasonVerdict

Why = TypeVar("Why")

FORMAT: Final = "assaymark certificate 3"
SEASON: Final = "assaymark season certificate 1"

_KAPPA: Final = ("pairs", "tables", "clusters", "half_even", "coefficient", "sums", "ratings")
_TEST: Final = ("p", "se", "df", "clusters")
_POOLED: Final = ("variance", "mean_variance", "prior_df", "rho", "effective")
OTHER_TESTS: Final = ("p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip")
"""Keys of a contrast's detail with the p-values of the alternative tests."""
_NEAR: Final = ("p_equivalence", "p_equivalence_at")
_PAIR: Final = ("dimension high low",)
_FORMATS: Final = ("dimension", "dimension format")
_SAMPLE: Final = ("graders", "drawn", "graded")
_LABELLED: Final = ("agents", "of", "pi", "judged", "people")


class Stored(NamedTuple):
    """The parts of a measurement that a certificate stores: section, allowed label sets, keys of its detail and those
    required with a value; its name in differences; and the note if it is taken as given."""

    section: str
    labels: tuple[str, ...]
    parts: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    called: str = ""
    note: str = ""


KEPT: Final[Mapping[str, Stored]] = {
    "kappa.mean_pairwise": Stored("agreement", _FORMATS, _KAPPA, (), "kappa"),
    "kappa.other_ddof": Stored("agreement", _FORMATS, ("ddof", "coefficient"), (), "kappa under the other ddof",
                               "kappas under the other ddof are"),
    "cell.kappa": Stored("agreement", ("cell dimension",), _KAPPA, (), "kappa"),
    "cell.agreement": Stored("agreement", ("cell",), ("unanimous", "leave_one_out", "each", "drops", "p",
                             "coefficient"), ("unanimous", "leave_one_out"), "agreement"),
    "panel.families": Stored("design", ("",), ("unknown", "own", "in_parts", "missing"), ("own",),
                             "number of judge families"),
    "order.autocorrelation": Stored("design", ("dimension",), ("lags", "flagged", "flag", "order"), (),
                                    "autocorrelation"),
    "missing.share": Stored("design", ("judge",), ("left_out", "records", "lacking", "p_more"),
                            ("records", "lacking", "p_more")),
    "agent.flagged_texts": Stored("design", ("agent",), ("count",), ("count",)),
    "score.effect": Stored("levels", ("dimension agent",), (), (), "level", "levels of agents are"),
    "contrast": Stored("contrasts", _PAIR, (*_TEST, *_POOLED, *OTHER_TESTS, *_NEAR, "cluster_sums", "gap",
                                            "equivalence_interval", "others", "p_specific"), ("p", "clusters"), "",
                       "what the pairs share (their mean variance, the degrees of freedom borrowed from it, and the "
                       "autocorrelation of clusters in time order) is"),
    "lofo.effect": Stored("drops", ("dimension dropped agent",), (), (), "level"),
    "lofo.contrast": Stored("drops", ("dimension high low dropped",), (*_TEST, *_POOLED, "p_adjusted"), ("p",),
                            "contrast"),
    "recusal.contrast": Stored("biases", _PAIR, (*_TEST, *_NEAR, "families", "free"), ("p", "clusters"),
                               "contrast with judges standing aside",
                               "contrasts with judges standing aside, and their standard errors, are"),
    "length.contrast": Stored("biases", _PAIR, (*_TEST, *_NEAR, "word", "covariates", "gap", "slope", "slope_p", "raw",
                                                "overlap", "slopes", "gaps"), ("p", "clusters"),
                              "contrast at equal length",
                              "contrasts at equal length, their standard errors, and lengths with their slopes are"),
    "judges.contrast": Stored("biases", _PAIR, ("p", "se", "df"), ("p",), "contrast over other judges",
                              "contrasts over other judges, their standard errors and intervals are"),
    "dimension.distinct": Stored("biases", ("dimension",), ("p", "p_holm", "distinct"), (),
                                 "correlation with the overall impression",
                                 "whether judges tell dimensions from the overall impression is"),
    "probe.contrast": Stored("probe", _PAIR, ("judge", "family", "p", "cluster_sums"), (), "probe"),
    "cell.gate": Stored("cells", ("cell",), ("outcome", "p", "p_holm", "primary", "cluster_sums"), (), "gate"),
    "cell.halo": Stored("cells", ("cell",), ("family", "triggered"), (), "halo", "intervals of halos are"),
    "cell.drop": Stored("cells", ("cell dropped",), ("outcome", "p", "p_holm"), (), "gate",
                        "p-values and intervals of control cells without each judge family are"),
    "terse.share": Stored("style", ("agent",), ("below", "tokens"), (), "terse share"),
    "length_matched.contrast": Stored("style", _PAIR, ("p", "p_holm"), (), "contrast in the rerun at equal length",
                                      "reruns at equal length are"),
    "datasheet.gate": Stored("instruments", ("judge",), ("failed",), (), "",
                             "what the datasheets of the judges show is"),
    "human.sample": Stored("people", ("dimension",), _SAMPLE, _SAMPLE,
                           "share of the drawn cycles that people graded",
                           "the draw of the cycles that people graded, and the p-values of the other claims put to "
                           "them, are"),
    "human.agreement": Stored("people", ("dimension",), ("pairs", "tables", "sums", "coefficient"), (),
                              "agreement of the graders"),
    "human.labels": Stored("people", ("dimension",), _LABELLED, _LABELLED),
    "human.contrast": Stored("people", _PAIR, ("p", "se", "df", "judges", "needed", "rest", "p_graders"), ("p", "rest"),
                             "difference that people see"),
}  # fmt: skip
"""The parts that a certificate stores, by the name of the measurement."""

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    section: tuple(name for name, entry in KEPT.items() if entry.section == section)
    for section in dict.fromkeys(entry.section for entry in KEPT.values())
}
"""Names of the measurements in each section of a certificate."""

PLACES: Final[Mapping[str, str]] = {
    "agreement_status": "agreement_status",
    "stability_status": "stability_status",
    "adversarial_status": "adversarial_status",
    "publication_level": "permitted_publication_level",
}
"""Verdict fields in the certificate's ``tuple``, with the names that ValueBlindBench uses."""

_NO_INTERVAL: Final = ("score.effect", "lofo.effect", "lofo.contrast", "terse.share", "length_matched.contrast")
_Made = dict[tuple[str, bool], Mapping[str, JSON]]


def certificates(verdicts: Iterable[Verdict], index: Index, study: Study) -> Iterator[Mapping[str, JSON]]:
    """Yield the `certificate` of each verdict; shared parts are built once."""
    parts: _Made = {}
    for verdict in verdicts:
        yield certificate(verdict, index, study, parts)


def certificate(verdict: Verdict, index: Index, study: Study, cache: _Made | None = None) -> Mapping[str, JSON]:
    """Return the certificate of one verdict as plain JSON, from which `assaymark.claims.verify` recomputes it."""
    cache, claim, kind = {} if cache is None else cache, verdict.claim, kind_of(verdict.claim)
    rules = Rules.of(study, verdict.preregistered)
    prepare_human_tests(study, index, rules)
    # The measurements behind the verdict, and those that recomputing it under all rules needs
    used, always = set(verdict.measurements), ("cell.gate", "cell.drop", "cell.halo")
    if kind == "cell":
        used |= {item.id for name in always for item in index.named(name)}
    else:
        agents = index.agents if kind == "first" else claim.subjects
        on_dimension = {"kappa.other_ddof", "dimension.distinct", "order.autocorrelation", "length_matched.contrast"}
        on_dimension |= set() if index.tested(claim.dimension) else {"score.effect"}
        on_dimension |= set(SECTIONS["people"][:3]) if claim.asserts_order else set()
        for item in (
            entry for name in (*on_dimension, *always, "panel.families", "terse.share") for entry in index.named(name)
        ):
            labels = item.labels
            looked_at = item.name not in on_dimension or labels["dimension"] == claim.dimension
            if item.name == "terse.share":
                looked_at = labels["agent"] in agents
            elif item.name == "length_matched.contrast":
                looked_at = looked_at and is_about(claim, labels["high"], labels["low"])
            used |= {item.id} if looked_at else set()
    places = index.once("places", lambda: {name: at for at, name in enumerate(index.by_id)})
    there = sorted(used & index.by_id.keys(), key=places.__getitem__)
    entries = {name: (index.by_id[name], False) for name in there}
    leader, on_all = claim.subjects[0], claim.dimension == AGGREGATE and index.tested(AGGREGATE)
    if kind in ("pair", "within") and on_all:
        # Leave-one-family-out contrasts of the leader's other pairs: if all of them pass, the claim's pair may too.
        led = [row for row in rows_of(index)[AGGREGATE] if leader in (row.high, row.low)]
        for row in led if all(row.high == leader and row.testable for row in led) else ():
            drops = (index.drop(AGGREGATE, family, leader, row.low) for family in index.families)
            entries |= {item.id: (item, True) for item in drops if item is not None and item.id not in entries}
    # The pairs outside the claim that the ranking procedure uses, by scale, in the order of names.
    scales = dict[str, JSON]()
    tests = [] if kind in ("within", "cell") else sorted(usable_tests(index, rules).intersection(OTHER_TESTS))
    for scale, rows in (rows_of(index) if kind != "cell" and index.tested(claim.dimension) else {}).items():
        if rules.claims_scale(scale):
            needed = claim.dimension != AGGREGATE or scale == AGGREGATE
            about_claim = claim if scale == claim.dimension else None
            scales[scale] = _row_columns(index, scale, rows, about_claim, tests, rules) if needed else None
    others = [p for name, p in index.memo.get(HUMAN_P, {}).items() if name != claim.id]
    sections: dict[str, list[JSON]] = {
        section: []
        for section in SECTIONS
        if section != "people" or (claim.asserts_order and index.named("human.sample"))
    }
    for item, apart in entries.values():
        # A key that is absent from an entry is undefined, or not needed to check the rest.
        if (item.id, apart) not in cache:
            ends = {} if item.name in _NO_INTERVAL else {"low": item.low, "high": item.high, "level": item.level}
            state = {} if item.state == "ok" else {"state": item.state}
            numbers = {part: number for part, number in {"value": item.value, **ends}.items() if number is not None}
            parts = ("p",) if apart else (KEPT[item.name].parts if item.name in KEPT else ())
            detail = {part: to_json(item.detail[part]) for part in parts if item.detail.get(part) is not None}
            cache[item.id, apart] = {"id": item.id, "n": item.n, **state, **numbers, **detail}
        if item.name in KEPT and KEPT[item.name].section in sections:
            sections[KEPT[item.name].section].append(cache[item.id, apart])
    return {
        **_verdict_json(verdict, FORMAT),
        "rules": {
            **{name: getattr(rules, name) for name in Rules.__dataclass_fields__},
            "scales": None if rules.scales is None else sorted(rules.scales),
            "cells": rules.cells.model_dump(mode="json"),
        },
        "study": {
            "level": study.inference.level,
            "judges": {judge.name: judge.family for judge in study.judges},
            "families": list(index.families),
            "agents": list(index.agents),
            "dimensions": list(index.dimensions),
        },
        **sections,
        **({"people_p": others} if verdict.human_anchor != "not-tested" else {}),
        "other_pairs": None if kind == "cell" else {"tests": tests, "scales": scales},
    }


def certificate_name(verdict: Verdict) -> str:
    """Return the file name of a certificate: readable, portable, and unique by the claim's digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", verdict.claim.id).strip("-.")[:80]
    return f"{readable}-{sha256_text(verdict.claim.id)[:8]}.json"


def _verdict_json(verdict: Verdict, form: str) -> dict[str, JSON]:
    """Return the header and the verdict of a certificate of format ``form``, for a study or a season."""
    stated = to_json(verdict)
    rests_on = stated.pop("measurements")
    five = {place: stated.pop(name) for name, place in PLACES.items()}
    head = {"format": form, "software": f"assaymark {__version__}"}
    return {**head, **stated, "tuple": {"claim_scope": verdict.claim.scope, **five}, "rests_on": rests_on}


def _row_columns(
    index: Index, scale: str, rows: Sequence[PairRow], claim: Claim | None, tests: Sequence[str], rules: Rules
) -> Mapping[str, JSON]:
    """Return rows as a table of columns; a column of default values only is left out."""
    if claim is None and ("stated", scale) in index.memo:
        stated: Mapping[str, JSON] = index.memo["stated", scale]
        return stated
    keys = dict.fromkeys(("p", *tests))

    def short(p: float | None) -> float | None:
        return None if p is None else float(f"{p:.12g}")

    def all_columns() -> dict[str, list[Any]]:
        # All pairs of one scale, with the 12 digits that comparisons use
        pairs = list(combinations(index.agents, 2))
        numbers = ("floor", "length", "others", "equivalence")
        return {
            "pair": pairs,
            "order": [">" if row.high == high else "<" for (high, _), row in zip(pairs, rows, strict=True)],
            "near": [{margin: short(p) for margin, p in row.near.items()} for row in rows],
            "untested": [not row.testable for row in rows],
            "interested": [not row.disinterested for row in rows],
            **{name: [short(getattr(row, name)) for row in rows] for name in numbers},
            **{test: [short(row.p.get(test, 1.0)) for row in rows] for test in keys},
        }

    every = index.once(("columns", scale, *keys), all_columns)
    own_rows = [] if claim is None else [at for at, pair in enumerate(every["pair"]) if is_about(claim, *pair)]

    def others(name: str) -> list[Any]:
        column = every[name]
        if len(own_rows) == 1:
            return column[: own_rows[0]] + column[own_rows[0] + 1 :]
        return [value for at, value in enumerate(column) if at not in own_rows] if own_rows else column

    with_margins = claim is not None and claim.dimension == AGGREGATE and len(claim.subjects) == 2
    names = ("floor", "length", *(["others"] if rules.any_judges else []), *(["equivalence"] if with_margins else []))
    columns = {name: column for name, column in zip(names, map(others, names), strict=True) if {*column} - {None}}
    places = {name: [at for at, value in enumerate(others(name)) if value] for name in ("untested", "interested")}
    margins = sorted({margin for name in every["near"] for margin in name}) if with_margins else []
    beside = {margin: [other.get(margin, 1.0) for other in others("near")] for margin in margins}
    table = {
        "order": "".join(others("order")),
        "p": {test: others(test) for test in keys},
        **columns,
        **({"near": beside} if margins else {}),
        **{name: at for name, at in places.items() if at},
    }
    if claim is None:  # the same for every claim that is not about this scale
        index.memo["stated", scale] = table
    return table


def is_about(claim: Claim, high: str, other: str) -> bool:
    """True if a claim about agents compares these two, that is, if every subject of the claim is one of them."""
    return set(claim.subjects) <= {high, other}


ORDERS: Final = (
    "contrast", "lofo.contrast", "recusal.contrast", "length.contrast", "judges.contrast", "panel.families",
    "order.autocorrelation", "datasheet.gate", *SECTIONS["people"],
)  # fmt: skip
"""Measurements behind the rankings of a season, the same as for a study."""

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: KEPT[name].parts for name in ORDERS},
    "contrast": (*KEPT["contrast"].parts, "totals_gap", "noise_floor", "unresolved"),
    rule.TOTAL: ("low", "high", "judges", "band", "state", "graded", "margin", "reach"),
    **dict.fromkeys((rule.COMPOSITE, rule.OUTCOME, rule.EFFICIENCY, rule.NOISE), ()),
    rule.KAPPA: ("pairs", "tables"),
    rule.EXCESS: ("p", "whole"),
    rule.PROBE: ("state",),
    rule.FLAGGED: ("count",),
}
"""Measurements in a certificate of a season, each with the keys of its detail that are stored."""


def season_certificates(
    verdicts: Sequence[SeasonVerdict], measurements: Sequence[Measurement], gates: SeasonGates,
    judges: Mapping[str, str], *, level: float = 0.95,
) -> Iterator[Mapping[str, JSON]]:  # fmt: skip
    """Yield the certificate of each verdict of a season as plain JSON, from which `assaymark.claims.verify`
    recomputes it."""
    # For some measurements only a missing value matters.
    absent = (rule.OUTCOME, rule.EFFICIENCY)
    items = [item for item in measurements if item.name in _PARTS and (item.name not in absent or item.value is None)]
    rules = {name: getattr(gates, name) for name in SeasonGates.__dataclass_fields__}
    rules["hindsight"] = [_message_json(text) for text in gates.hindsight]
    for verdict in verdicts:
        claim, tables = verdict.verdict.claim, []
        for item in items:
            labels = item.labels
            # A claim depends on the composites of its subjects, and on missing ones.
            if item.name == rule.COMPOSITE and item.value is not None and labels["agent"] not in claim.subjects:
                continue
            apart = "high" in labels and not is_about(claim, labels["high"], labels["low"])
            parts = [name for name in _PARTS[item.name] if not (apart and name in ("cluster_sums", "lags"))]
            numbers = {"value": item.value, "low": item.low, "high": item.high, "level": item.level}
            detail = {name: to_json(item.detail[name]) for name in parts if name in item.detail}
            tables.append({
                "name": item.name, "labels": dict(labels), "n": item.n, "n_of": item.n_of, "state": item.state,
                **{name: value for name, value in numbers.items() if value is not None},
                **({"detail": detail} if detail else {}),
            })  # fmt: skip
        common = {"kind": verdict.kind, "rules": dict(rules), "level": level, "judges": dict(judges), "tables": tables}
        yield {**_verdict_json(verdict.verdict, SEASON), **common}


def _message_json(message: Phrase) -> dict[str, JSON]:
    def value(entry: Any) -> JSON:
        return _message_json(entry) if isinstance(entry, Phrase) else list(entry) if isinstance(entry, tuple) else entry

    return {"key": message.key, "values": {name: value(entry) for name, entry in message.values.items()}}


VERDICTS_FORMAT: Final = "assaymark verdicts 2"
_SAID_FIRST: Final = 6
_PEOPLE_MEASURED: Final = ("human.sample", "human.agreement", "human.judge")


@dataclass(frozen=True, slots=True)
class Panel:
    """Who judged: names by family, which of them are reference judges with planted properties, and whether any is."""

    judges: Mapping[str, str]
    reference: bool
    built_in: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rank(Generic[Why]):
    """One row of a season's table: the ranks that an agent can have, whether its total is shown, and why."""

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Level
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerdictFile(Result):
    """``verdicts.json``: the verdicts of one run and the measurements they rest on.

    ``tiers``, ``ranks``, ``top_set`` and ``within_margin`` follow from the verdicts, by scale. ``missing`` has the
    share of each judge's replies that did not come or could not be read, and of each agent's; ``notes`` say what of a
    table of scores was left out, and what was chosen with the scores at hand. ``agents``, or models of
    a benchmark, are those that claims compare, each with whether it is a rule-based stand-in. Only seasons have
    ``places`` and ``judged_to``, the last day that a judge was shown; their ``rubric`` is the scoring plan.

    It holds no time and no random name: the same records, plan and replies make the same bytes.
    """

    format: str
    software: str
    study: str
    title: str
    plan_hash: str
    rubric: str
    panel: Panel
    agents: Mapping[str, bool] = field(default_factory=dict)
    amendments: tuple[Mapping[str, JSON], ...] = ()
    preregistered: bool = True
    tally: Mapping[str, int]
    tiers: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    ranks: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    top_set: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within_margin: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    judged_to: str = ""
    places: tuple[Rank[str], ...] = ()
    verdicts: tuple[Verdict, ...]
    measurements: Mapping[str, Measurement] = field(default_factory=dict)

    def _parts(self) -> Iterator[Part]:
        """Yield the supported claims, then the unsupported ones collapsed and without their direction."""
        yield Heading(f"{clean(self.title or self.study, 120)}: supported claims")
        yield " · ".join(f"{MARKS[level]} {count} {level}" for level, count in self.tally.items())
        made_by = "agents" if self.panel.judges else "models"
        for level in ("headline", "qualified"):
            sentences = []
            for shown in (verdict for verdict in self.verdicts if verdict.publication_level == level):
                # Conditions of a claim: a note on built-in judges or agents, and its own condition.
                kind = shown.claim.id.partition("[")[0]
                judges = {} if kind.endswith(".beats") else self.panel.built_in
                agents = {} if kind == "cell" else self.agents
                built_in = built_in_text(english(), judges, agents, shown.claim.subjects, made_by)
                sentences.append(SaidPart(level, shown.said, f"{built_in} {prose(shown.condition or '')}".strip()))
            yield from sentences[:_SAID_FIRST]
            if more := tuple(sentences[_SAID_FIRST:]):
                yield Collapsed(f"{len(more)} more {level}", more)
        suppressed = (verdict for verdict in self.verdicts if verdict.publication_level == "no-claim")
        # Sorted by the displayed text: ids, and so the order of the file, have the higher agent first.
        if withheld := Rows(sorted(suppressed, key=lambda verdict: (verdict.claim.dimension, verdict.said))):
            yield Collapsed(f"{len(withheld)} not supported by this evidence", display_parts(withheld))


def count_levels(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the verdicts of each level."""
    counts = Counter(verdict.publication_level for verdict in verdicts)
    return {level: counts[level] for level in LEVELS}


def verdict_file(
    study: Study, plan_hash: str, verdicts: Sequence[Verdict], measurements: Sequence[Measurement],
    preregistered: bool = True, amendments: Sequence[Mapping[str, JSON]] = (),
) -> VerdictFile:  # fmt: skip
    """Build ``verdicts.json`` for a study."""
    built_in = {judge.name: judge.model.startswith("reference/") for judge in study.judges}
    judges = {judge.name: judge.family for judge in study.judges}
    lacking = [item for item in measurements if item.name == "missing.share" and item.value]
    return build_file(
        study, plan_hash, verdicts, measurements,
        sorted({item.labels["agent"] for item in measurements if item.name == "score.effect"}),
        rubric=study.rubric.name, panel=Panel(judges, any(built_in.values()), built_in),
        made_by=study.agents, amendments=amendments, preregistered=preregistered,
        missing={item.labels.get("agent") or item.labels["judge"]: item.value for item in lacking},
    )  # fmt: skip


def build_file(
    plan: Any, plan_hash: str, verdicts: Sequence[Verdict], measurements: Sequence[Measurement],
    agents: Sequence[str], *, made_by: Sequence[AgentSpec] = (), amendments: Sequence[Mapping[str, JSON]] = (),
    unranked: Mapping[str, Collection[str]] = MappingProxyType({}), **given: Any,
) -> VerdictFile:  # fmt: skip
    """Build ``verdicts.json`` for the plan of any track; ``given`` are the other fields of `VerdictFile`."""
    built_in = {agent.name for agent in made_by if agent.model.startswith("reference/")}
    used = {name for verdict in verdicts for name in verdict.measurements}
    claimed = {name for verdict in verdicts if verdict.publication_level != "no-claim" for name in verdict.measurements}
    return VerdictFile(
        format=VERDICTS_FORMAT,
        study=plan.name,
        title=plan.title,
        plan_hash=plan_hash,
        software=f"assaymark {__version__}",
        tally=count_levels(verdicts),
        **asdict(summary_of(verdicts, agents, unranked)),
        verdicts=tuple(verdicts),
        agents={name: name in built_in for name in sorted({*agents, *(agent.name for agent in made_by)})},
        amendments=tuple(amendments),
        # The difference of an unsupported pair is in the tables and certificates, but not in this file; the
        # comparisons of judges with people are.
        measurements={
            item.id: item
            for item in measurements
            if item.id in claimed or (item.id in used and "high" not in item.labels) or item.name in _PEOPLE_MEASURED
        },
        **given,
    )
