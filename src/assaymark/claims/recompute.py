"""Each number of a certificate again, from the table that stands beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from assaymark.claims.differences import Findings, about, shown_apart
from assaymark.claims.reading import Read
from assaymark.claims.recompute_pairs import ABOUT_PAIRS, arrays
from assaymark.errors import NotMeasurableError
from assaymark.metrology import holm, kappa_of_table
from assaymark.metrology.cell_rules import FALLING, TOLERANCE, cell_outcome
from assaymark.metrology.contrasts import t_test
from assaymark.records import JSON, Measurement, measurement_id

_BEFORE_ROUNDING: Final = 1e-6  # levels come from a least-squares solution
_DROPS: Final[Mapping[str, tuple[str, str]]] = {
    "contrast": ("lofo.contrast", "contrasts"),
    "score.effect": ("lofo.effect", "levels"),
    "cell.gate": ("cell.drop", "gates of control cells"),
}


# --- one measurement --------------------------------------------------------------------------------------------------


def recompute(item: Measurement, read: Read, found: Findings) -> Measurement:
    """The measurement as its own table gives it; differences and what has no table are noted in ``found``."""
    if item.level is not None:
        found.compare(f"level of the interval of the {about(item)}", item.level, read.certificate.study.level)
    if item.name in _GIVEN:
        found.given(_GIVEN[item.name])
    again = _AGAIN.get(item.name)
    return item if again is None else again(item, read, found)


_GIVEN: Final[Mapping[str, str]] = {
    "kappa.other_ddof": "kappas under the other ddof are",
    "cell.halo": "intervals of halos are",
    "cell.drop": "p-values and intervals of control cells without each judge family are",
    "score.effect": "levels of agents are",
    "length_matched.contrast": "reruns at equal length are",
    "datasheet.gate": "what the datasheets of the judges show is",
}


def kappa_again(item: Measurement, read: Read, found: Findings) -> Measurement:
    """A kappa, and those of its pairs of judges, from their contingency tables."""
    del read
    tables: Mapping[str, JSON] = item.detail.get("tables") or {}
    what = about(item)
    if not tables:
        if item.value is not None:
            found.given(f"the {what} has no tables and is")
        return item
    kappas = {pair: _kappa_of(cells) for pair, cells in tables.items()}
    stated: Mapping[str, float | None] = item.detail.get("pairs") or {}
    for pair in dict.fromkeys([*stated, *kappas]):
        found.compare(f"{what} between {pair.replace('|', ' and ')}", stated.get(pair), kappas.get(pair))
    for pair, cells in tables.items():
        found.compare(f"records behind the {what} between {pair.replace('|', ' and ')}", item.n, int(np.sum(cells)))
    known = [kappa for kappa in kappas.values() if kappa is not None]
    value = float(np.mean(known)) if len(known) == len(kappas) else None
    value = found.compare(what, item.value, value)
    if item.low is not None:
        found.given("intervals of kappa, and the number of clusters that they rest on, are")
    if item.detail.get("half_even") is not None:
        found.given("kappas under half-even rounding are")
    return _with_value(item, value)


def _kappa_of(cells: JSON) -> float | None:
    try:
        return kappa_of_table(cells)
    except NotMeasurableError:
        return None


def _one_sample(item: Measurement, read: Read, found: Findings) -> Measurement:
    """A probe or the gate of a control cell: a mean over clusters on cluster t, one-sided where it has to fall."""
    sums, what = item.detail.get("cluster_sums"), about(item)
    if not sums or item.value is None:
        if item.value is not None:
            found.given(f"the {what} has no cluster sums and is")
        return item
    column, counts = arrays(sums)
    tested = t_test(column, counts, level=read.certificate.study.level)
    p = float(tested.p[0])
    if item.labels.get("cell") in FALLING:
        p = p / 2 if tested.difference[0] < 0 else 1 - p / 2
    if "p" in item.detail:
        p = found.compare(f"p of the {what}", item.detail["p"], p)
    n = found.compare(f"n of the {what}", item.n, int(counts.sum()))
    value = found.compare(what, item.value, float(tested.difference[0]))
    low, high = (None if math.isnan(end[0]) else float(end[0]) for end in (tested.low, tested.high))
    item = found.interval(item, low, high)
    return replace(_with_value(item, value), n=n, detail={**item.detail, "p": p})


def _share(item: Measurement, read: Read, found: Findings) -> Measurement:
    below = item.detail.get("below")
    if below is None or item.value is None or not item.n:
        found.given(f"the {about(item)} is")
        return item
    found.compare(f"tokens of the {about(item)}", item.detail.get("tokens"), read.certificate.rules.cells.terse_tokens)
    return replace(item, value=found.compare(about(item), item.value, below / item.n))


def _families(item: Measurement, read: Read, found: Findings) -> Measurement:
    own = item.detail.get("own", {})
    found.compare("number of judges", item.n, len(own))
    if "judges" not in item.detail.get("unknown", ""):
        found.compare(about(item), item.value, float(len({read.certificate.study.judges.get(judge) for judge in own})))
    found.given("which judges share a family with which agents, and whether grades are missing, is")
    return item


def _autocorrelation(item: Measurement, read: Read, found: Findings) -> Measurement:
    del read
    lags, flag = item.detail.get("lags") or [None], item.detail.get("flag")
    found.compare(about(item), item.value, lags[0])
    flagged = bool(lags[0] is not None and flag is not None and lags[0] > flag)
    found.compare(f"flag of the {about(item)}", item.detail.get("flagged"), flagged)
    found.given("the dependence of clusters that follow each other is")
    return replace(item, detail={**item.detail, "flagged": flagged})


def _cell_agreement(item: Measurement, read: Read, found: Findings) -> Measurement:
    found.given("kappa over a control cell and the honest records, and what each judge family sees, is")
    by_family = item.detail.get("p")
    if item.value is None or not by_family:
        return item
    rules = read.certificate.rules
    alpha = rules.cells.alpha if item.labels["cell"] in FALLING else rules.cell_alpha
    every = all(p <= alpha + TOLERANCE for p in by_family.values())
    found.compare(f"whether every judge family shows the {about(item)}", item.detail.get("unanimous"), every)
    return replace(item, detail={**item.detail, "unanimous": every})


def _instrument(item: Measurement, read: Read, found: Findings) -> Measurement:
    del read
    if item.value is not None:
        failed = item.detail.get("failed", [])
        found.compare(f"limits that {item.labels['judge']} fails", item.value, float(len(failed)))
    return item


_AGAIN: Final[Mapping[str, Callable[[Measurement, Read, Findings], Measurement]]] = {
    "kappa.mean_pairwise": kappa_again,
    "cell.kappa": kappa_again,
    "cell.agreement": _cell_agreement,
    "panel.families": _families,
    "order.autocorrelation": _autocorrelation,
    "probe.contrast": _one_sample,
    "cell.gate": _one_sample,
    "terse.share": _share,
    "datasheet.gate": _instrument,
    **ABOUT_PAIRS,
}


def _with_value(item: Measurement, value: float | None) -> Measurement:
    if value is None:
        state = item.state if item.value is None else "undefined: both judges gave one rating"
        return replace(item, value=None, low=None, high=None, level=None, state=state)
    return replace(item, value=value, state="ok")


# --- what several measurements have to agree on -----------------------------------------------------------------------


def cells_again(items: list[Measurement], read: Read, found: Findings) -> list[Measurement]:
    """Holm over the control cells, with all judges and without each family, then each outcome by its rule."""
    families: dict[str | None, list[Measurement]] = {}
    for item in items:
        if item.name in ("cell.gate", "cell.drop"):
            families.setdefault(item.labels.get("dropped"), []).append(item)
    adjusted: dict[str, float] = {}
    for members in families.values():
        p = holm([_p_of(item) for item in members]).tolist()
        adjusted |= dict(zip([item.id for item in members], p, strict=True))
    return [_cell(item, adjusted.get(item.id, 1.0), read, found) for item in items]


def _p_of(item: Measurement) -> float:
    """The p-value of a gate; what was not tested holds its place in the family with 1."""
    p = item.detail.get("p")
    return 1.0 if p is None or item.value is None else float(p)


def _cell(item: Measurement, p_holm: float, read: Read, found: Findings) -> Measurement:
    if item.name == "cell.halo" and item.value is not None and item.detail.get("family") is not None:
        triggered = abs(item.value) >= read.certificate.rules.cells.halo - TOLERANCE
        found.compare(f"whether the {about(item)} is triggered", bool(item.detail.get("triggered")), triggered)
        return replace(item, detail={**item.detail, "triggered": triggered})
    if item.name not in ("cell.gate", "cell.drop") or item.value is None:
        return item
    p = item.detail.get("p")
    if p is None:
        return item
    p_holm = found.compare(f"p of the {about(item)} after Holm", item.detail.get("p_holm"), p_holm)
    rules, flat = read.certificate.rules, item.low is None
    outcome = cell_outcome(
        item.labels["cell"], item.value, float(p), p_holm, flat=flat, cells=rules.cells, alpha=rules.cell_alpha
    )
    found.compare(f"outcome of the {about(item)}", str(item.detail.get("outcome")), outcome)
    return replace(item, detail={**item.detail, "p_holm": p_holm, "outcome": outcome})


def halos_again(items: list[Measurement], found: Findings) -> None:
    """A halo that is not triggered is the gate number minus the number without the composer's family."""
    by_id = {item.id: item for item in items}
    for halo in items:
        if halo.name != "cell.halo" or halo.value is None or halo.detail.get("triggered"):
            continue
        cell, family = halo.labels["cell"], halo.detail.get("family")
        gate, drop = by_id.get(f"cell.gate[cell={cell}]"), by_id.get(f"cell.drop[cell={cell},dropped={family}]")
        if gate is not None:
            found.compare(f"n of the {about(halo)}", halo.n, gate.n)
        if gate is not None and drop is not None and gate.value is not None and drop.value is not None:
            found.compare(about(halo), halo.value, gate.value - drop.value)
        elif family is not None:
            found.given(f"the {about(halo)} is")


def drops_again(items: list[Measurement], read: Read, found: Findings) -> None:
    """The panel is the mean over its judges, so the numbers without each family average back to its own.

    With n judges of a family among J, the numbers without it, weighted by J - n, sum to (F - 1) J times the whole. The
    quartile that cell A is held against is no mean, so its drops are taken as given.
    """
    families = read.certificate.study.families
    judges = _judges_of(items, read, found) if read.complete else None
    by_id = {item.id: item for item in items}
    for whole in items:
        number = whole.detail.get("gap") if whole.value is None else whole.value
        if whole.name not in _DROPS or number is None:
            continue
        drop, called = _DROPS[whole.name]
        parts = {family: by_id.get(measurement_id(drop, {**whole.labels, "dropped": family})) for family in families}
        there = {family: item for family, item in parts.items() if item is not None and item.value is not None}
        for item in there.values():
            # Grades may be missing without one family and not with all.
            if read.complete:
                found.compare(f"n of the {about(item)}", item.n, whole.detail.get("clusters", whole.n))
        if judges is None or len(there) < len(families) or not _linear(whole):
            if there:
                found.given(f"{called} without each judge family are")
            continue
        back = _averaged({family: item.value or 0.0 for family, item in there.items()}, judges)
        if abs(back - number) > _BEFORE_ROUNDING:
            one, other = shown_apart(number, back)
            what = f"{about(whole)}: the certificate says {one}, its numbers without each judge family give {other}"
            found.differences[what] = None


def _averaged(without: Mapping[str, float], judges: Mapping[str, str]) -> float:
    """The panel's number from those without each family.

    >>> round(_averaged({"f": 2.0, "g": 3.0}, {"a": "f", "b": "g"}), 9)
    2.5
    """
    count = {family: sum(other == family for other in judges.values()) for family in without}
    total = sum((len(judges) - count[family]) * value for family, value in without.items())
    return total / ((len(without) - 1) * len(judges))


def _linear(whole: Measurement) -> bool:
    """Whether a number is a mean over judges; the gate of cell A is not, nor is one that leaves judges out already."""
    return whole.name != "cell.gate" or (
        whole.labels["cell"] not in ("cell_a", "red_team") and whole.detail.get("primary") == "panel"
    )


def _judges_of(items: list[Measurement], read: Read, found: Findings) -> dict[str, str] | None:
    """The families of the judges behind the tables, or None where they do not tell."""
    pairs = [pair for item in items for pair in item.detail.get("tables") or {}]
    names = sorted({name for pair in pairs for name in pair.split("|")})
    if not names:
        return None
    study = read.certificate.study
    judges = {name: study.judges.get(name, "unknown") for name in names}
    stated, tables = (", ".join(sorted(set(side))) for side in (study.families, judges.values()))
    found.compare("judge families", stated, tables)
    return judges if stated == tables and len(study.families) > 1 else None
