from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.claims import agreement_status, cell_b_outcome, publication_level
from assaymark.errors import NotMeasurableError, UnknownNameError

AGREEMENT = ("publish", "methodology", "halt")
STABILITY = ("stable", "tie-class", "judge-dependent")
ADVERSARIAL = ("passed", "construct-sensitive", "not tested", "contaminated")
LEVELS = ("headline", "qualified", "no-claim")


@pytest.mark.parametrize("kappa", [None, math.nan])
def test_undefined_agreement_halts(kappa):
    assert agreement_status(kappa) == "halt"


def test_gates_forgive_binary_fractions():
    """(0.3 + 0.4 + 0.5) / 3 < 0.4 in binary floating point."""
    assert (0.3 + 0.4 + 0.5) / 3 < 0.4
    assert agreement_status((0.3 + 0.4 + 0.5) / 3) == "publish"
    assert agreement_status(0.4 - 1e-8) == "methodology"


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_more_agreement_never_has_a_worse_status(one, other):
    low, high = sorted((one, other))
    assert AGREEMENT.index(agreement_status(high)) <= AGREEMENT.index(agreement_status(low))


@given(st.floats(-4, 4), st.booleans())
def test_cell_b_has_an_outcome_for_every_difference(delta, significant):
    outcome = cell_b_outcome(delta, significant)
    if outcome == "verbosity-bias":
        assert delta < -0.5
        assert significant
    if outcome == "terse-favoured":
        assert delta > 0.3
    if outcome == "substance":
        assert abs(delta) <= 0.3 + 1e-9


@pytest.mark.parametrize(
    ("delta", "outcome"),
    [(-0.2, "inconclusive"), (-0.1, "substance"), (-0.25, "verbosity-bias"), (0.15, "terse-favoured")],
)
def test_the_cut_offs_of_cell_b_can_be_a_plans(delta, outcome):
    assert cell_b_outcome(delta, True, substance=0.1, verbosity=0.2) == outcome


def test_cell_b_without_scores_has_no_outcome():
    with pytest.raises(NotMeasurableError, match="cell B is undefined"):
        cell_b_outcome(math.nan, True)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (("publsh", "stable", "passed"), "unknown agreement status 'publsh'. Did you mean 'publish'"),
        (("publish", "steady", "passed"), "unknown stability status"),
        (("publish", "stable", "untested"), "unknown adversarial status"),
    ],
)
def test_an_unknown_status_is_an_error(status, told):
    with pytest.raises(UnknownNameError, match=told):
        publication_level(*status, asserts_order=True)


@given(
    st.sampled_from(AGREEMENT), st.sampled_from(STABILITY), st.sampled_from(ADVERSARIAL), st.booleans(), st.booleans()
)
def test_a_worse_field_never_gives_a_better_level(agreement, stability, adversarial, order, tested):
    here = LEVELS.index(
        publication_level(agreement, stability, adversarial, asserts_order=order, significance_tested=tested)
    )
    for scale, position in ((AGREEMENT, 0), (STABILITY, 1)):
        fields = [agreement, stability, adversarial]
        for worse in scale[scale.index(fields[position]) + 1 :]:
            fields[position] = worse
            level = publication_level(*fields, asserts_order=order, significance_tested=tested)
            assert LEVELS.index(level) >= here
    assert here == 0 or (agreement, stability, adversarial, tested) != ("publish", "stable", "passed", True)


def test_all_green_is_a_headline_and_untested_significance_is_not():
    assert publication_level("publish", "stable", "passed", asserts_order=True) == "headline"
    level = publication_level("publish", "stable", "passed", asserts_order=True, significance_tested=False)
    assert level == "qualified"


def test_contamination_withholds_whatever_else_is_green():
    assert publication_level("publish", "stable", "contaminated", asserts_order=False) == "no-claim"
