"""Dimensions: covariances between judges by brute force, planted halo, and what is refused."""

from __future__ import annotations

import dataclasses
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from slow_orders import NAMES, PAIRS, cell_means, changed, get, named, pair_of, run, slow_contrasts, unusable

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import (
    analyse,
    autocorrelations,
    discriminant,
    holm,
    jackknife_kappa,
    misfits,
    multitrait_multimethod,
    neighbour_blocks,
    partition_sums,
    read_partition,
    score_table,
    serial_contrasts,
    shaffer,
    specific_contrast,
    streaming,
)
from assaymark.metrology.streaming import Partition, runs_of, to_bytes

SIZES = [9, 14, 11, 10, 6, 13]
CLUSTER = np.repeat(np.arange(6), SIZES)


def study(seed=0, *, dimensions=4, judges=3, own=1.0, halo=1.0, noise=0.5, clusters=CLUSTER):
    """Scores [N, J, D]: an impression per record, an own part per dimension, and noise per judge."""
    rng = np.random.default_rng(seed)
    n = clusters.size
    impression, part = rng.normal(0, halo, (n, 1, 1)), rng.normal(0, 1, (n, 1, dimensions)) * own
    return 3 + impression + part + rng.normal(0, noise, (n, judges, dimensions))


def shared(scores, cluster, d):
    """C_dd, C_rr and C_dr by loops over clusters and ordered pairs of judges."""
    centred = scores.copy()
    for g in np.unique(cluster):
        centred[cluster == g] -= centred[cluster == g].mean(axis=0)
    rest = np.delete(centred, d, axis=2).mean(axis=2)
    judges = range(scores.shape[1])
    pairs = [(j, k) for j in judges for k in judges if j != k]
    return np.mean([[(centred[:, j, d] * centred[:, k, d]).mean(), (rest[:, j] * rest[:, k]).mean(), (centred[:, j,
        d] * rest[:, k]).mean()] for j, k in pairs], axis=0)  # fmt: skip


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_covariances_between_judges_by_brute_force(seed, consecutive):
    scores = study(seed)
    units = neighbour_blocks(6)[CLUSTER] if consecutive else CLUSTER
    count = units[-1] + 1
    found = discriminant(scores, CLUSTER, consecutive=consecutive)
    p = []
    for d, one in enumerate(found.dimensions):
        parts = [shared(scores, CLUSTER, d)]
        parts += [shared(scores[units != u], CLUSTER[units != u], d) for u in range(count)]
        phi = np.array([c / np.sqrt(a * b) for a, b, c in parts])
        margin = np.array([0.95 * np.sqrt(a * b) - c for a, b, c in parts])
        error, spread = (np.sqrt((count - 1) / count * ((v[1:] - v[0]) ** 2).sum()) for v in (phi, margin))
        half = stats.t.ppf(0.975, count - 1) * error
        assert (one.phi, one.low, one.high) == pytest.approx((phi[0], phi[0] - half, phi[0] + half), abs=1e-9)
        p.append(stats.t.sf(margin[0] / spread, count - 1))
        assert one.p == pytest.approx(p[-1], abs=1e-9)
    assert [one.p_holm for one in found.dimensions] == pytest.approx(holm(p).tolist(), abs=1e-9)


def test_copies_of_one_impression_are_not_distinct_and_dimensions_are():
    for seed in range(5):
        copies = discriminant(study(seed, own=0.0), CLUSTER)
        assert not any(one.distinct for one in copies.dimensions)
        assert all(one.low < 1 < one.high for one in copies.dimensions)
        assert all(one.distinct for one in discriminant(study(seed, own=2.0), CLUSTER).dimensions)
    # Copies are rarely called distinct.
    passed = [
        any(one.distinct for one in discriminant(study(seed, own=0.2, dimensions=3), CLUSTER).dimensions)
        for seed in range(200)
    ]
    assert np.mean(passed) < 0.08
    # Disagreement lowers the plain correlation with the overall impression, and not phi.
    big = np.repeat(np.arange(20), 50)
    loud, quiet = (study(1, own=0.0, noise=noise, clusters=big) for noise in (1.5, 0.1))
    assert discriminant(loud, big).dimensions[0].phi == pytest.approx(1, abs=0.1)
    assert discriminant(quiet, big).dimensions[0].phi == pytest.approx(1, abs=0.01)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_severity_scale_and_clusters_change_no_correlation(seed):
    rng = np.random.default_rng(seed)
    scores = study(seed % 100)
    moved = scores * rng.uniform(0.5, 2) + rng.normal(0, 2, (1, 3, 4)) + rng.normal(0, 2, (6, 3, 4))[CLUSTER]
    for before, after in zip(*(discriminant(s, CLUSTER).dimensions for s in (scores, moved)), strict=True):
        assert (after.phi, after.p) == pytest.approx((before.phi, before.p), abs=1e-8)
    np.testing.assert_allclose(*(multitrait_multimethod(s, CLUSTER) for s in (scores, moved)), atol=1e-9)


def test_a_dimension_on_which_judges_share_nothing_is_not_distinct():
    scores = study(2)
    scores[:, :, 1] = 3
    found = discriminant(scores, CLUSTER).dimensions
    assert (found[1].phi, found[1].low, found[1].p, found[1].distinct) == (None, None, 1.0, False)
    assert found[1].state.startswith("undefined: ")
    assert found[0].state == "ok"
    scores = study(2)
    scores[CLUSTER != 3, :, 1] = 3  # what they share lies in one cluster
    assert discriminant(scores, CLUSTER).dimensions[1].p == 1.0


@pytest.mark.parametrize(
    ("scores", "cluster"),
    [
        (study()[:, :1], CLUSTER), (study()[:, :, :1], CLUSTER), (study()[:23], CLUSTER[:23]),
        (np.full((6, 2, 2), np.nan), np.arange(6)),
    ],
)  # fmt: skip
def test_too_little_is_not_measurable(scores, cluster):
    found = discriminant(scores, cluster)
    assert (found.state.partition(":")[0], found.dimensions) == ("not measurable", ())


def test_three_clusters_in_time_order_are_one_block():
    assert discriminant(study()[:34], CLUSTER[:34]).state == "ok"
    assert discriminant(study()[:34], CLUSTER[:34], consecutive=True).state.startswith("not measurable")
    # Records with a missing score are left out.
    scores = study()
    scores[[3, 30], [0, 2], [1, 1]] = np.nan
    whole = np.delete(np.arange(CLUSTER.size), [3, 30])
    assert discriminant(scores, CLUSTER) == discriminant(scores[whole], CLUSTER[whole])
    # The matrix is that of correlations within clusters.
    scores = study(3)
    centred = scores - np.stack([part.mean(axis=0) for part in np.split(scores, np.cumsum(SIZES)[:-1])])[CLUSTER]
    expected = np.corrcoef(centred.reshape(-1, 12).T).reshape(3, 4, 3, 4)
    np.testing.assert_allclose(multitrait_multimethod(scores, CLUSTER), expected, atol=1e-12)
    scores[:, 0, 0] = CLUSTER
    with pytest.raises(NotMeasurableError, match="one score per cluster"):
        multitrait_multimethod(scores, CLUSTER)
    # Specific is a t test of the difference between differences.
    deltas = np.random.default_rng(1).normal(0.3, 0.2, (6, 4))
    for d in range(4):
        rest = deltas[:, d] - np.delete(deltas, d, axis=1).mean(axis=1)
        expected = stats.ttest_1samp(rest, 0, alternative="greater")
        for values, cluster in ((deltas, np.arange(6)), (np.repeat(deltas, 3, axis=0), np.repeat(np.arange(6), 3))):
            found = specific_contrast(values, cluster, d)
            assert (found.estimate, found.p_up, found.df) == pytest.approx((rest.mean(), expected.pvalue, 5))
    assert specific_contrast(deltas, np.arange(6), 0, consecutive=True).df == 2


def test_spill_over_is_smaller_than_on_the_other_dimensions():
    """Under a halo, a dimension with nothing of its own gets part of what another one has."""
    rng = np.random.default_rng(2)
    true = np.array([0.6, 0.0, 0.0])
    seen = 0.5 * true + 0.5 * true.mean() + rng.normal(0, 0.05, (40, 3))
    own, spilled = (specific_contrast(seen, np.repeat(np.arange(8), 5), d) for d in (0, 1))
    assert own.p_up < 0.001
    assert spilled.estimate < 0
    # Specific needs two dimensions and a whole cycle.
    for deltas in ([[0.3], [0.2]], [[0.3, None], [None, 0.2]]):
        found = specific_contrast(deltas, [0, 1], 0)
        assert (found.estimate, found.p_up, found.state.partition(":")[0]) == (None, 1.0, "not measurable")
    assert specific_contrast([[0.3, 0.1], [None, 0.2], [0.5, 0.2]], [0, 1, 2], 0).df == 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((study(), CLUSTER[:5]), {}, "one entry for each"), ((study()[0], CLUSTER), {}, "S: must have 3 axes"),
        ((study() * np.inf, CLUSTER), {}, "finite"), ((study(), CLUSTER), {"distinct": 1.0}, "distinct"),
        ((study(), CLUSTER), {"alpha": 0}, "alpha"), ((study(), CLUSTER), {"level": 95}, "level"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        discriminant(*arguments, **options)


@pytest.mark.parametrize("d", [-1, 2, 0.5])
def test_a_dimension_must_exist(d):
    with pytest.raises(InputError, match="d: must be"):
        specific_contrast([[0.3, 0.1], [0.2, 0.1]], [0, 1], d)


# Which records are compared: common clusters, grades that are missing, clusters in time order

CONSECUTIVE = 'inference = {cluster_order = "consecutive"}'

# --- pairs that cannot be tested --------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [1, 2])
def test_fewer_than_three_clusters_cannot_be_tested(make, study, clusters):
    _, found = run(make(clusters=clusters, cycles=20, effects=(0.9, 0.0, 0.0, 0.0)), study())
    common = f"{clusters} common cluster{'s' if clusters > 1 else ''}"
    for m in named(found, "contrast"):
        assert m.state == f"cannot be tested ({common}; 3 are needed, 5 or more to have a chance)"
        assert (m.value, m.low, m.high, m.level, m.n) == (None, None, None, None, 20 * clusters)
        assert (m.detail["p"], m.detail["resolved"]) == (1.0, False)
        assert m.detail["se"] is m.detail["df"] is None
        assert "p_equivalence" not in m.detail
    lead = get(found, "contrast", dimension="aggregate", high="ash", low="elm")
    assert lead.detail["gap"] > 0.5, "the gap stays for downloads"
    (m,) = named(found, "order.detectable")
    assert (m.value, m.state) == (None, "undefined: no pair can be tested")
    assert {one.detail["p"] for one in named(found, "lofo.contrast")} == {1.0}


def some_weeks(records, agent, weeks):
    """The same where one agent decided in some weeks only."""
    decisions, judgments = records
    kept = [d for d in decisions if d.agent.id != agent or d.cluster in weeks]
    ids = {d.record_id for d in kept}
    return kept, [j for j in judgments if j.trajectory in ids]


def test_each_pair_is_tested_on_its_own_common_clusters(make, study):
    records = make(clusters=21, cycles=2, effects=(0.9, 0.0, 0.0, 0.0))
    table, found = run(some_weeks(records, "elm", {f"week{k:02d}" for k in range(5)}), study())
    test, _ = slow_contrasts(table, 0)
    for m in named(found, "contrast", dimension="aggregate"):
        first, second, _ = pair_of(m)
        few = second == 3
        assert m.detail["clusters"] == (5 if few else 21)
        assert m.detail["p"] == pytest.approx(test.p[PAIRS.index((first, second))], rel=1e-9)


def test_a_pair_that_cannot_be_tested_keeps_its_place_in_every_count(make, study):
    records = make(effects=(0.9, 0.1, 0.0, 0.0))
    table, found = run(some_weeks(records, "elm", {"week00", "week01"}), study())
    items = named(found, "contrast", dimension="aggregate")
    untested = [m for m in items if m.value is None]
    assert len(items) == 6
    assert len(untested) == 3
    assert {m.detail["p"] for m in untested} == {1.0}
    # Shaffer over six pairs, of which three have p = 1.
    for j, family in enumerate(table.families):
        test, _ = slow_contrasts(table, 0, [k for k in range(3) if k != j])
        adjusted = shaffer(test.p, 4)
        for m in named(found, "lofo.contrast", dropped=family, dimension="aggregate"):
            first, second, _ = pair_of(m)
            assert m.detail["p_adjusted"] == pytest.approx(adjusted[PAIRS.index((first, second))])


def test_pairs_that_never_meet_have_no_gap(make, study):
    decisions, judgments = make()
    turn = {"cedar": 0, "elm": 1}
    apart = [d for d in decisions if turn.get(d.agent.id) in (None, int(d.episode_id[5:]) % 2)]
    ids = {d.record_id for d in apart}
    _, found = run((apart, [j for j in judgments if j.trajectory in ids]), study())
    never = named(found, "contrast", high="cedar", low="elm")
    assert len(never) == 4
    for m in never:
        assert m.state.startswith("cannot be tested (0 common clusters;")
        assert (m.value, m.n, m.detail["gap"], m.detail["p"]) == (None, 0, None, 1.0)
        assert m.detail["cluster_sums"] == {}
    (drop,) = named(found, "lofo.contrast", dimension="risk", dropped="east", high="cedar", low="elm")
    assert (drop.value, drop.state) == (None, "never compared")


def test_scores_that_do_not_vary(make, study):
    """All clusters differ alike: only their sign speaks, unless other pairs lend a variance."""
    decisions, judgments = make(agents=("ash", "birch"))
    better = {"ash": 4.0, "birch": 3.0}
    flat = [
        dataclasses.replace(j, scores=dict.fromkeys(j.scores, better[j.trajectory.partition(".")[0]]))
        for j in judgments
    ]
    _, found = run((decisions, flat), study())
    m = get(found, "contrast", dimension="aggregate", high="ash", low="birch")
    assert (m.value, m.low, m.level, m.detail["p"]) == (1.0, None, None, 2.0**-4)
    assert m.method.endswith("sign of 5 equal cluster differences")
    assert m.detail["p_equivalence"] == 1.0
    same = changed(judgments, scores=lambda own: dict.fromkeys(own, 3.0))
    _, found = run((decisions, same), study())
    m = get(found, "contrast", dimension="aggregate", high="ash", low="birch")
    assert (m.value, m.detail["p"], m.detail["p_equivalence"], m.detail["resolved"]) == (0.0, 1.0, 2.0**-5, False)


def test_kappa_over_time_leaves_out_blocks_of_neighbours(make, study):
    """Weeks 0 to 10 make the blocks 0-2, 3-5 and 6-10, by number and not by name."""
    table, found = run(make(clusters=11, cycles=4, week="{:d}"), study(CONSECUTIVE))
    weeks = np.array([int(name) for name in table.clusters])[table.cluster]
    ratings = np.clip(np.floor(table.scores @ table.weights + 0.5), 1, 5).astype(int)
    expected = jackknife_kappa(ratings, np.minimum(weeks // 3, 2))
    kappa = found["kappa.mean_pairwise[dimension=aggregate]"]
    assert (kappa.low, kappa.high) == pytest.approx((expected.low, expected.high))
    assert kappa.method.endswith("delete-one-block jackknife, t(2)")
    line = np.argsort(weeks, kind="stable")
    again = jackknife_kappa(ratings[line], weeks[line], consecutive=True)
    assert (again.low, again.high) == pytest.approx((expected.low, expected.high))


# --- grades that are missing ------------------------------------------------------------------------------------------


def refusing(records, judge, refuses):
    """The same where one judge gives no usable reply on some records."""
    decisions, judgments = records
    return decisions, unusable(judgments, lambda j: j.judge == judge and refuses(j), reason="not JSON")


def test_missing_grades_are_made_up_for_by_a_fit_of_judges_and_records(make, study):
    rng = np.random.default_rng(3)
    records = make(effects=(0.4, 0.2, 0.0, 0.0), clusters=6, cycles=5)
    lost = {j.call_key for j in records[1] if rng.random() < 0.15}
    for judge in ("auditor", "reader", "skeptic"):
        records = refusing(records, judge, lambda j: j.call_key in lost)
    table, found = run(records, study())
    assert found["panel.families[]"].detail["missing"] is True
    assert table.incomplete is not None
    for column, name in enumerate(NAMES):
        test, differences = slow_contrasts(table, column)
        for m in named(found, "contrast", dimension=name):
            first, second, turn = pair_of(m)
            k = PAIRS.index((first, second))
            assert m.value == pytest.approx(turn * test.gap[k], abs=1e-9)
            assert m.detail["p"] == pytest.approx(test.p[k], rel=1e-7)
            assert {key: total / n for key, (total, n) in m.detail["cluster_sums"].items()} == pytest.approx(
                {table.clusters[g]: turn * value for g, value in differences[first, second].items()}, abs=1e-9
            )
        for j, family in enumerate(table.families):
            without, _ = slow_contrasts(table, column, [k for k in range(3) if k != j])
            for m in named(found, "lofo.contrast", dimension=name, dropped=family):
                first, second, turn = pair_of(m)
                k = PAIRS.index((first, second))
                assert m.value == pytest.approx(turn * without.gap[k], abs=1e-9)
                assert m.detail["p"] == pytest.approx(without.p[k], rel=1e-7)


def test_a_severe_judge_that_misses_an_agents_records_moves_nothing(one_decision, one_judgment, study):
    """Without noise the severity is taken out exactly; the mean over who is there would gain the agent .4."""
    decisions = [
        one_decision(agent, cycle, f"w{cycle // 4}") for cycle in range(20) for agent in ("ash", "birch", "elm")
    ]
    severity = {"auditor": 0.0, "reader": 0.0, "skeptic": -1.2}
    quality = {"ash": 3.5, "birch": 3.5, "elm": 4.0}
    judgments = [
        one_judgment(d.record_id, judge, {"risk": quality[d.agent.id] + shift + (d.episode_id[5:] in "0369") / 4})
        for d in decisions
        for judge, shift in severity.items()
        if not (judge == "skeptic" and d.agent.id == "ash" and int(d.episode_id[5:]) % 4)
    ]
    table = score_table(judgments, decisions)
    assert len(table.left_out) == 15
    found = {m.id: m for m in analyse(table, study(), rng=np.random.default_rng(1))}
    gap = {(m.labels["high"], m.labels["low"]): m.value for m in named(found, "contrast", dimension="aggregate")}
    assert gap == {("ash", "birch"): 0.0, ("elm", "ash"): pytest.approx(0.5), ("elm", "birch"): pytest.approx(0.5)}


def test_records_that_no_judge_links_are_not_compared(make, study):
    """One judge grades one agent, the other judges the others: nothing says how severe they are beside each other."""
    decisions, judgments = make()
    parted = [j for j in judgments if (j.judge == "auditor") == j.trajectory.startswith("ash")]
    _, found = run((decisions, parted), study())
    for m in named(found, "contrast", dimension="risk"):
        apart = "ash" in m.labels.values()
        assert (m.value is None) is apart
        if apart:
            assert m.state.startswith("cannot be tested (0 common clusters;")
    (drop,) = named(found, "lofo.contrast", dimension="risk", dropped="south", high="ash", low="elm")
    assert drop.state == "never compared"


# --- clusters that follow each other in time --------------------------------------------------------------------------


@pytest.mark.parametrize(("week", "extra"), [("{:d}", CONSECUTIVE), ("2026-W{:02d}", "")])
def test_clusters_in_time_order_have_a_test_of_their_own(make, study, week, extra):
    """Week 9 comes before week 10, whatever the alphabet says; names that end in dates need no plan."""
    numbered = make(effects=(0.5, 0.1, 0.0, 0.0), clusters=14, cycles=3, week=week)
    table, found = run(numbered, study(extra))
    place = [week.format(k) for k in range(14)]
    assert table.clusters == tuple(sorted(place))
    order = [table.clusters.index(name) for name in place]
    for column, name in enumerate(NAMES):
        expected = serial_contrasts(np.nanmean(cell_means(table, column), axis=1)[order])
        for m in named(found, "contrast", dimension=name):
            first, second, turn = pair_of(m)
            one = expected[first, second]
            assert m.value == pytest.approx(turn * one.gap, abs=1e-9)
            for key in ("p", "se", "df", "rho", "effective"):
                assert m.detail[key] == pytest.approx(getattr(one, key), rel=1e-9), key
            assert "p_own_variance" not in m.detail
            assert list(m.detail["cluster_sums"]) == place
            assert f"worth {one.effective:.1f} independent ones" in m.method
        lags, _ = autocorrelations(np.nanmean(cell_means(table, column), axis=1)[order])
        m = get(found, "order.autocorrelation", dimension=name)
        assert (m.detail["lags"], m.detail["order"]) == (pytest.approx(lags), "consecutive")


def test_eleven_weeks_cannot_be_tested(make, study):
    _, found = run(make(clusters=11, cycles=2, effects=(2.0, 0.0, 0.0, 0.0)), study(CONSECUTIVE))
    assert {m.state for m in named(found, "contrast")} == {
        "cannot be tested (11 common clusters that follow each other in time; 12 are needed)"
    }
    assert {m.detail["p"] for m in named(found, "contrast")} == {1.0}


# Partitions of a table: their bytes, and what keeps them from being parts of one table

FAMILIES = {"auditor": "north", "reader": "south", "skeptic": "east"}
DIMENSIONS = ["clarity", "risk"]
sums_of = partial(streaming.sums_of, dimensions=DIMENSIONS)


def rows(cycles=range(6), *, names=tuple(FAMILIES), **columns) -> pa.Table:
    keys = [(c, agent, judge) for c in cycles for agent in ("ash", "elm") for judge in names]
    return pa.table({"trajectory": [2 * c + (agent == "elm") for c, agent, _ in keys], "agent": [agent for _, agent,
        _ in keys], "cluster": [f"week{c % 3}" for c, _, _ in keys], "judge": [judge for _, _, judge in keys],
        "family": [FAMILIES[judge] for _, _, judge in keys], "trial": [1] * len(keys), "cycle": [c for c, _, _ in keys],
        "clarity": [1 + (3 * c + len(agent + judge)) % 5 for c, agent, judge in keys],
        "risk": [1 + (c + len(judge)) % 5 for c, _, judge in keys], **{name: [value] * len(keys) for name,
        value in columns.items()}})  # fmt: skip


def given_of(folder, table: pa.Table, name: str = "scores.parquet") -> dict[str, object]:
    pq.write_table(table, folder / name, row_group_size=7)
    named = [one for one in DIMENSIONS if one in table.column_names]
    return {"path": str(folder / name), "weights": None, "dimensions": named, "threads": 1}


def read(folder, table: pa.Table, name: str = "scores.parquet") -> Partition:
    return read_partition(partition_sums(given_of(folder, table, name)))


@pytest.mark.parametrize("more", [{}, {"length": 3}, {"format": "long"}])
def test_sums_survive_their_bytes(tmp_path, more):
    table = rows(**more)
    found = read(tmp_path, table)
    assert found.sums.digest == sums_of(table).digest
    for field in fields(found.sums):
        one, other = getattr(found.sums, field.name), getattr(sums_of(table), field.name)
        if field.name != "tables" and not isinstance(one, np.ndarray):
            assert one == other, field.name
    assert found.columns == tuple(sorted(table.column_names))
    assert (found.key, found.runs.tolist(), found.names) == ("cycle", [[0, 5]], ())
    assert to_bytes(found) == partition_sums(given_of(tmp_path, table))


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.float64()])
def test_ids_that_are_no_whole_numbers(tmp_path, kind):
    table = rows(range(3))
    named = table.column("cycle").cast(pa.string()) if kind != pa.float64() else table.column("cycle")
    column = named.dictionary_encode() if pa.types.is_dictionary(kind) else named.cast(kind)
    found = read(tmp_path, table.set_column(6, "cycle", column))
    assert found.names == ("0", "1", "2")
    assert found.sums.digest == sums_of(table).digest


def test_without_cycles_trajectories_are_what_lies_in_one_partition(tmp_path):
    found = read(tmp_path, rows(range(4, 6)).drop_columns("cycle"))
    assert (found.key, found.runs.tolist()) == ("trajectory", [[8, 11]])


def test_what_differs_is_named(tmp_path):
    text = rows(range(6, 8))
    text = text.set_column(6, "cycle", text.column("cycle").cast(pa.string()))
    partitions = {
        "a": read(tmp_path, rows()), "b": read(tmp_path, rows(range(6, 8), names=("auditor", "reader"))),
        "c": read(tmp_path, rows(range(8, 9), length=4).drop_columns("risk")), "d": read(tmp_path, text),
        "e": read(tmp_path, rows(range(9, 12))),
    }  # fmt: skip
    assert list(map(str, misfits(partitions))) == [
        "b: other judges than in a (not here: skeptic of east)",
        "c: other columns than in a (not here: risk; only here: length)",
        "d: cycle holds text here and whole numbers in a",
    ]


def test_text_ids_in_two_partitions(tmp_path):
    table = rows()
    text = table.set_column(6, "cycle", table.column("cycle").cast(pa.string()))
    partitions = {"a": read(tmp_path, text), "b": read(tmp_path, text.slice(30))}
    assert list(map(str, misfits(partitions))) == ["b: cycle 5 is in a too; each cycle lies in one partition"]


@given(st.lists(st.sets(st.integers(-5, 30), min_size=1), min_size=1, max_size=5))
def test_shared_ids_are_those_of_the_slow_way(sets):
    whole = sums_of(rows())
    partitions = {
        f"p{k}": Partition(whole, ("cycle",), runs_of(np.array(sorted(ids))), ()) for k, ids in enumerate(sets)
    }
    told = misfits(partitions)
    pairs = {(f"p{a}", f"p{b}"): sets[a] & sets[b] for b in range(len(sets)) for a in range(b) if sets[a] & sets[b]}
    assert bool(told) == bool(pairs)
    for problem in told:
        value, _, rest = problem.what.removeprefix("cycle ").partition(" is in ")
        assert int(value) in pairs[rest.split()[0], problem.where]
    # Every partition that shares anything is named, beside one that it shares it with or after another.
    named = {word for problem in told for word in (problem.where, problem.what.split(" is in ")[1].split()[0])}
    assert {name for pair in pairs for name in pair} == named


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "is no Parquet file, or it is damaged"),
        (lambda _: b"no table", "is no Parquet file, or it is damaged"),
        (lambda _: b"", "is no Parquet file, or it is damaged"),
    ],
)
def test_damage_is_an_error_with_the_name_of_the_file(tmp_path, damage, message):
    given = given_of(tmp_path, rows())
    path = tmp_path / "scores.parquet"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        partition_sums(given)
    assert caught.value.source == str(path)


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(InputError, match="no such file where it is to be read"):
        partition_sums({**given_of(tmp_path, rows()), "path": str(tmp_path / "gone.parquet")})


def test_what_lacks_a_score_is_left_out_and_counted(tmp_path):
    table = rows()
    risk = [None, *table.column("risk").to_pylist()[1:]]
    found = read(tmp_path, table.set_column(8, "risk", pa.array(risk))).sums
    assert (found.n, found.left_out) == (11, 1)
    assert found.replies[:, :, 1].tolist() == [[1, 0], [0, 0], [0, 0]]


def test_rows_that_are_needed_are_said_to_be(tmp_path):
    with pytest.raises(InputError, match="there is a column replicate, so its rows are needed"):
        partition_sums(given_of(tmp_path, rows(replicate=1)))


def test_the_sums_of_the_same_rows_have_the_same_bytes_whatever_the_order(tmp_path):
    table = rows()
    mixed = table.take(np.random.default_rng(3).permutation(table.num_rows))
    one, other = read(tmp_path, table), read(tmp_path, mixed)
    assert to_bytes(one) == to_bytes(replace(other, columns=one.columns))
