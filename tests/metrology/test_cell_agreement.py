"""Agreement on a control cell: Student's test, brute-force jackknives, kappa by statsmodels, and the three words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError

FAMILIES = ["north", "south", "east"]
IN_CELL, IN_HONEST = np.repeat(np.arange(5), 3), np.repeat(np.arange(5), 6)


def study(seed=0, *, drop=(2.0, 2.0, 2.0), judges=3, noise=0.2):
    """Cell [15, J] and honest [30, J]: each judge lowers the cell by its ``drop``."""
    rng = np.random.default_rng(seed)
    honest = rng.normal(3.8, 0.7, (30, 1)) + rng.normal(0, noise, (30, judges))
    cell = 3.8 - np.resize(drop, judges) + rng.normal(0, 0.3, (15, 1)) + rng.normal(0, noise, (15, judges))
    return cell, honest


def agreement(cell, honest, families=FAMILIES, **options):
    return mt.cell_agreement(cell, IN_CELL, honest, IN_HONEST, families, **options)


def test_equal_clusters_are_students_test_on_their_differences():
    cell, honest = study(1)
    differences = cell.reshape(5, 3, 3).mean(axis=1) - honest.reshape(5, 6, 3).mean(axis=1)
    found = agreement(cell, honest, threshold=0.5)
    for f, family in enumerate(FAMILIES):
        expected = stats.ttest_1samp(differences[:, f], -0.5, alternative="less")
        assert found.each[family].p == pytest.approx(expected.pvalue, abs=1e-12)
        assert found.each[family].delta == pytest.approx(differences[:, f].mean())
        without = np.delete(differences, f, axis=1).mean(axis=1)
        assert found.drops[family].p == pytest.approx(stats.ttest_1samp(without, -0.5, alternative="less").pvalue)
    assert found.panel.delta == pytest.approx(differences.mean())


def shift(cell, in_cell, honest, in_honest, quantile):
    """The shift of one column from scratch."""
    if quantile is not None:
        return cell.mean() - np.quantile(honest, quantile)
    own = [honest[in_honest == g].mean() if (in_honest == g).any() else honest.mean() for g in in_cell]
    return (cell - own).mean()


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("quantile", [None, 0.25])
def test_means_and_quartiles_are_found_again_without_each_cluster(quantile, consecutive):
    rng = np.random.default_rng(3)
    in_cell, in_honest = rng.integers(0, 8, 20), rng.choice([0, 1, 2, 3, 5, 6], 40)
    cell, honest = rng.normal(2, 0.5, (20, 1)), rng.normal(4, 0.5, (40, 1))
    # In time order the clusters are numbered as they first occur.
    names = list(dict.fromkeys([*in_honest, *in_cell]))
    in_cell, in_honest = (np.array([names.index(g) for g in part]) for part in (in_cell, in_honest))
    units = mt.neighbour_blocks(len(names)) if consecutive else np.arange(len(names))
    parts = []
    for u in (-1, *np.unique(units)):
        kept, left = units[in_cell] != u, units[in_honest] != u
        parts.append(shift(cell[kept, 0], in_cell[kept], honest[left, 0], in_honest[left], quantile))
    options = {"threshold": 0.5, "quantile": quantile, "consecutive": consecutive}
    found = mt.cell_agreement(cell, in_cell, honest, in_honest, ["one"], **options).each["one"]
    n = units[-1] + 1
    se = np.sqrt((n - 1) / n * ((np.array(parts[1:]) - parts[0]) ** 2).sum())
    assert (found.delta, found.se, found.df) == pytest.approx((parts[0], se, n - 1), abs=1e-9)
    assert found.p == pytest.approx(stats.t.sf((-parts[0] - 0.5) / se, n - 1), abs=1e-9)


@pytest.mark.parametrize(("drop", "options", "words"), [
    ((2, 2, 2), {"threshold": 0.5}, ("publish", True, True)),
    ((2, 2, 2), {"quantile": 0.25, "alpha": 0.01}, ("publish", True, True)),
    ((0, 0, 2), {"threshold": 0.5}, ("halt", False, False)), ((0, 0, 0), {"threshold": 0.5}, ("halt", False, False)),
    ((0.6, 2.5, 2.5), {"threshold": 0.5}, ("methodology", False, True))
])  # fmt: skip
def test_a_planted_drop_is_agreed_on_by_those_who_have_it(drop, options, words):
    found = agreement(*study(2, drop=drop), **options)
    assert (found.status, found.unanimous, found.leave_one_out) == words


def test_judges_of_one_family_count_once():
    cell, honest = study(4, judges=4)
    found = agreement(cell, honest, ["north", "south", "north", "east"])
    cells, records = (np.stack([t[:, [0, 2]].mean(axis=1), t[:, 1], t[:, 3]], axis=1) for t in (cell, honest))
    assert found == agreement(cells, records)
    # One family has nobody to agree with.
    found = agreement(*study(), ["north"] * 3)
    assert (found.status, found.drops, found.pooled_kappa, found.unanimous) == ("not measurable", {}, None, True)
    # Missing scores leave out the judge and then the record.
    cell, honest = study(5)
    families = ["north", "north", "south"]
    cell[0, 0], cell[1, 2], honest[4] = np.nan, np.nan, np.nan
    filled = cell.copy()
    filled[0, 0] = cell[0, 1]
    kept, left = np.delete(np.arange(15), 1), np.delete(np.arange(30), 4)
    expected = mt.cell_agreement(filled[kept], IN_CELL[kept], honest[left], IN_HONEST[left], families)
    assert agreement(cell, honest, families) == expected


def test_what_lies_in_one_cluster_cannot_be_tested_and_where_all_fall_alike_the_sign_speaks():
    cell, honest = study(6)
    for in_cell, in_honest in ((0 * IN_CELL, IN_HONEST), (IN_CELL, 0 * IN_HONEST), (0 * IN_CELL, 0 * IN_HONEST)):
        found = mt.cell_agreement(cell, in_cell, honest, in_honest, FAMILIES, quantile=0.25)
        assert (found.panel.se, found.panel.p, found.status) == (None, 1.0, "halt")
    cell, honest = np.full((15, 2), 2.0), np.full((30, 2), 4.0)
    found = agreement(cell, honest, ["north", "south"], threshold=0.5)
    assert (found.each["north"].p, found.pooled_kappa) == (2**-5, 1.0)
    assert agreement(honest[:15], honest, ["north", "south"]).pooled_kappa is None


@pytest.mark.parametrize(("delta", "se", "margin", "same"), [
    (0.0, 0.05, 0.3, True), (-0.2, 0.05, 0.3, False), (-0.2, 0.04, 0.3, True), (0.1, 0.2, 0.3, False),
    (0.0, None, 0.3, False), (0.0, 0.2, 0.9, True)
])  # fmt: skip
def test_no_penalty_needs_two_one_sided_tests(delta, se, margin, same):
    each = {"north": mt.CellShift(delta, se, 4, 1.0), "south": mt.CellShift(0.0, 0.01, 4, 1.0)}
    found = mt.CellAgreement("halt", False, False, 0.0, each["north"], each, each)
    assert mt.cell_equivalent(found, margin=margin) is same


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9)), min_size=2, max_size=30))
def test_kappa_of_equal_weights_is_the_published_one_and_weights_are_counts(rows):
    x, y, w = zip(*rows, strict=True)
    table = np.zeros((5, 5))
    np.add.at(table, (np.array(x) - 1, np.array(y) - 1), w)
    equal, weighted = mt.kappa_of_records(x, y), mt.kappa_of_records(x, y, w)
    if len(set(x)) == len(set(y)) == 1:
        assert equal is weighted is None
    else:
        expected = cohens_kappa(table, weights=np.arange(5), wt="quadratic", return_results=False)
        assert equal == pytest.approx(mt.weighted_kappa(x, y), abs=1e-12)
        assert weighted == pytest.approx(expected, abs=1e-9)


def test_cell_and_honest_records_weigh_the_same_in_kappa():
    cell, honest = study(7)
    once = agreement(cell, honest).pooled_kappa
    twice = mt.cell_agreement(np.tile(cell, (4, 1)), np.tile(IN_CELL, 4), honest, IN_HONEST, FAMILIES).pooled_kappa
    assert twice == pytest.approx(once, abs=1e-12)


@pytest.mark.parametrize(("change", "message"), [
    ({"families": ["a", "b"]}, "one entry for each of 3 judges"),
    ({"cell_cluster": [0]}, "cell_cluster: must have one entry for each of the 15"),
    ({"honest_cluster": IN_CELL}, "honest_cluster: must have one entry for each of the 30"),
    ({"cell": np.ones(15)}, "cell: must have 2 axes"), ({"quantile": 1.0}, "quantile"), ({"alpha": 0.0}, "alpha")
])  # fmt: skip
def test_wrong_input_is_refused(change, message):
    cell, honest = study()
    usual = {"cell": cell, "cell_cluster": IN_CELL, "honest": honest, "honest_cluster": IN_HONEST, "families": FAMILIES}
    with pytest.raises(InputError, match=message):
        mt.cell_agreement(**usual | change)
    with pytest.raises(NotMeasurableError, match="no honest record"):
        agreement(cell, np.where(np.arange(3) == 1, np.nan, honest))
    with pytest.raises(InputError, match="margin"):
        mt.cell_equivalent(agreement(cell, honest), margin=0)
