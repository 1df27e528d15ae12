"""The decision rules that a plan locked, and the other rules under which a claim is decided again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from assaymark.claims.instruments import OnFailure
from assaymark.protocol import Cells, Study

Test = Literal["gating", "cluster-t", "bootstrap", "sign-flip"]

TESTS: Final[tuple[Test, ...]] = ("gating", "cluster-t", "bootstrap", "sign-flip")
"""The test that gates a pair under the plan, then the tests that any plan may gate on."""

_NAMES: Final[Mapping[Test, str]] = {
    "cluster-t": "cluster t",
    "bootstrap": "percentile bootstrap",
    "sign-flip": "sign flip",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The decision rules of one plan; the functions below change them one at a time.

    ``alpha`` is the level of one Holm family of contrasts, ``cell_alpha`` that of the Holm family of the control cells.
    ``on_failure`` is the most that claims may be where a judge fails the datasheet that the plan demands.

    >>> rules = Rules(0.4, 0.2, 0.025)
    >>> rules.test, rules.cells.substance
    ('gating', 0.3)
    """

    publish: float
    halt: float
    alpha: float
    kappa: Literal["point", "lower", "half-even", "other-ddof"] = "point"
    test: Test = "gating"
    cells: Cells = field(default_factory=Cells)
    cell_alpha: float = 0.05
    on_failure: OnFailure | None = None

    @property
    def evidence(self) -> tuple[Test, float]:
        """The part that decides what is significant; stability depends on nothing else of the rules."""
        return self.test, self.alpha

    @classmethod
    def of(cls, study: Study) -> Rules:
        """The rules that a study locked."""
        return cls(
            study.gates.publish,
            study.gates.halt,
            study.claim_alpha,
            cells=study.cells,
            cell_alpha=study.inference.alpha,
            on_failure=None if study.datasheets is None else study.datasheets.on_failure,
        )


def other_kappas(rules: Rules, *, other_ddof: bool) -> dict[str, Rules]:
    """The other rules about agreement; ``other_ddof`` where a kappa under the other divisor was measured."""
    found = {
        "kappa cut-offs 0.5 and 0.25": replace(rules, publish=0.5, halt=0.25),
        "lower bound of kappa": replace(rules, kappa="lower"),
        "half-even rounding": replace(rules, kappa="half-even"),
    }
    if other_ddof:
        found["the other ddof"] = replace(rules, kappa="other-ddof")
    return found


def other_tests(rules: Rules, *, gating: frozenset[str], measured: frozenset[str]) -> dict[str, Rules]:
    """The other tests that were ``measured``; a test that gates every pair anyway is no other rule.

    >>> found = other_tests(Rules(0.4, 0.2, 0.05), gating=frozenset({"cluster-t"}), measured=frozenset(TESTS))
    >>> list(found)
    ['percentile bootstrap', 'sign flip']
    """
    return {name: replace(rules, test=test) for test, name in _NAMES.items() if test in measured and gating != {test}}


def threshold(rules: Rules) -> str:
    """The level a family is tested at, in words.

    >>> threshold(Rules(0.4, 0.2, 0.025))
    'tested at .025'
    """
    return f"tested at {rules.alpha:.3g}".replace("0.", ".", 1)
