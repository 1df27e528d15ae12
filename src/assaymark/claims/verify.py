"""A certificate checked, of a study or a season: its numbers from its tables, and its verdict from its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Annotated, Any, Final

from pydantic import Field

from assaymark.claims.certificates import KEPT, SECTIONS, Findings, Verification, about, compare_verdicts, stated_in
from assaymark.claims.evidence import (
    COMPOSITE,
    EFFICIENCY,
    EXCESS,
    FLAGGED,
    KAPPA,
    NOISE,
    OUTCOME,
    PROBE,
    TOTAL,
    SeasonGates,
    index,
)
from assaymark.claims.levels import cell_claim, direction, first_claim, kind_of, pair_claim, within_claim
from assaymark.claims.messages import Said
from assaymark.claims.orders import Row, row_of
from assaymark.claims.panel import PUT, cell_state, stated_family
from assaymark.claims.reading import SOURCE, StatedStudy, arranged, read_certificate
from assaymark.claims.recompute import Recomputation
from assaymark.claims.season_claims import Season, SeasonVerdict
from assaymark.claims.verdicts import decide, decide_season
from assaymark.errors import AssayError, InputError, Problem
from assaymark.records import (
    AGGREGATE,
    JSON,
    Claim,
    Measurement,
    Scope,
    Verdict,
    canonical_json,
    parse,
    record,
    to_json,
)

SEASON: Final = "assaymark season certificate 1"

_ORDERS: Final = (
    "contrast", "lofo.contrast", "recusal.contrast", "length.contrast", "judges.contrast", "panel.families",
    "order.autocorrelation", "datasheet.gate", *SECTIONS["people"],
)  # fmt: skip
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: KEPT[name].parts for name in _ORDERS},
    "contrast": (*KEPT["contrast"].parts, "totals_gap", "noise_floor", "unresolved"),
    TOTAL: ("low", "high", "judges", "band", "state", "graded", "margin", "reach"),
    COMPOSITE: (),
    OUTCOME: (),
    EFFICIENCY: (),
    NOISE: (),
    KAPPA: ("pairs", "tables"),
    EXCESS: ("p", "whole"),
    PROBE: ("state",),
    FLAGGED: ("count",),
}
"""Which measurements a certificate holds, and what of their detail."""

_ONLY_ABSENT: Final = (OUTCOME, EFFICIENCY)
"""Of these it counts alone who has none."""

_TABLES: Final = ("cluster_sums", "lags")


@record
class _Stated:
    """A certificate of a season, its measurements still as they stand."""

    software: str
    kind: str
    verdict: Verdict
    claim_scope: Scope
    rules: dict[str, JSON]
    level: Annotated[float, Field(gt=0, lt=1)]
    judges: dict[str, str]
    tables: tuple[dict[str, JSON], ...]


def season_certificates(
    verdicts: Sequence[SeasonVerdict],
    measurements: Sequence[Measurement],
    gates: SeasonGates,
    judges: Mapping[str, str],
    *,
    level: float = 0.95,
) -> Iterator[Mapping[str, JSON]]:
    """The certificate of each verdict of a season, as plain JSON: `assaymark.claims.verify` decides it again from
    it."""
    kept = [
        measurement
        for measurement in measurements
        if measurement.name in _PARTS and not (measurement.name in _ONLY_ABSENT and measurement.value is not None)
    ]
    rules = {field.name: getattr(gates, field.name) for field in fields(gates)}
    rules["hindsight"] = [_said_json(one) for one in gates.hindsight]
    for verdict in verdicts:
        claim = verdict.verdict.claim
        yield {
            **stated_in(verdict.verdict, SEASON),
            "kind": verdict.kind,
            "rules": dict(rules),
            "level": level,
            "judges": dict(judges),
            # Deciding a claim looks at composites of its subjects, and at absent ones.
            "tables": [
                _entry(item, claim)
                for item in kept
                if item.name != COMPOSITE or item.value is None or item.labels["agent"] in claim.subjects
            ],
        }


def _entry(item: Measurement, claim: Claim) -> Mapping[str, JSON]:
    """A measurement as it stands in a certificate; tables only where the claim is about it."""
    apart = "high" in item.labels and not about(claim, item.labels["high"], item.labels["low"])
    parts = [name for name in _PARTS[item.name] if not (apart and name in _TABLES)]
    numbers = {"value": item.value, "low": item.low, "high": item.high, "level": item.level}
    detail = {name: to_json(item.detail[name]) for name in parts if name in item.detail}
    return {
        "name": item.name,
        "labels": dict(item.labels),
        "n": item.n,
        "n_of": item.n_of,
        "state": item.state,
        **{name: value for name, value in numbers.items() if value is not None},
        **({"detail": detail} if detail else {}),
    }


def _said_json(one: Said) -> dict[str, JSON]:
    def value(given: Any) -> JSON:
        return _said_json(given) if isinstance(given, Said) else list(given) if isinstance(given, tuple) else given

    return {"key": one.key, "values": {name: value(given) for name, given in one.values.items()}}


def _said_of(raw: Any) -> Said:
    def value(given: Any) -> Any:
        if isinstance(given, dict):
            return _said_of(given)
        return tuple(map(str, given)) if isinstance(given, list) else given

    return Said(str(raw["key"]), {str(name): value(given) for name, given in raw["values"].items()})


def _gates_of(raw: Mapping[str, Any]) -> SeasonGates:
    """The decision rules as a plan locks them."""
    known = {field.name: field for field in fields(SeasonGates)}
    problems = [
        Problem(f"rules.{name}", "is missing" if name in known else "is no rule") for name in sorted({*raw} ^ {*known})
    ]
    kinds: Mapping[str, tuple[type, ...]] = {
        **dict.fromkeys(("alpha", "publish", "halt", "margin"), (int, float)),
        **dict.fromkeys(("any_judges", "preregistered"), (bool,)),
        **dict.fromkeys(("baseline", "kappa", "test"), (str,)),
    }
    problems += [
        Problem(f"rules.{name}", f"is of the wrong kind (got {raw[name]!r:.80})")
        for name, kind in kinds.items()
        if name in raw and (not isinstance(raw[name], kind) or (bool not in kind and isinstance(raw[name], bool)))
    ]
    problems += [
        Problem(f"rules.{name}", f"is no rule of a plan (got {raw[name]!r:.80})")
        for name in ("kappa", "test")
        if name in raw and raw[name] != known[name].default
    ]
    if raw.get("on_failure") not in (None, "qualified", "no-claim"):
        problems.append(Problem("rules.on_failure", f"must be qualified or no-claim (got {raw['on_failure']!r:.80})"))
    if not problems and not (0 < raw["alpha"] < 1 and raw["margin"] > 0):
        problems.append(Problem("rules", "alpha must lie between 0 and 1, and the margin above 0"))
    if problems:
        raise InputError(SOURCE, problems)
    return SeasonGates(**{**raw, "hindsight": tuple(_said_of(one) for one in raw["hindsight"])})


def _verify_season(certificate: Mapping[str, JSON]) -> Verification:
    """Recompute a certificate of a season from the tables in it, and say what differs."""
    found = Findings()
    try:
        stated = parse(_Stated, canonical_json({**arranged(certificate)}), source=SOURCE)
        gates, verdict = _gates_of(stated.rules), stated.verdict
        items = [
            parse(
                Measurement, canonical_json({"method": "", "value": None, **one}), source=f"{SOURCE}, measurements.{at}"
            )
            for at, one in enumerate(stated.tables)
        ]
        found.given("the rules, the judges and their families, which the hash of the plan stands for, are")
        season = Season(items, gates, verdict.plan_hash)
        known = season.known
        study = StatedStudy(
            level=stated.level, judges=stated.judges, families=known.families, agents=known.agents, dimensions=()
        )
        recomputation = Recomputation(study, season.rules, items, found)
        again = []
        for item in items:
            has_table = item.name in _ORDERS and (item.name != "contrast" or "cluster_sums" in item.detail)
            check = recomputation.kappa if item.name == KAPPA else recomputation.one if has_table else None
            again.append(item if check is None else check(item))
        recomputation.drops(again)
        for agent in verdict.claim.subjects:
            # The lowest and the highest judge of the agents that a claim is about, from their composites.
            mine = [one for one in again if one.labels.get("agent") == agent]
            points = [one.value for one in mine if one.name == COMPOSITE and one.value is not None]
            total = next((one for one in mine if one.name == TOTAL), None)
            if points and total is not None and total.value is not None:
                found.compare(f"lowest judge of {agent}", total.detail.get("low"), min(points))
                found.compare(f"highest judge of {agent}", total.detail.get("high"), max(points))
                found.compare(f"judges of {agent}", total.detail.get("judges"), len(points))
        found.given("totals, noise floors, returns and what the pairs beside the claim's show are")
        decided = decide_season(again, gates, verdict.plan_hash)
        same = [one for one in decided.verdicts if one.verdict.claim.id == verdict.claim.id]
        if not same:
            found.compare("the claim", verdict.claim.id, None)
        for one in same:
            found.compare("scope in the tuple", stated.claim_scope, one.verdict.claim.scope)
            found.compare("kind of the claim", stated.kind, one.kind)
            compare_verdicts(verdict, one.verdict, found)
    except InputError:
        raise
    except (AssayError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as exc:
        what = f"lacks or misstates what its claim rests on: {type(exc).__name__}: {exc}"
        raise InputError(SOURCE, [Problem("", what[:300])]) from None
    return Verification(not found.differences, tuple(found.differences), tuple(found.notes))


def verify(certificate: Mapping[str, JSON]) -> Verification:
    """Recompute a certificate from the tables in it, and say what differs (ValueBlindBench section 3.8)."""
    if isinstance(certificate, Mapping) and certificate.get("format") == SEASON:
        return _verify_season(certificate)
    whole, measurements = read_certificate(certificate)
    study, others, stated, rules = whole.study, whole.other_pairs, whole.verdict, whole.rules
    found = Findings()
    again = Recomputation(study, rules, measurements, found)
    items = again.cells([again.one(item) for item in measurements])
    again.halos(items)
    again.drops(items)
    found.given("the rules, judges, agents and dimensions, which the hash of the plan stands for, are")
    claim, pairs = stated.claim, list(combinations(study.agents, 2))
    dimension, subjects, kind = claim.dimension, claim.subjects, kind_of(claim)
    try:
        known = index(
            items,
            study.families,
            study.agents,
            study.dimensions,
            tests=frozenset() if others is None else frozenset(others.tests),
        )
        # Every pair as the order procedure sees it: those of the claim from their measurements, the others as stated.
        rows: dict[str, tuple[Row, ...]] = {}
        for scale in (AGGREGATE, *study.dimensions):
            if others is None or scale not in others.scales:
                continue
            columns = others.scales[scale]
            left = [pair for pair in pairs if scale != dimension or not about(claim, *pair)]
            if columns is None:
                other = {pair: Row(*pair, testable=False, p={}) for pair in left}
            else:
                other = dict(zip(left, columns.rows(left), strict=True))
            if other:
                found.given("p-values of the pairs that the claim is not about are")
            rows[scale] = tuple(other.get(pair) or row_of(known, known.contrast(scale, *pair)) for pair in pairs)
        known = replace(known, rows=rows, memo={PUT: stated_family(whole.people_p)})
        # The claim as it is put on these measurements: its kind, dimension and subjects decide all its words.
        if kind == "first":
            claim = first_claim(dimension, subjects[0], len(known.agents))
        elif kind == "cell":
            claim = cell_claim(cell_state(claim, known), rules.cells)
        else:
            pair = direction(dimension, subjects[0], subjects[1], known)
            claim = within_claim(*pair, rules.margin) if kind == "within" else pair_claim(dimension, *pair)
        verdict = decide(claim, known, rules, stated.plan_hash, stated.amended)
        found.compare("scope in the tuple", whole.claim_scope, verdict.claim.scope)
        compare_verdicts(stated, verdict, found)
    except AssayError as exc:
        raise InputError(SOURCE, [Problem("", f"lacks what its claim rests on: {exc}")]) from None
    return Verification(not found.differences, tuple(found.differences), tuple(found.notes))
