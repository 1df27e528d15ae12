"""What a check of a certificate found: numbers that differ from what its tables give, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from assaymark.records import Cap, Claim, Condition, Measurement, StabilityFinding, Verdict

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
        """What the tables give, noting where something else is stated; the stated number itself up to float noise.

        A comparison that was a close call on the stated number so comes out as it did.
        """
        if not same(stated, found):
            one, other = shown_apart(stated, found)
            self.differences[f"{what}: the certificate says {one}, its tables give {other}"] = None
            return found
        return found if found is None else stated

    def interval(self, item: Measurement, low: float | None, high: float | None) -> Measurement:
        """The measurement with these ends of its interval; a difference from the stated ones is noted."""
        return replace(
            item,
            low=self.compare(f"lower end of the {about(item)}", item.low, low),
            high=self.compare(f"upper end of the {about(item)}", item.high, high),
        )

    def given(self, what: str) -> None:
        """Note that something could not be recomputed."""
        self.notes[f"{what} taken as given"] = None


def same(stated: Any, found: Any) -> bool:
    """Whether two values are equal, numbers up to float noise.

    >>> same(0.1 + 0.2, 0.3), same(0.3, None), same("publish", "halt")
    (True, False, False)
    """
    if isinstance(stated, int | float) and isinstance(found, int | float):
        return math.isclose(stated, found, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(stated == found)


def shown_apart(stated: Any, found: Any) -> tuple[str, str]:
    """Two values that differ, with as many decimals as it takes to see it.

    >>> shown_apart(0.72, 0.41), shown_apart(0.41, 0.4100001), shown_apart(None, 0.5)
    (('0.72', '0.41'), ('0.4100000', '0.4100001'), ('nothing', '0.50'))
    """
    for digits in range(2, 17):
        one, other = (f"{x:.{digits}f}" if isinstance(x, float) else _plain(x) for x in (stated, found))
        if one != other:
            return one, other
    return repr(stated), repr(found)


def _plain(value: Any) -> str:
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
    """Whether a certificate's verdict follows from its own tables.

    ``differences`` say in words what does not; ``notes`` what the tables cannot show and was taken as given.
    """

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
