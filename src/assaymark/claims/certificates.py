"""A verdict as a small file of its own: enough tables to recompute it, and no text that anybody wrote."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, Final, TypeVar

from assaymark import __version__
from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import Index
from assaymark.claims.levels import Rules
from assaymark.claims.orders import Row, rows_of
from assaymark.claims.verdicts import rejecting
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

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "agreement": ("kappa.mean_pairwise", "kappa.other_ddof", "cell.kappa", "cell.agreement"),
    "design": ("panel.families", "order.autocorrelation", "missing.share", "agent.flagged_texts"),
    "levels": ("score.effect",),
    "contrasts": ("contrast",),
    "drops": ("lofo.effect", "lofo.contrast"),
    "biases": ("recusal.contrast", "length.contrast", "judges.contrast", "dimension.distinct"),
    "probe": ("probe.contrast",),
    "cells": ("cell.gate", "cell.halo", "cell.drop"),
    "style": ("terse.share", "length_matched.contrast"),
    "instruments": ("datasheet.gate",),
}
"""Which measurements stand in which part of a certificate."""

_KAPPA: Final = ("pairs", "tables", "clusters", "half_even")
_TEST: Final = ("p", "se", "df", "clusters")
_POOLED: Final = ("variance", "mean_variance", "prior_df", "rho", "effective")
OTHER_TESTS: Final = ("p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip")
"""p-values of a contrast under the tests of the fragility table, by their place in its detail."""
_NEAR: Final = ("p_equivalence", "p_equivalence_at")

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kappa.mean_pairwise": _KAPPA,
    "kappa.other_ddof": ("ddof",),
    "cell.kappa": _KAPPA,
    "cell.agreement": ("unanimous", "leave_one_out", "each", "drops", "p"),
    "panel.families": ("unknown", "own", "in_parts", "missing"),
    "order.autocorrelation": ("lags", "flagged", "flag", "order"),
    "contrast": (*_TEST, *_POOLED, *OTHER_TESTS, *_NEAR, "cluster_sums", "gap", "equivalence_interval", "others",
                 "p_specific"),
    "lofo.contrast": (*_TEST, *_POOLED, "p_adjusted"),
    "recusal.contrast": (*_TEST, *_NEAR, "families", "free"),
    "length.contrast": (*_TEST, *_NEAR, "word", "covariates", "gap", "slope",
                        "slope_p", "raw", "overlap", "slopes", "gaps"),
    "judges.contrast": ("p", "se", "df"),
    "dimension.distinct": ("p", "p_holm", "distinct"),
    "probe.contrast": ("judge", "family", "p", "cluster_sums"),
    "cell.gate": ("outcome", "p", "p_holm", "primary", "cluster_sums"),
    "cell.halo": ("family", "triggered"),
    "cell.drop": ("outcome", "p", "p_holm"),
    "missing.share": ("left_out", "records", "lacking", "p_more"),
    "agent.flagged_texts": ("count",),
    "terse.share": ("below", "tokens"),
    "length_matched.contrast": ("p", "p_holm"),
    "datasheet.gate": ("failed",),
}  # fmt: skip
"""What a certificate keeps of each measurement's detail."""

PLACES: Final[Mapping[str, str]] = {
    "agreement_status": "agreement_status",
    "stability_status": "stability_status",
    "adversarial_status": "adversarial_status",
    "publication_level": "permitted_publication_level",
}
"""Fields of a verdict that stand in the tuple, by the names that ValueBlindBench gives them."""

_CELLS: Final = ("cell.gate", "cell.drop", "cell.halo")
_ON_DIMENSION: Final = ("kappa.other_ddof", "dimension.distinct", "order.autocorrelation")
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
    kept = {item.id: (item, False) for item in _needed(verdict, known)}
    kept |= {item.id: (item, True) for item in _other_drops(verdict.claim, known) if item.id not in kept}
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
            section: [_entry(item, made, apart=apart) for item, apart in kept.values() if item.name in names]
            for section, names in SECTIONS.items()
        },
        "other_pairs": None if kind_of(verdict.claim) == "cell" else _other_pairs(verdict.claim, known, rules),
    }


def certificate_name(verdict: Verdict) -> str:
    """The file name of a certificate: readable, safe on every file system, and unique by the claim's digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", verdict.claim.id).strip("-.")[:80]
    return f"{readable}-{sha256_text(verdict.claim.id)[:8]}.json"


# --- measurements -----------------------------------------------------------------------------------------------------


def _needed(verdict: Verdict, known: Index) -> list[Measurement]:
    """What the verdict rests on, and what deciding it again, also under the other rules, has to look at."""
    claim, rests = verdict.claim, set(verdict.measurements)
    if kind_of(claim) == "cell":
        return [item for name, item in known.by_id.items() if name in rests or item.name in _CELLS]
    agents = known.agents if kind_of(claim) == "first" else claim.subjects
    on_dimension = _ON_DIMENSION if known.tested(claim.dimension) else (*_ON_DIMENSION, "score.effect")
    return [
        item
        for name, item in known.by_id.items()
        if name in rests
        or item.name in (*_CELLS, "panel.families")
        or (item.name == "terse.share" and item.labels["agent"] in agents)
        or (item.name in on_dimension and item.labels["dimension"] == claim.dimension)
        or (
            item.name == "length_matched.contrast"
            and item.labels["dimension"] == claim.dimension
            and about(claim, item.labels["high"], item.labels["low"])
        )
    ]


def _other_drops(claim: Claim, known: Index) -> Iterator[Measurement]:
    """What leaving out families does to the other pairs of a leader: if all of them pass, so may the claim's pair."""
    if kind_of(claim) not in ("pair", "within") or claim.dimension != AGGREGATE or not known.tested(AGGREGATE):
        return
    leader = claim.subjects[0]
    mine = [row for row in rows_of(known)[AGGREGATE] if leader in (row.high, row.low)]
    if all(row.high == leader and row.testable for row in mine):
        for row in mine:
            drops = (known.drops.get((AGGREGATE, family, frozenset((leader, row.low)))) for family in known.families)
            yield from (item for item in drops if item is not None)


def _entry(item: Measurement, made: dict[tuple[str, bool], Mapping[str, JSON]], *, apart: bool) -> Mapping[str, JSON]:
    if (item.id, apart) not in made:
        made[item.id, apart] = _made(item, apart=apart)
    return made[item.id, apart]


def _made(item: Measurement, *, apart: bool) -> Mapping[str, JSON]:
    """One measurement as it stands in a certificate; what is absent is undefined, or not needed to check the rest."""
    entry: dict[str, JSON] = {"id": item.id, "n": item.n}
    if item.state != "ok":
        entry["state"] = item.state
    if item.value is not None:
        entry["value"] = item.value
    if item.name not in _NO_INTERVAL:
        ends = {"low": item.low, "high": item.high, "level": item.level}
        entry |= {part: value for part, value in ends.items() if value is not None}
    parts = ("p",) if apart else PARTS.get(item.name, ())
    return entry | {part: to_json(item.detail[part]) for part in parts if item.detail.get(part) is not None}


# --- the pairs that the claim is not about ----------------------------------------------------------------------------


def _other_pairs(claim: Claim, known: Index, rules: Rules) -> Mapping[str, JSON]:
    """The pairs that the order procedure sees beside those of the claim, scale by scale, in the order of names."""
    tests = sorted(rejecting(known, rules).intersection(OTHER_TESTS)) if kind_of(claim) != "within" else []
    found: dict[str, JSON] = {}
    for scale, rows in (rows_of(known) if known.tested(claim.dimension) else {}).items():
        if rules.claims_scale(scale):
            needed = claim.dimension != AGGREGATE or scale == AGGREGATE
            mine = claim if scale == claim.dimension else None
            found[scale] = _stated_rows(known.agents, rows, mine, tests, rules) if needed else None
    return {"tests": tests, "scales": found}


def _stated_rows(
    agents: Sequence[str], rows: Sequence[Row], claim: Claim | None, tests: Sequence[str], rules: Rules
) -> Mapping[str, JSON]:
    """Rows as columns; a column that says the same of every pair as the lack of it is left out."""
    pairs = zip(combinations(agents, 2), rows, strict=True)
    left = [(one, row) for (one, other), row in pairs if not about(claim, one, other)]
    names = ["floor", "length", *(["others"] if rules.any_judges else [])]
    if claim is not None and claim.dimension == AGGREGATE and len(claim.subjects) == 2:
        names.append("equivalence")
    columns = {name: [_short(getattr(row, name)) for _, row in left] for name in names}
    margins = sorted({margin for _, row in left for margin in row.near}) if "equivalence" in names else []
    near = {margin: [_short(row.near.get(margin, 1.0)) for _, row in left] for margin in margins}
    places: dict[str, list[int]] = {
        "untested": [at for at, (_, row) in enumerate(left) if not row.testable],
        "interested": [at for at, (_, row) in enumerate(left) if not row.disinterested],
    }
    return {
        "order": "".join(">" if row.high == one else "<" for one, row in left),
        "p": {test: [_short(row.p.get(test, 1.0)) for _, row in left] for test in dict.fromkeys(("p", *tests))},
        **{name: values for name, values in columns.items() if any(value is not None for value in values)},
        **({"near": near} if near else {}),
        **{name: at for name, at in places.items() if at},
    }


def _short(p: float | None) -> float | None:
    """A p-value with as many digits as comparisons look at."""
    return None if p is None else float(f"{p:.12g}")


def about(claim: Claim | None, one: str, other: str) -> bool:
    """Whether a claim about agents compares these two: all its pairs have its one or both of its two subjects."""
    return claim is not None and set(claim.subjects) <= {one, other}


# What a check of a certificate found: numbers that differ from what its tables give, in words.


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
        one, other = (f"{x:.{digits}f}" if isinstance(x, float) else _plain(x) for x in (stated, found))
        if one != other:
            return one, other
    return repr(stated), repr(found)


def _plain(value: Any) -> str:
    return "nothing" if value is None else str(value)


def about_difference(item: Measurement) -> str:
    """How a difference calls the number that it is about."""
    labels = item.labels
    where = f" on {labels['dimension']}" if "dimension" in labels else ""
    if "high" in labels:
        return f"{_NAMES.get(item.name, item.name)} of {labels['high']} and {labels['low']}{where}{_without(labels)}"
    parts = [_NAMES.get(item.name, item.name)]
    parts += [f"within format {labels['format']}"] if "format" in labels else []
    parts += [f"of {labels[name]}" for name in ("cell", "agent") if name in labels]
    return f"{' '.join(parts)}{where}{_without(labels)}"


_NAMES: Final[Mapping[str, str]] = {
    "kappa.mean_pairwise": "kappa",
    "season.kappa": "kappa on bands",
    "kappa.other_ddof": "kappa under the other ddof",
    "cell.kappa": "kappa",
    "cell.agreement": "agreement",
    "panel.families": "number of judge families",
    "order.autocorrelation": "autocorrelation",
    "score.effect": "level",
    "lofo.effect": "level",
    "lofo.contrast": "contrast",
    "recusal.contrast": "contrast with judges standing aside",
    "length.contrast": "contrast at equal length",
    "judges.contrast": "contrast over other judges",
    "dimension.distinct": "correlation with the overall impression",
    "probe.contrast": "probe",
    "cell.gate": "gate",
    "cell.halo": "halo",
    "cell.drop": "gate",
    "terse.share": "terse share",
    "length_matched.contrast": "contrast in the rerun at equal length",
}


def _without(labels: Mapping[str, str]) -> str:
    return f" without {labels['dropped']}" if "dropped" in labels else ""


# --- verdicts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate's verdict follows from its own tables."""

    ok: bool
    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()


def compare_verdicts(stated: Verdict, again: Verdict, found: Findings) -> None:
    """Two verdicts on one claim, field by field."""
    for one in fields(Claim):
        _compare(f"{one.name} of the claim", getattr(stated.claim, one.name), getattr(again.claim, one.name), found)
    for one in fields(Verdict):
        if one.name != "claim":
            called = _CALLED.get(one.name, one.name.replace("_", " "))
            _compare(called, getattr(stated, one.name), getattr(again, one.name), found)


def _compare(what: str, stated: Any, again: Any, found: Findings) -> None:
    """Two values of a field, part by part."""
    if isinstance(again, Mapping):
        for name in dict.fromkeys([*stated, *again]):
            found.compare(f"level under {name}", stated.get(name), again.get(name))
    elif isinstance(again, tuple):
        for at in range(max(len(stated), len(again))):
            found.compare(what, *(_shown(side[at]) if at < len(side) else None for side in (stated, again)))
    else:
        found.compare(what, _shown(stated), _shown(again))


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
