"""Each number of a certificate again, from the table that stands beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from assaymark.claims.evidence import P_FIELDS
from assaymark.claims.reading import StatedRules
from assaymark.errors import NotMeasurableError
from assaymark.metrology import gating_test, holm, kappa_of_table
from assaymark.metrology.cell_rules import FALLING, TOLERANCE
from assaymark.metrology.contrasts import EXACT_FLIPS, Tested, bootstrap_tests, t_test
from assaymark.metrology.flips import flip_tests
from assaymark.metrology.resampling import EXACT_CLUSTERS
from assaymark.records import JSON, Measurement, measurement_id

_CLOSE: Final = 1e-9
_BEFORE_ROUNDING: Final = 1e-6  # levels come from a least-squares solution


@dataclass(slots=True)
class Findings:
    """What differs, and what had to be taken as given, each once and in order."""

    differences: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def compare(self, what: str, stated: float | str | bool | None, found: float | str | bool | None) -> None:
        """Note a difference between what is stated and what the tables give."""
        if not same(stated, found):
            one, other = shown_apart(stated, found)
            self.differences[f"{what}: the certificate says {one}, its tables give {other}"] = None

    def given(self, what: str) -> None:
        """Note that something could not be recomputed."""
        self.notes[f"{what} taken as given"] = None


def same(stated: float | str | bool | None, found: float | str | bool | None) -> bool:
    """Whether two values are equal, numbers up to float noise.

    >>> same(0.1 + 0.2, 0.3), same(0.3, None), same("publish", "halt")
    (True, False, False)
    """
    if isinstance(stated, (int, float)) and isinstance(found, (int, float)):
        return math.isclose(stated, found, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return stated == found


def shown_apart(stated: float | str | bool | None, found: float | str | bool | None) -> tuple[str, str]:
    """Two values that differ, with as many decimals as it takes to see it.

    >>> shown_apart(0.72, 0.41), shown_apart(0.41, 0.4100001), shown_apart(None, 0.5)
    (('0.72', '0.41'), ('0.4100000', '0.4100001'), ('nothing', '0.50'))
    """
    for digits in range(2, 17):
        one, other = (f"{x:.{digits}f}" if isinstance(x, float) else _plain(x) for x in (stated, found))
        if one != other:
            return one, other
    return repr(stated), repr(found)


def _plain(value: float | str | bool | None) -> str:
    return "nothing" if value is None else str(value)


def about(item: Measurement) -> str:
    """How a difference calls the number that it is about."""
    labels = item.labels
    where = f" on {labels['dimension']}" if "dimension" in labels else ""
    if "high" in labels:
        return f"{_NAMES.get(item.name, item.name)} of {labels['high']} and {labels['low']}{where}{_without(labels)}"
    parts = [_NAMES.get(item.name, item.name)]
    parts += [f"within format {labels['format']}"] if "format" in labels else []
    parts += [f"of {labels[name]}" for name in ("cell", "agent") if name in labels]
    return f"{' '.join(parts)}{where}{_without(labels)}"


_DROPS: Final[Mapping[str, str]] = {
    "contrast": "lofo.contrast",
    "score.effect": "lofo.effect",
    "cell.gate": "cell.drop",
}
_NAMES: Final[Mapping[str, str]] = {
    "kappa.mean_pairwise": "kappa",
    "kappa.other_ddof": "kappa under the other ddof",
    "cell.kappa": "kappa",
    "score.effect": "level",
    "lofo.effect": "level",
    "lofo.contrast": "contrast",
    "probe.contrast": "probe",
    "cell.gate": "gate",
    "cell.halo": "halo",
    "cell.drop": "gate",
    "terse.share": "terse share",
    "length_matched.contrast": "contrast at equal length",
}


def _without(labels: Mapping[str, str]) -> str:
    return f" without {labels['dropped']}" if "dropped" in labels else ""


# --- one measurement ------------------------------------------------------------------------------------------------


def recompute(item: Measurement, rules: StatedRules, found: Findings) -> Measurement:
    """The measurement as its own table gives it; differences and what has no table are noted in ``found``."""
    if item.level is not None:
        found.compare(f"level of the interval of the {about(item)}", item.level, rules.level)
    if item.name in ("kappa.mean_pairwise", "cell.kappa"):
        return _kappa(item, found)
    if item.name == "contrast":
        return _contrast(item, rules, found)
    if item.name in ("probe.contrast", "cell.gate"):
        return _one_sample(item, rules, found)
    if item.name == "terse.share":
        return _share(item, rules, found)
    if item.name in ("length_matched.contrast", "kappa.other_ddof"):
        found.given(f"the {about(item)} is")
    return item


def _kappa(item: Measurement, found: Findings) -> Measurement:
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
    found.compare(what, item.value, value)
    if item.low is not None:
        found.given("intervals of kappa are")
    if item.detail.get("half_even") is not None:
        found.given("kappas under half-even rounding are")
    return _with_value(item, value)


def _kappa_of(cells: JSON) -> float | None:
    try:
        return kappa_of_table(cells)
    except NotMeasurableError:
        return None


def _contrast(item: Measurement, rules: StatedRules, found: Findings) -> Measurement:
    sums = item.detail.get("cluster_sums")
    what, gating = about(item), str(item.detail.get("gating"))
    if not sums:
        if item.value is None:
            for test, name in P_FIELDS.items():
                found.compare(f"p of the {what} ({test})", item.detail.get(name) or 1.0, 1.0)
        else:
            found.given("contrasts that enter only through their p-values are")
            named = P_FIELDS.get(gating)  # type: ignore[call-overload]
            found.compare(f"p of the {what} (gating)", item.detail.get("p"), item.detail.get(named))
        return item
    tests = _tests(sums, rules.level, gating)
    found.compare(f"gating test of the {what}", gating, gating_test(rules.gating_test, len(sums)))
    detail = dict(item.detail)
    for test, name in P_FIELDS.items():
        tested = tests.get(gating if test == "gating" else test)
        if tested is not None and item.detail.get(name) is not None:
            found.compare(f"p of the {what} ({test})", item.detail[name], float(tested.p[0]))
            detail[name] = float(tested.p[0])
        elif item.detail.get(name) is not None:
            found.given(f"p-values of the {gating if test == 'gating' else test} over so many clusters are")
    return _compared(replace(item, detail=detail), sums, tests.get(gating), found)


def _tests(sums: Mapping[str, tuple[float, int]], level: float, gating: str) -> dict[str, Tested]:
    """Every test that needs no random draws on so many clusters; intervals are only those of the gating test."""
    column, counts = _arrays(sums)
    tests = {"cluster-t": t_test(column, counts, level=level)}
    nothing = {"resamples": 1, "rng": None, "level": level}
    if counts.size <= EXACT_CLUSTERS:
        wanted = [gating == "bootstrap" and counts.size > 1]
        (tests["bootstrap"],) = bootstrap_tests([(column, counts)], intervals=wanted, **nothing)  # type: ignore[arg-type]
    if counts.size <= EXACT_FLIPS:
        (tests["sign-flip"],) = flip_tests([(column, counts)], intervals=[gating == "sign-flip"], **nothing)  # type: ignore[arg-type]
    return tests


def _arrays(sums: Mapping[str, tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([[float(total)] for total, _ in sums.values()]),
        np.array([int(n) for _, n in sums.values()], dtype=np.int64),
    )


def _compared(item: Measurement, sums: Mapping[str, JSON], tested: Tested | None, found: Findings) -> Measurement:
    """Value, interval and n of a mean over clusters."""
    column, counts = _arrays(sums)
    what, n = about(item), int(counts.sum())
    found.compare(f"n of the {what}", item.n, n)
    if "clusters" in item.detail:
        found.compare(f"clusters of the {what}", item.detail["clusters"], int(counts.size))
    mean = float(column.sum() / n)
    value = 0.0 if abs(mean) <= TOLERANCE else mean
    found.compare(what, item.value, value)
    low, high = item.low, item.high
    if tested is not None:
        low, high = (None if math.isnan(end[0]) else float(end[0]) for end in (tested.low, tested.high))
        found.compare(f"lower end of the {what}", item.low, low)
        found.compare(f"upper end of the {what}", item.high, high)
    elif item.low is not None:
        found.given(f"the interval of the {what} is")
    return replace(_with_value(item, value), low=low, high=high, n=n)


def _one_sample(item: Measurement, rules: StatedRules, found: Findings) -> Measurement:
    """A probe or the gate of a control cell: a mean over clusters on cluster t, one-sided where it has to fall."""
    sums = item.detail.get("cluster_sums")
    if not sums or item.value is None:
        if item.value is not None:
            found.given(f"the {about(item)} has no cluster sums and is")
        return item
    tested = t_test(*_arrays(sums), level=rules.level)
    p = float(tested.p[0])
    if item.labels.get("cell") in FALLING:
        p = p / 2 if tested.difference[0] < 0 else 1 - p / 2
    if "p" in item.detail:
        found.compare(f"p of the {about(item)}", item.detail["p"], p)
    return _compared(replace(item, detail={**item.detail, "p": p}), sums, tested, found)


def _share(item: Measurement, rules: StatedRules, found: Findings) -> Measurement:
    below = item.detail.get("below")
    if below is None or item.value is None or not item.n:
        found.given(f"the {about(item)} is")
        return item
    found.compare(about(item), item.value, below / item.n)
    found.compare(f"tokens of the {about(item)}", item.detail.get("tokens"), rules.cells.terse_tokens)
    return replace(item, value=below / item.n)


def _with_value(item: Measurement, value: float | None) -> Measurement:
    if value is None:
        state = item.state if item.value is None else "undefined: both judges gave one rating"
        return replace(item, value=None, low=None, high=None, level=None, state=state)
    return replace(item, value=value, state="ok")


# --- what several measurements have to agree on ---------------------------------------------------------------------


def cells_again(items: list[Measurement], rules: StatedRules, found: Findings) -> list[Measurement]:
    """Holm over the control cells, with all judges and without each family, then each outcome by its rule."""
    families: dict[str | None, list[Measurement]] = {}
    for item in items:
        if item.name in ("cell.gate", "cell.drop"):
            families.setdefault(item.labels.get("dropped"), []).append(item)
    adjusted: dict[str, float] = {}
    for members in families.values():
        p = holm([_p_of(item) for item in members]).tolist()
        adjusted |= dict(zip([item.id for item in members], p, strict=True))
    return [_cell(item, adjusted.get(item.id, 1.0), rules, found) for item in items]


def _p_of(item: Measurement) -> float:
    """The p-value of a gate; what was not tested holds its place in the family with 1."""
    p = item.detail.get("p")
    return 1.0 if p is None or item.value is None else float(p)


def _cell(item: Measurement, p_holm: float, rules: StatedRules, found: Findings) -> Measurement:
    if item.name == "cell.halo" and item.value is not None and item.detail.get("family") is not None:
        triggered = abs(item.value) >= rules.cells.halo - TOLERANCE
        found.compare(f"whether the {about(item)} is triggered", bool(item.detail.get("triggered")), triggered)
        return replace(item, detail={**item.detail, "triggered": triggered})
    if item.name not in ("cell.gate", "cell.drop") or item.value is None:
        return item
    p = item.detail.get("p")
    if p is None:
        return item
    found.compare(f"p of the {about(item)} after Holm", item.detail.get("p_holm"), p_holm)
    outcome = rules.outcome(item.labels["cell"], item.value, float(p), p_holm, flat=item.low is None)
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


def drops_again(items: list[Measurement], rules: StatedRules, found: Findings) -> None:
    """The panel is the mean over its judges, so the numbers without each family average back to its own.

    With n judges of a family among J, the numbers without it, weighted by J - n, sum to (F - 1) J times the whole. The
    quartile that cell A is held against is no mean, so its drops are taken as given.
    """
    judges = _judges_of(items, rules, found)
    by_id = {item.id: item for item in items}
    for whole in items:
        drop = _DROPS.get(whole.name)
        if drop is None or whole.value is None:
            continue
        parts = {
            family: by_id.get(measurement_id(drop, {**whole.labels, "dropped": family})) for family in rules.families
        }
        there = {family: item for family, item in parts.items() if item is not None and item.value is not None}
        for item in there.values():
            found.compare(f"n of the {about(item)}", item.n, whole.n)
        if judges is None or len(there) < len(rules.families) or not _linear(whole):
            if there:
                found.given(f"the {about(whole)} without each judge family is")
            continue
        back = _averaged({family: item.value or 0.0 for family, item in there.items()}, judges)
        if abs(back - whole.value) > _BEFORE_ROUNDING:
            one, other = shown_apart(whole.value, back)
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


def _judges_of(items: list[Measurement], rules: StatedRules, found: Findings) -> dict[str, str] | None:
    """The families of the judges behind the tables, or None where they do not tell."""
    pairs = [pair for item in items for pair in item.detail.get("tables") or {}]
    names = sorted({name for pair in pairs for name in pair.split("|")})
    if not names:
        return None
    judges = {name: rules.judges.get(name, "unknown") for name in names}
    stated, tables = (", ".join(sorted(set(side))) for side in (rules.families, judges.values()))
    found.compare("judge families", stated, tables)
    return judges if stated == tables and len(rules.families) > 1 else None
