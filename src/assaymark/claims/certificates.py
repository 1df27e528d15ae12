"""A verdict as a small file: enough tables to recompute it, and no judged text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, Final, NamedTuple, TypeVar

from assaymark import __version__
from assaymark.claims.evidence import Index
from assaymark.claims.levels import Rules, coefficient_words, kind_of
from assaymark.claims.orders import Row, rows_of
from assaymark.claims.panel import others_of
from assaymark.claims.verdicts import ask_people, rejecting
from assaymark.protocol import Study
from assaymark.records import (
    AGGREGATE,
    JSON,
    Cap,
    Claim,
    Condition,
    Measurement,
    StabilityFinding,
    Verdict,
    sha256_text,
    to_json,
)

FORMAT: Final = "assaymark certificate 3"

_KAPPA: Final = ("pairs", "tables", "clusters", "half_even", "coefficient", "sums", "ratings")
_TEST: Final = ("p", "se", "df", "clusters")
_POOLED: Final = ("variance", "mean_variance", "prior_df", "rho", "effective")
OTHER_TESTS: Final = ("p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip")
"""p-values of a contrast under the tests of the fragility table, by their place in its detail."""
_NEAR: Final = ("p_equivalence", "p_equivalence_at")
_PAIR: Final = ("dimension high low",)
_FORMATS: Final = ("dimension", "dimension format")
_SAMPLE: Final = ("graders", "drawn", "graded")
_LABELLED: Final = ("agents", "of", "pi", "judged", "people")


class Kept(NamedTuple):
    """What a certificate keeps of a measurement.

    Its section; the sets of labels that it can have; the parts of its detail, and those of them without which nothing
    could be decided where it has a value; how a difference calls it; and what is said where it is taken as given.
    """

    section: str
    labels: tuple[str, ...]
    parts: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    called: str = ""
    given: str = ""


KEPT: Final[Mapping[str, Kept]] = {
    "kappa.mean_pairwise": Kept("agreement", _FORMATS, _KAPPA, (), "kappa"),
    "kappa.other_ddof": Kept("agreement", _FORMATS, ("ddof", "coefficient"), (), "kappa under the other ddof",
                             "kappas under the other ddof are"),
    "cell.kappa": Kept("agreement", ("cell dimension",), _KAPPA, (), "kappa"),
    "cell.agreement": Kept("agreement", ("cell",), ("unanimous", "leave_one_out", "each", "drops", "p", "coefficient"),
                           ("unanimous", "leave_one_out"), "agreement"),
    "panel.families": Kept("design", ("",), ("unknown", "own", "in_parts", "missing"), ("own",),
                           "number of judge families"),
    "order.autocorrelation": Kept("design", ("dimension",), ("lags", "flagged", "flag", "order"), (),
                                  "autocorrelation"),
    "missing.share": Kept("design", ("judge",), ("left_out", "records", "lacking", "p_more"),
                          ("records", "lacking", "p_more")),
    "agent.flagged_texts": Kept("design", ("agent",), ("count",), ("count",)),
    "score.effect": Kept("levels", ("dimension agent",), (), (), "level", "levels of agents are"),
    "contrast": Kept("contrasts", _PAIR, (*_TEST, *_POOLED, *OTHER_TESTS, *_NEAR, "cluster_sums", "gap",
                                          "equivalence_interval", "others", "p_specific"), ("p", "clusters")),
    "lofo.effect": Kept("drops", ("dimension dropped agent",), (), (), "level"),
    "lofo.contrast": Kept("drops", ("dimension high low dropped",), (*_TEST, *_POOLED, "p_adjusted"), ("p",),
                          "contrast"),
    "recusal.contrast": Kept("biases", _PAIR, (*_TEST, *_NEAR, "families", "free"), ("p", "clusters"),
                             "contrast with judges standing aside"),
    "length.contrast": Kept("biases", _PAIR, (*_TEST, *_NEAR, "word", "covariates", "gap", "slope", "slope_p", "raw",
                                              "overlap", "slopes", "gaps"), ("p", "clusters"),
                            "contrast at equal length"),
    "judges.contrast": Kept("biases", _PAIR, ("p", "se", "df"), ("p",), "contrast over other judges"),
    "dimension.distinct": Kept("biases", ("dimension",), ("p", "p_holm", "distinct"), (),
                               "correlation with the overall impression"),
    "probe.contrast": Kept("probe", _PAIR, ("judge", "family", "p", "cluster_sums"), (), "probe"),
    "cell.gate": Kept("cells", ("cell",), ("outcome", "p", "p_holm", "primary", "cluster_sums"), (), "gate"),
    "cell.halo": Kept("cells", ("cell",), ("family", "triggered"), (), "halo", "intervals of halos are"),
    "cell.drop": Kept("cells", ("cell dropped",), ("outcome", "p", "p_holm"), (), "gate",
                      "p-values and intervals of control cells without each judge family are"),
    "terse.share": Kept("style", ("agent",), ("below", "tokens"), (), "terse share"),
    "length_matched.contrast": Kept("style", _PAIR, ("p", "p_holm"), (), "contrast in the rerun at equal length",
                                    "reruns at equal length are"),
    "datasheet.gate": Kept("instruments", ("judge",), ("failed",), (), "",
                           "what the datasheets of the judges show is"),
    "human.sample": Kept("people", ("dimension",), _SAMPLE, _SAMPLE,
                         "share of the drawn cycles that people graded"),
    "human.agreement": Kept("people", ("dimension",), ("pairs", "tables", "sums", "coefficient"), (),
                            "agreement of the graders"),
    "human.labels": Kept("people", ("dimension",), _LABELLED, _LABELLED),
    "human.contrast": Kept("people", _PAIR, ("p", "se", "df", "judges", "needed", "rest", "p_graders"), ("p", "rest"),
                           "difference that people see"),
}  # fmt: skip

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    section: tuple(name for name, one in KEPT.items() if one.section == section)
    for section in dict.fromkeys(one.section for one in KEPT.values())
}
"""Which measurements each part of a certificate holds."""

PLACES: Final[Mapping[str, str]] = {
    "agreement_status": "agreement_status",
    "stability_status": "stability_status",
    "adversarial_status": "adversarial_status",
    "publication_level": "permitted_publication_level",
}
"""Fields of a verdict that stand in the tuple, by the names that ValueBlindBench gives them."""

_NO_INTERVAL: Final = ("score.effect", "lofo.effect", "lofo.contrast", "terse.share", "length_matched.contrast")


def certificates(verdicts: Iterable[Verdict], known: Index, study: Study) -> Iterator[Mapping[str, JSON]]:
    """The `certificate` of each verdict; what several of them hold is made once."""
    made: dict[tuple[str, bool], Mapping[str, JSON]] = {}
    for verdict in verdicts:
        yield _certificate(verdict, known, study, made)


def certificate(verdict: Verdict, known: Index, study: Study) -> Mapping[str, JSON]:
    """The certificate of one verdict, as plain JSON: `assaymark.claims.verify` recomputes the verdict from it alone."""
    return _certificate(verdict, known, study, {})


def stated_in(verdict: Verdict, form: str) -> dict[str, JSON]:
    """What a certificate of the format ``form`` says of its verdict, whatever that was decided from."""
    stated = to_json(verdict)
    rests_on = stated.pop("measurements")
    five = {place: stated.pop(name) for name, place in PLACES.items()}
    head = {"format": form, "software": f"assaymark {__version__}"}
    return {**head, **stated, "tuple": {"claim_scope": verdict.claim.scope, **five}, "rests_on": rests_on}


def _certificate(
    verdict: Verdict, known: Index, study: Study, made: dict[tuple[str, bool], Mapping[str, JSON]]
) -> Mapping[str, JSON]:
    rules = Rules.of(study, preregistered=verdict.preregistered)
    ask_people(study, known, rules)
    kept = {item.id: (item, False) for item in _needed(verdict, known)}
    leader, on_all = verdict.claim.subjects[0], verdict.claim.dimension == AGGREGATE and known.tested(AGGREGATE)
    if kind_of(verdict.claim) in ("pair", "within") and on_all:
        # What leaving out families does to the other pairs of a leader: if all of them pass, so may the claim's pair.
        led = [row for row in rows_of(known)[AGGREGATE] if leader in (row.high, row.low)]
        for row in led if all(row.high == leader and row.testable for row in led) else ():
            drops = (known.drop(AGGREGATE, family, leader, row.low) for family in known.families)
            kept |= {item.id: (item, True) for item in drops if item is not None and item.id not in kept}
    # The pairs that the order procedure sees beside those of the claim, scale by scale, in the order of names.
    claim, kind, scales = verdict.claim, kind_of(verdict.claim), dict[str, JSON]()
    tests = [] if kind in ("within", "cell") else sorted(rejecting(known, rules).intersection(OTHER_TESTS))
    for scale, rows in (rows_of(known) if kind != "cell" and known.tested(claim.dimension) else {}).items():
        if rules.claims_scale(scale):
            needed = claim.dimension != AGGREGATE or scale == AGGREGATE
            mine = claim if scale == claim.dimension else None
            scales[scale] = _stated_rows(known, scale, rows, mine, tests, rules) if needed else None
    return {
        **stated_in(verdict, FORMAT),
        "rules": {
            **{name: getattr(rules, name) for name in Rules.__dataclass_fields__},
            "scales": None if rules.scales is None else sorted(rules.scales),
            "cells": rules.cells.model_dump(mode="json"),
        },
        "study": {
            "level": study.inference.level,
            "judges": {judge.name: judge.family for judge in study.judges},
            "families": list(known.families),
            "agents": list(known.agents),
            "dimensions": list(known.dimensions),
        },
        **{
            section: [_entry(item, made, apart) for item, apart in kept.values() if item.name in names]
            for section, names in SECTIONS.items()
            if section != "people" or (claim.asserts_order and known.named("human.sample"))
        },
        **({"people_p": others_of(claim.id, known)} if verdict.human_anchor != "not-tested" else {}),
        "other_pairs": None if kind == "cell" else {"tests": tests, "scales": scales},
    }


def certificate_name(verdict: Verdict) -> str:
    """The file name of a certificate: readable, safe on every file system, and unique by the claim's digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", verdict.claim.id).strip("-.")[:80]
    return f"{readable}-{sha256_text(verdict.claim.id)[:8]}.json"


def _needed(verdict: Verdict, known: Index) -> list[Measurement]:
    """What the verdict rests on, and what deciding it again, also under the other rules, has to look at."""
    claim, rests = verdict.claim, set(verdict.measurements)
    always: tuple[str, ...] = ("cell.gate", "cell.drop", "cell.halo")
    if kind_of(claim) == "cell":
        return [item for name, item in known.by_id.items() if name in rests or item.name in always]
    agents = known.agents if kind_of(claim) == "first" else claim.subjects
    on_dimension = {"kappa.other_ddof", "dimension.distinct", "order.autocorrelation"}
    on_dimension |= set() if known.tested(claim.dimension) else {"score.effect"}
    on_dimension |= set(SECTIONS["people"][:3]) if claim.asserts_order else set()

    def looked_at(item: Measurement) -> bool:
        if item.name == "terse.share":
            return item.labels["agent"] in agents
        if item.name == "length_matched.contrast" and not about(claim, item.labels["high"], item.labels["low"]):
            return False
        if item.name in on_dimension or item.name == "length_matched.contrast":
            return item.labels["dimension"] == claim.dimension
        return item.name in always or item.name == "panel.families"

    names = ("terse.share", "length_matched.contrast", *sorted(on_dimension), *always, "panel.families")
    kept = rests | {item.id for name in names for item in known.named(name) if looked_at(item)}
    places = known.once("places", lambda: {name: at for at, name in enumerate(known.by_id)})
    return [known.by_id[name] for name in sorted(kept & known.by_id.keys(), key=places.__getitem__)]


def _entry(item: Measurement, made: dict[tuple[str, bool], Mapping[str, JSON]], apart: bool) -> Mapping[str, JSON]:
    """One measurement as a certificate has it; what is absent is undefined, or not needed to check the rest."""
    if (item.id, apart) in made:
        return made[item.id, apart]
    entry: dict[str, JSON] = {"id": item.id, "n": item.n}
    if item.state != "ok":
        entry["state"] = item.state
    if item.value is not None:
        entry["value"] = item.value
    if item.name not in _NO_INTERVAL:
        ends = {"low": item.low, "high": item.high, "level": item.level}
        entry |= {part: value for part, value in ends.items() if value is not None}
    parts = ("p",) if apart else (KEPT[item.name].parts if item.name in KEPT else ())
    entry |= {part: to_json(item.detail[part]) for part in parts if item.detail.get(part) is not None}
    made[item.id, apart] = entry
    return entry


def _stated_rows(
    known: Index, scale: str, rows: Sequence[Row], claim: Claim | None, tests: Sequence[str], rules: Rules
) -> Mapping[str, JSON]:
    """Rows as columns; a column that says the same of every pair as the lack of it is left out."""

    def short(p: float | None) -> float | None:
        return None if p is None else float(f"{p:.12g}")

    def whole() -> dict[str, list[Any]]:
        # What certificates say of every pair on one scale, with as many digits as comparisons look at
        pairs = list(combinations(known.agents, 2))
        numbers = ("floor", "length", "others", "equivalence")
        return {
            "pair": pairs,
            "order": [">" if row.high == one else "<" for (one, _), row in zip(pairs, rows, strict=True)],
            "near": [{margin: short(p) for margin, p in row.near.items()} for row in rows],
            "untested": [not row.testable for row in rows],
            "interested": [not row.disinterested for row in rows],
            **{name: [short(getattr(row, name)) for row in rows] for name in numbers},
            **{test: [short(row.p.get(test, 1.0)) for row in rows] for test in dict.fromkeys(("p", *tests))},
        }

    every = known.once(("columns", scale), whole)
    mine = [] if claim is None else [at for at, pair in enumerate(every["pair"]) if about(claim, *pair)]
    names = ["floor", "length", *(["others"] if rules.any_judges else [])]
    near = claim is not None and claim.dimension == AGGREGATE and len(claim.subjects) == 2
    if claim is None and ("stated", scale) in known.memo:
        found: Mapping[str, JSON] = known.memo["stated", scale]
        return found

    def others(name: str) -> list[Any]:
        column = every[name]
        if len(mine) == 1:
            return column[: mine[0]] + column[mine[0] + 1 :]
        return [one for at, one in enumerate(column) if at not in mine] if mine else column

    columns = {name: others(name) for name in (*names, *(["equivalence"] if near else []))}
    places = {name: [at for at, one in enumerate(others(name)) if one] for name in ("untested", "interested")}
    margins = sorted({margin for name in every["near"] for margin in name}) if near else []
    made = {
        "order": "".join(others("order")),
        "p": {test: others(test) for test in dict.fromkeys(("p", *tests))},
        **{name: values for name, values in columns.items() if any(value is not None for value in values)},
        **(
            {"near": {margin: [other.get(margin, 1.0) for other in others("near")] for margin in margins}}
            if margins
            else {}
        ),
        **{name: at for name, at in places.items() if at},
    }
    if claim is None:  # the same for every claim that is not about this scale
        known.memo["stated", scale] = made
    return made


def about(claim: Claim | None, one: str, other: str) -> bool:
    """Whether a claim about agents compares these two: all its pairs have its one or both of its two subjects."""
    return claim is not None and set(claim.subjects) <= {one, other}


T = TypeVar("T")

_CALLED: Final[Mapping[str, str]] = {
    "agreement_status": "agreement",
    "stability_status": "stability",
    "adversarial_status": "adversarial",
    "binding": "binding fields",
    "measurements": "measurements it rests on",
    "amended": "amended fields",
    "stability": "what leaving out judge families does",
}

_CLOSE: Final = 1e-9


@dataclass(slots=True)
class Findings:
    """What differs, and what had to be taken as given, each once and in order."""

    differences: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def compare(self, what: str, stated: Any, found: T) -> T:
        """What the tables give, noting where something else is stated; the stated number itself up to float noise."""
        if not same(stated, found):
            one, other = shown_apart(stated, found)
            self.differences[f"{what}: the certificate says {one}, its tables give {other}"] = None
            return found
        return found if found is None else stated

    def interval(self, item: Measurement, low: float | None, high: float | None) -> Measurement:
        """The measurement with these ends of its interval; a difference from the stated ones is noted."""
        return replace(
            item,
            low=self.compare(f"lower end of the {about_difference(item)}", item.low, low),
            high=self.compare(f"upper end of the {about_difference(item)}", item.high, high),
        )

    def given(self, what: str) -> None:
        """Note that something could not be recomputed."""
        self.notes[f"{what} taken as given"] = None


def same(stated: Any, found: Any) -> bool:
    """Whether two values are equal, numbers up to float noise."""
    if isinstance(stated, int | float) and isinstance(found, int | float):
        return math.isclose(stated, found, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(stated == found)


def shown_apart(stated: Any, found: Any) -> tuple[str, str]:
    """Two values that differ, with as many decimals as it takes to see it."""
    for digits in range(2, 17):
        one, other = (
            f"{x:.{digits}f}" if isinstance(x, float) else "nothing" if x is None else str(x) for x in (stated, found)
        )
        if one != other:
            return one, other
    return repr(stated), repr(found)


def about_difference(item: Measurement) -> str:
    """How a difference calls the number that it is about."""
    name = "kappa on bands" if item.name == "season.kappa" else item.name
    name = (KEPT[item.name].called if item.name in KEPT else "") or name
    if item.name.startswith(("kappa.", "cell.kappa")):
        name = name.replace("kappa", coefficient_words(item))
    parts = [name]
    for label, words in (
        ("high", "of {high} and {low}"),
        ("format", "within format {format}"),
        ("cell", "of {cell}"),
        ("agent", "of {agent}"),
        ("dimension", "on {dimension}"),
        ("dropped", "without {dropped}"),
    ):
        parts += [words.format_map(item.labels)] if label in item.labels else []
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate's verdict follows from its own tables."""

    ok: bool
    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()


def compare_verdicts(stated: Verdict, again: Verdict, found: Findings) -> None:
    """Two verdicts on one claim, field by field."""
    pairs = [(f"{field.name} of the claim", getattr(stated.claim, field.name), getattr(again.claim, field.name))
             for field in fields(Claim)]  # fmt: skip
    pairs += [
        (_CALLED.get(field.name, field.name.replace("_", " ")), getattr(stated, field.name), getattr(again, field.name))
        for field in fields(Verdict)
        if field.name != "claim"
    ]
    for what, mine, other in pairs:
        if isinstance(other, Mapping):
            for name in dict.fromkeys([*mine, *other]):
                found.compare(f"level under {name}", mine.get(name), other.get(name))
        elif isinstance(other, tuple):
            for at in range(max(len(mine), len(other))):
                found.compare(what, *(_shown(side[at]) if at < len(side) else None for side in (mine, other)))
        else:
            found.compare(what, _shown(mine), _shown(other))


def _shown(value: Any) -> Any:
    """A part of a verdict as one text or number."""
    match value:
        case Condition():
            return f"{value.id}: {value.text}"
        case Cap():
            return f"{value.field} at {value.level}{', lifted' if value.lifted else ''}"
        case StabilityFinding():
            return f"{value.state} {', '.join(value.families)}".rstrip()
    return value
