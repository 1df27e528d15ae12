"""Verify certificates of studies and seasons: fields, numbers (from the tables) and verdict (from the numbers)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import combinations
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError, create_model

from assaymark.claims import levels as rule
from assaymark.claims.certification import FORMAT, KEPT, ORDERS, OTHER_TESTS, PLACES, SEASON, SECTIONS, is_about
from assaymark.claims.findings import HUMAN_P
from assaymark.claims.levels import Rules, SeasonGates, Test
from assaymark.claims.orders import PairRow, row_of
from assaymark.claims.recompute import Recomputation, StatedStudy, Verification
from assaymark.claims.season_claims import SeasonClaims, decide_season
from assaymark.claims.verdicts import KINDS, claim_type, decide
from assaymark.errors import AssayError, InputError, Problem
from assaymark.records import AGGREGATE, JSON, Measurement, Scope, Verdict, canonical_json, parse, problems_of, record

SOURCE: Final = "certificate"

_Probability = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0, le=10**12)]  # above, sums of products would no longer be exact
_Sum = Annotated[float, Field(ge=-1e12, le=1e12)]
_Spread = Annotated[float, Field(ge=0, le=1e12)]
_Entries = tuple[dict[str, JSON], ...]


@record
class StatedRows:
    """The pairs of one scale outside the claim, in the order of names, as columns of `PairRow`."""

    order: Annotated[str, Field(pattern="^[<>]*$")]
    p: dict[Test, tuple[_Probability, ...]]
    floor: tuple[_Probability | None, ...] | None = None
    length: tuple[_Probability | None, ...] | None = None
    others: tuple[_Probability | None, ...] | None = None
    equivalence: tuple[_Probability, ...] | None = None
    near: dict[str, tuple[_Probability, ...]] = Field(default_factory=dict)
    untested: tuple[_Count, ...] = ()
    interested: tuple[_Count, ...] = ()

    def rows(self, pairs: list[tuple[str, str]]) -> Iterator[PairRow]:
        """Yield one row for each pair."""
        for at, pair in enumerate(pairs):
            high, low = pair if self.order[at] == ">" else pair[::-1]
            yield PairRow(
                high,
                low,
                at not in self.untested,
                {test: values[at] for test, values in self.p.items()},
                self.floor[at] if self.floor else None,
                self.length[at] if self.length else None,
                self.others[at] if self.others else None,
                disinterested=at not in self.interested,
                equivalence=self.equivalence[at] if self.equivalence else 1.0,
                near={margin: values[at] for margin, values in self.near.items()},
            )

    def problems(self, pairs: int, tests: tuple[Test, ...], place: str) -> Iterator[Problem]:
        """Yield problems: columns whose length is not the number of pairs, and unexpected tests."""
        named = {name: getattr(self, name) for name in ("order", "floor", "length", "others", "equivalence")}
        named |= {f"near.{margin}": values for margin, values in self.near.items()}
        for name, column in (named | {f"p.{test}": values for test, values in self.p.items()}).items():
            if column is not None and len(column) != pairs:
                yield Problem(f"{place}.{name}", f"must have one entry for each of {pairs} pairs (got {len(column)})")
        if set(self.p) != {"p", *tests}:
            yield Problem(f"{place}.p", f"must be {', '.join(sorted({'p', *tests}))} (got {', '.join(sorted(self.p))})")


@record
class StatedPairs:
    """The pairs outside the claim by scale; None for a scale that the claim does not depend on."""

    tests: tuple[Test, ...]
    scales: dict[str, StatedRows | None]


@record
class _CertificateHead:
    """Common fields of certificates of studies and seasons."""

    software: str
    verdict: Verdict
    claim_scope: Scope


def _rule_problems(kind: type[Rules] | type[SeasonGates], stated: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems: missing rules, numbers that no plan can have, and alternative rules in place of the plan's."""
    for rule_of in fields(kind):
        name, value = rule_of.name, stated.get(rule_of.name)
        number = value if type(value) in (int, float) else None
        if name not in stated:
            yield Problem(f"rules.{name}", "is missing")
        elif name in ("kappa", "test", "source") and value != rule_of.default:
            yield Problem(f"rules.{name}", f"is not a rule of a plan (got {value!r:.80})")
        elif name == "share" and number in (0, 1):
            continue
        elif name in ("alpha", "cell_alpha", "share") and number is not None and not 0 < number < 1:
            yield Problem(f"rules.{name}", f"must lie between 0 and 1 (got {number!r})")
        elif name in ("margin", "span") and number is not None and not 0 < number < math.inf:
            yield Problem(f"rules.{name}", f"must be above 0 (got {number!r})")


@record
class _StudyCertificate(_CertificateHead):
    """A certificate of a study, its measurements not yet parsed."""

    rules: Rules
    study: StatedStudy
    agreement: _Entries
    design: _Entries
    levels: _Entries
    contrasts: _Entries
    drops: _Entries
    biases: _Entries
    probe: _Entries
    cells: _Entries
    style: _Entries
    instruments: _Entries
    other_pairs: StatedPairs | None
    people: _Entries = ()
    people_p: tuple[_Probability, ...] = ()

    def problems(self, stated: Mapping[str, JSON]) -> Iterator[Problem]:
        """Yield problems: subjects that do not fit the claim, rules that no plan can have, and duplicate names."""
        claim, rules, study = self.verdict.claim, self.rules, self.study
        head, count = claim.id.partition("[")[0], len(set(claim.subjects))
        expected = KINDS[head].subjects if head in KINDS else 0
        if not expected:
            yield Problem("claim.id", f"is of no known kind (got {claim.id!r:.80})")
        elif not count == len(claim.subjects) == expected:
            problem = f"a claim {head!r} has {'one subject' if expected == 1 else 'two different subjects'}"
            yield Problem("claim.subjects", f"{problem} (got {', '.join(claim.subjects) or 'none'})")
        yield from _rule_problems(Rules, stated)
        for name in ("agents", "dimensions", "families"):
            names = getattr(study, name)
            if len(set(names)) < len(names) or (name == "agents" and list(names) != sorted(names)):
                how = "different names in alphabetical order" if name == "agents" else "different names"
                yield Problem(f"study.{name}", f"must be {how} (got {', '.join(names):.80})")
        if head == "cell":
            return
        if not set(claim.subjects) <= set(study.agents):
            problem = f"must be among the agents of the study (got {', '.join(claim.subjects):.80})"
            yield Problem("claim.subjects", problem)
        if claim.dimension not in (AGGREGATE, *study.dimensions) or not rules.claims_scale(claim.dimension):
            yield Problem("claim.dimension", f"is not a score that claims are made on (got {claim.dimension!r:.80})")

    def pair_problems(self, measurements: Iterable[Measurement]) -> Iterator[Problem]:
        """Yield problems of the pairs outside the claim: wrong scales, or pairs that do not match the agents."""
        claim, expected, agents = self.verdict.claim, set[str](), len(self.study.agents)
        measured = {item.labels["dimension"] for item in measurements if item.name == "contrast"}
        if claim.dimension in measured and not claim.id.startswith("cell["):
            expected = {scale for scale in (AGGREGATE, *self.study.dimensions) if self.rules.claims_scale(scale)}
        scales = {} if self.other_pairs is None else self.other_pairs.scales
        if set(scales) != expected:
            named = [", ".join(sorted(names)) or "none" for names in (expected, scales)]
            yield Problem("other_pairs.scales", f"must be {named[0]} (got {named[1]:.80})")
            return
        for scale, rows in scales.items():
            claimed = 0 if scale != claim.dimension else agents - 1 if len(claim.subjects) == 1 else 1
            place = f"other_pairs.scales.{scale}"
            if rows is None and (scale == claim.dimension or claim.dimension != AGGREGATE):
                yield Problem(place, "is needed: the claim depends on it")
            elif rows is not None and self.other_pairs is not None:
                yield from rows.problems(agents * (agents - 1) // 2 - claimed, self.other_pairs.tests, place)


@record
class _SeasonCertificate(_CertificateHead):
    """A certificate of a season, its measurements not yet parsed."""

    kind: str
    rules: SeasonGates
    level: Annotated[float, Field(gt=0, lt=1)]
    judges: dict[str, str]
    tables: _Entries


def _square(table: list[list[int]]) -> list[list[int]]:
    if not table or any(len(row) != len(table) for row in table):
        raise ValueError("must be a square of counts")
    return table


_KINDS: Final[Mapping[str, Any]] = {
    "pairs": dict[str, float | None],
    "tables": dict[str, Annotated[list[list[_Count]], AfterValidator(_square)]],
    "ratings": dict[str, Annotated[list[_Sum], Field(min_length=4, max_length=4)]],
    "sums": dict[str, Annotated[list[_Sum], Field(min_length=6, max_length=6)]],
    "coefficient": Literal["kappa", "icc", "alpha"],
    "cluster_sums": dict[str, tuple[_Sum, Annotated[int, Field(ge=1, le=10**12)]]],
    "half_even": float | None,
    "family": str | None,
    "own": dict[str, list[str]],
    "lacking": dict[str, tuple[_Count, _Count]],
    "p_more": dict[str, _Probability],
    "each": dict[str, float],
    "drops": dict[str, float],
    **dict.fromkeys(("lags", "slopes", "gaps"), list[_Sum]),
    "equivalence_interval": tuple[_Sum, _Sum],
    "p_equivalence_at": dict[str, _Probability],
    "order": Literal["exchangeable", "consecutive"],
    "word": Literal["clear", "may be length", "length"],
    **dict.fromkeys(("triggered", "in_parts", "missing", "flagged", "unanimous", "leave_one_out"), bool),
    **dict.fromkeys(("failed", "families", "free", "covariates"), list[str]),
    **dict.fromkeys(("clusters", "below", "tokens", "ddof", "records", "count"), _Count),
    **dict.fromkeys(("outcome", "primary", "judge", "unknown", "left_out"), str),
    **dict.fromkeys(("se", "df", "variance", "mean_variance", "prior_df", "effective"), _Spread),
    **dict.fromkeys(("gap", "slope", "raw", "others", "flag"), _Sum),
    "rho": Annotated[float, Field(ge=0, le=0.9)],
    **dict.fromkeys(("graders", "agents", "of"), list[str]),
    **dict.fromkeys(("drawn", "graded", "needed"), _Count),
    "pi": list[Annotated[float, Field(gt=0, le=1)]],
    **dict.fromkeys(("judged", "people"), list[list[_Sum | None]]),
    "judges": _Sum,
    "rest": dict[str, tuple[Annotated[int, Field(ge=1, le=10**5)], _Sum, _Sum]],
    **dict.fromkeys(("overlap", "distinct", "slope_p"), _Probability),
    **dict.fromkeys(("p", "p_holm", "p_adjusted", "p_equivalence", "p_specific", *OTHER_TESTS), _Probability),
}

_Detail: type[BaseModel] = create_model(  # type: ignore[call-overload]  # fields of a table
    "_Detail", **{name: (kind, None) for name, kind in _KINDS.items()}
)
_CellDetail: type[BaseModel] = create_model("_CellDetail", __base__=_Detail, p=(dict[str, _Probability], None))
_FIXED: Final = ("value", "low", "high", "level", "n", "state")
_ID: Final = re.compile(r"([a-z_.]+)\[(.*)\]", re.DOTALL)
_EARLIER: Final = ("assaymark certificate 1", "assaymark certificate 2")


def verify(certificate: Mapping[str, JSON]) -> Verification:
    """Recompute a certificate from the tables in it, and return the differences (ValueBlindBench section 3.8)."""
    season = isinstance(certificate, Mapping) and certificate.get("format") == SEASON
    return (_verify_season if season else _verify_study)(certificate)


def _verify_study(certificate: Mapping[str, JSON]) -> Verification:
    """Verify a certificate of a study."""
    document, measurements = _parse(certificate)
    study, others, stated, rules = document.study, document.other_pairs, document.verdict, document.rules
    try:
        checks, claim, pairs = Recomputation(study, rules, measurements), stated.claim, [*combinations(study.agents, 2)]
        items = checks.recompute(measurements)
        checks.assume("the rules, judges, agents and dimensions, which the hash of the plan stands for, are")
        tests = frozenset(() if others is None else others.tests)
        index = rule.index(items, study.families, study.agents, study.dimensions, tests)
        # All pairs for the ranking procedure: those of the claim from their measurements, the others as stated.
        rows: dict[str, tuple[PairRow, ...]] = {}
        for scale in (AGGREGATE, *study.dimensions):
            if others is None or scale not in others.scales:
                continue
            columns = others.scales[scale]
            outside = [pair for pair in pairs if scale != claim.dimension or not is_about(claim, *pair)]
            if columns is None:
                other = {pair: PairRow(*pair, testable=False, p={}) for pair in outside}
            else:
                other = dict(zip(outside, columns.rows(outside), strict=True))
            if other:
                checks.assume("p-values of the pairs that the claim is not about are")
            rows[scale] = tuple(other.get(pair) or row_of(index, scale, *pair) for pair in pairs)
        index = replace(index, rows=rows, memo={HUMAN_P: {f"other {at}": p for at, p in enumerate(document.people_p)}})
        # The claim rebuilt from these measurements: its kind, dimension and subjects determine its statement.
        claim = claim_type(claim).build(claim.dimension, claim.subjects, index, rules)
        verdict = decide(claim, index, rules, stated.plan_hash, stated.amended)
        checks.compare("scope in the tuple", document.claim_scope, verdict.claim.scope)
        checks.compare_verdicts(stated, verdict)
        return checks.result
    except AssayError as exc:
        raise InputError(SOURCE, [Problem("", f"lacks what its claim rests on: {exc}")]) from None


def _verify_season(certificate: Mapping[str, JSON]) -> Verification:
    """Verify a certificate of a season."""
    try:
        rules = certificate.get("rules")
        problems = list(_rule_problems(SeasonGates, rules)) if isinstance(rules, Mapping) else []
        try:
            stated = parse(_SeasonCertificate, canonical_json(_rearrange(certificate)), source=SOURCE)
        except InputError as exc:
            raise InputError(SOURCE, [*exc.problems, *problems]) from None
        if problems:
            raise InputError(SOURCE, problems)
        gates, items = stated.rules, []
        for at, entry in enumerate(stated.tables):
            text = canonical_json({"method": "", "value": None} | entry)
            items.append(parse(Measurement, text, source=f"{SOURCE}, measurements.{at}"))
        season = SeasonClaims(items, gates, stated.verdict.plan_hash)
        families, agents = season.known.families, season.known.agents
        study = StatedStudy(stated.level, stated.judges, families, agents, dimensions=())
        # Totals and derived measurements have no tables here, nor do pairs outside the claim.
        bare = {item.id for item in items if item.name not in (*ORDERS, rule.KAPPA)}
        bare |= {item.id for item in items if item.name == "contrast" and "cluster_sums" not in item.detail}
        checks, claim = Recomputation(study, season.rules, items, bare), stated.verdict.claim
        checks.assume("the rules, the judges and their families, which the hash of the plan stands for, are")
        again = checks.recompute(items)
        for agent in claim.subjects:
            # The lowest and highest judge of the claim's agents, from their composites.
            of_agent = [measurement for measurement in again if measurement.labels.get("agent") == agent]
            points = [item.value for item in of_agent if item.name == rule.COMPOSITE and item.value is not None]
            total = next((measurement for measurement in of_agent if measurement.name == rule.TOTAL), None)
            if points and total is not None and total.value is not None:
                checks.compare(f"lowest judge of {agent}", total.detail.get("low"), min(points))
                checks.compare(f"highest judge of {agent}", total.detail.get("high"), max(points))
                checks.compare(f"judges of {agent}", total.detail.get("judges"), len(points))
        checks.assume("totals, noise floors, returns and what the pairs beside the claim's show are")
        decided = decide_season(again, gates, stated.verdict.plan_hash).verdicts
        same = [verdict for verdict in decided if verdict.verdict.claim.id == claim.id]
        if not same:
            checks.compare("the claim", claim.id, None)
        for verdict in same:
            checks.compare("scope in the tuple", stated.claim_scope, verdict.verdict.claim.scope)
            checks.compare("kind of the claim", stated.kind, verdict.kind)
            checks.compare_verdicts(stated.verdict, verdict.verdict)
        return checks.result
    except InputError:
        raise
    except (AssayError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as exc:
        problem = f"lacks or misstates what its claim rests on: {type(exc).__name__}: {exc}"
        raise InputError(SOURCE, [Problem("", problem[:300])]) from None


def _parse(certificate: Mapping[str, JSON]) -> tuple[_StudyCertificate, tuple[Measurement, ...]]:
    """Parse a certificate and its measurements; raises `InputError` with every problem."""
    if not isinstance(certificate, Mapping):
        raise InputError(SOURCE, [Problem("", f"must be a JSON object (got {type(certificate).__name__})")])
    stated = certificate.get("format")
    if stated != FORMAT:
        message = f"must be {FORMAT!r} (got {stated!r:.80})"
        if stated in _EARLIER:
            message = (
                f"{stated!r} is read by assaymark 0.1, under whose rules it was decided (this version reads {FORMAT!r})"
            )
        raise InputError(SOURCE, [Problem("format", message)])
    try:
        parsed = parse(_StudyCertificate, canonical_json(_rearrange(certificate)), source=SOURCE)
    except InputError as exc:
        problems = []
        for problem in exc.problems:
            # Map a field of the rearranged form to its place in the certificate.
            head, dot, tail = problem.where.removeprefix("verdict.").partition(".")
            head = {"measurements": "rests_on", "claim_scope": "tuple.claim_scope"}.get(head, head)
            head = f"tuple.{PLACES[head]}" if head in PLACES else head
            problems.append(Problem(f"{head}{dot if tail else ''}{tail}", problem.what))
        raise InputError(SOURCE, problems) from None
    except (TypeError, ValueError, RecursionError) as exc:
        raise InputError(SOURCE, [Problem("", str(exc))]) from None
    problems = [*parsed.problems(certificate["rules"])]
    named = not any(problem.where.startswith(("claim.", "study.")) for problem in problems)
    measurements = []
    for section in SECTIONS:
        for at, entry in enumerate(getattr(parsed, section)):
            item, wrong = _parse_measurement(entry, section, f"{section}.{at}")
            problems += wrong
            measurements += [] if item is None else [item]
    ids = Counter(item.id for item in measurements)
    problems += [Problem(name, "is there twice") for name in sorted(ids) if ids[name] > 1]
    problems += parsed.pair_problems(measurements) if named else ()
    if problems:
        raise InputError(SOURCE, problems)
    return parsed, tuple(measurements)


def _rearrange(certificate: Mapping[str, JSON]) -> dict[str, JSON]:
    """Rearrange a certificate: the fields of the verdict together, as in `Verdict`."""
    raw = {str(key): value for key, value in certificate.items() if key not in ("format", "rests_on", "tuple")}
    five = certificate.get("tuple")
    stated = dict(five) if isinstance(five, Mapping) else {}
    verdict = {name: raw.pop(name) for name in (field.name for field in fields(Verdict)) if name in raw}
    verdict |= {name: stated.pop(place) for name, place in PLACES.items() if place in stated}
    if "rests_on" in certificate:
        verdict["measurements"] = certificate["rests_on"]
    return raw | {"verdict": verdict} | stated


def _parse_measurement(entry: Mapping[str, JSON], section: str, at: str) -> tuple[Measurement | None, list[Problem]]:
    """Parse one measurement of a section; returns it or None, and the problems."""
    stated = entry.get("id")
    match = _ID.fullmatch(stated) if isinstance(stated, str) else None
    name = "" if match is None else match[1]
    if match is None or name not in SECTIONS[section]:
        kinds = ", ".join(SECTIONS[section])
        return None, [Problem(f"{at}.id", f"must name one of {kinds} (got {stated!r:.80})")]
    labels = {key: value for key, _, value in (pair.partition("=") for pair in match[2].split(",") if pair)}
    detail = {key: value for key, value in entry.items() if key not in (*_FIXED, "id")}
    parts = KEPT[name].parts
    problems = [Problem(f"{at}.{key}", "is not a part of this measurement") for key in detail if key not in parts]
    needed = KEPT[name].needed if "value" in entry or name == "length.contrast" else ()
    needed = (*needed, "p_specific") if "others" in detail else needed
    needed = (*needed, "covariates", "gaps") if "slopes" in detail else needed
    problems += [Problem(f"{at}.{key}", "is missing") for key in needed if key not in detail]
    try:
        (_CellDetail if name == "cell.agreement" else _Detail).model_validate_json(canonical_json(detail), strict=True)
    except ValidationError as exc:
        problems += [Problem(f"{at}.{problem.where}", problem.what) for problem in problems_of(exc)]
    sizes = {key: len(detail[key]) for key in ("slopes", "gaps", "covariates") if "slopes" in detail and not problems}
    if len(set(sizes.values())) > 1:
        problems.append(Problem(f"{at}.slopes", "must be as many as gaps and covariates"))
    fixed = {"value": None, **{key: entry[key] for key in _FIXED if key in entry}}
    raw = {**fixed, "n_of": "", "method": "", "name": name, "labels": labels, "detail": detail}
    try:
        item = parse(Measurement, canonical_json(raw), source=at)
    except InputError as exc:
        return None, [*problems, *(Problem(f"{at}.{p.where}", p.what) for p in exc.problems)]
    allowed = [frozenset(label.split()) for label in KEPT[name].labels]
    if frozenset(item.labels) not in allowed:
        listed = " or ".join(", ".join(sorted(names)) or "none" for names in allowed)
        got = ", ".join(sorted(item.labels)) or "none"
        problems.append(Problem(f"{at}.labels", f"must be {listed} (got {got})"))
    if not problems and stated != item.id:
        problems.append(Problem(f"{at}.id", f"must be {item.id} (got {stated!r:.80})"))
    if (item.value is None) == (item.state == "ok"):
        problems.append(Problem(f"{at}.state", f"without a value it must be the reason (got {item.state!r:.80})"))
    return (None if problems else item), problems
