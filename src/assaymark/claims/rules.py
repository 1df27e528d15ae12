"""The decision rules that a plan locked, and the other rules under which a claim is decided again."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from assaymark.claims.instruments import OnFailure
from assaymark.metrology.order_tests import OTHER_MARGINS
from assaymark.protocol import Cells, Study
from assaymark.records import AGGREGATE

Test = Literal["p", "p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip"]
"""Where the detail of a contrast holds the p-value of a test; ``p`` is that of the plan."""

RANGE: Final = 4.0
"""Points between the ends of a scale of 1 to 5, in which the margin is a share."""

_OTHER_TESTS: Final[Mapping[str, Test]] = {
    "own variance of each pair": "p_own_variance",
    "clusters weighted by records": "p_cluster_t",
}
_SOURCE_TESTS: Final[Mapping[str, Test]] = {
    "source: percentile bootstrap": "p_bootstrap",
    "source: sign flip": "p_sign_flip",
}
_SHARES: Final = (0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Rules:
    """The decision rules of one plan; the functions below change them one at a time.

    Attributes
    ----------
    publish, halt : float
        Cut-offs of agreement.
    alpha : float
        Error rate of all order claims together, and of all equivalence claims together.
    share : float
        Part of alpha that the aggregate is tested at where dimensions are claimed, too.
    margin : float
        Largest difference that counts as none, in points.
    test : str
        Which p-values decide.
    source : bool
        Whether ValueBlindBench's own procedure decides: Holm, and the sign of each drop.
    any_judges : bool
        Whether a headline has to hold for other judges too.
    scales : names or None
        The scales that order claims are made on; None: all.
    cells, cell_alpha : Cells, float
        Cut-offs of the control cells, and the level of their family of tests.
    on_failure : str or None
        The most that claims may be where a judge fails the datasheet that the plan demands.
    preregistered : bool
        Whether the plan was locked before its scores were seen.
    span : float
        Points between the ends of the scale.
    judged : bool
        False for scores that no judge gave: no judge family can be left out.

    >>> rules = Rules(0.4, 0.2)
    >>> rules.test, round(rules.margin, 9), rules.cells.substance
    ('p', 0.3, 0.3)
    """

    publish: float
    halt: float
    alpha: float = 0.05
    kappa: Literal["point", "lower", "half-even", "other-ddof"] = "point"
    test: Test = "p"
    source: bool = False
    share: float = 0.8
    margin: float = 0.075 * RANGE
    any_judges: bool = False
    scales: frozenset[str] | None = None
    cells: Cells = field(default_factory=Cells)
    cell_alpha: float = 0.05
    on_failure: OnFailure | None = None
    preregistered: bool = True
    span: float = RANGE
    judged: bool = True

    @property
    def order(self) -> Hashable:
        """The part that decides orders; what does not change it need not decide them again."""
        return (self.test, self.source, self.alpha, self.share, self.margin, self.any_judges, self.scales)

    def claims_scale(self, scale: str) -> bool:
        """Whether orders are claimed on a scale, which then is part of the family of tests."""
        return self.scales is None or scale in self.scales

    @classmethod
    def of(cls, study: Study, *, preregistered: bool = True) -> Rules:
        """The rules that a study locked."""
        wanted = study.claims.dimensions
        return cls(
            study.gates.publish,
            study.gates.halt,
            study.inference.alpha,
            share=study.inference.aggregate_share,
            margin=study.inference.margin * RANGE,
            any_judges=study.claims.judges == "any",
            scales=None if wanted is None else frozenset(wanted),
            cells=study.cells,
            cell_alpha=study.inference.alpha,
            on_failure=None if study.datasheets is None else study.datasheets.on_failure,
            preregistered=preregistered,
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


def other_tests(rules: Rules, measured: Collection[str], *, dimensions: bool) -> dict[str, Rules]:
    """The other tests that were ``measured`` and can reject, and other shares of alpha where dimensions are claimed.

    >>> list(other_tests(Rules(0.4, 0.2), ["p", "p_bootstrap"], dimensions=False))
    ['source: percentile bootstrap']
    """
    found = {name: replace(rules, test=test) for name, test in _OTHER_TESTS.items() if test in measured}
    if dimensions:
        found |= {f"aggregate's share of alpha {share:g}": replace(rules, share=share) for share in _SHARES}
    source = {name: replace(rules, test=test, source=True) for name, test in _SOURCE_TESTS.items() if test in measured}
    return found | source


def other_margins(rules: Rules) -> dict[str, Rules]:
    """Other margins of equivalence.

    >>> list(other_margins(Rules(0.4, 0.2)))
    ['margin 0.2', 'margin 0.4']
    """
    return {f"margin {share * rules.span:g}": replace(rules, margin=share * rules.span) for share in OTHER_MARGINS}


def threshold(alpha: float) -> str:
    """What an adjusted p-value is compared with, in words.

    >>> threshold(0.04)
    '.04 needed'
    """
    return f"{alpha:.3g} needed".replace("0.", ".", 1)


__all__ = ["AGGREGATE", "RANGE", "Rules", "Test", "other_kappas", "other_margins", "other_tests", "threshold"]
