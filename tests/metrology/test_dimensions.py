"""Dimensions: covariances between judges by brute force, planted halo, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from slow_orders import NAMES, cell_means, changed, get, named, pairs_in, run, slow_contrasts, some, unusable

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import streaming
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
    pairs = list(permutations(range(scores.shape[1]), 2))
    return np.mean([[(centred[:, j, d] * centred[:, k, d]).mean(), (rest[:, j] * rest[:, k]).mean(),
                     (centred[:, j, d] * rest[:, k]).mean()] for j, k in pairs], axis=0)  # fmt: skip


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_covariances_between_judges_by_brute_force(seed, consecutive):
    scores = study(seed)
    units = mt.neighbour_blocks(6)[CLUSTER] if consecutive else CLUSTER
    count = units[-1] + 1
    found = mt.discriminant(scores, CLUSTER, consecutive=consecutive)
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
    told = [[one.p for one in found.dimensions], [one.p_holm for one in found.dimensions]]
    assert np.array(told) == pytest.approx(np.array([p, mt.holm(p)]), abs=1e-9)


def test_copies_of_one_impression_are_not_distinct_and_dimensions_are():
    for seed in range(5):
        copies = mt.discriminant(study(seed, own=0.0), CLUSTER)
        assert not any(one.distinct for one in copies.dimensions)
        assert all(one.low < 1 < one.high for one in copies.dimensions)
        assert all(one.distinct for one in mt.discriminant(study(seed, own=2.0), CLUSTER).dimensions)
    # Copies are rarely called distinct.
    copies = (mt.discriminant(study(seed, own=0.2, dimensions=3), CLUSTER).dimensions for seed in range(200))
    assert np.mean([any(one.distinct for one in dimensions) for dimensions in copies]) < 0.08
    # Disagreement lowers the plain correlation with the overall impression, and not phi.
    big = np.repeat(np.arange(20), 50)
    for noise, within in ((1.5, 0.1), (0.1, 0.01)):
        scores = study(1, own=0.0, noise=noise, clusters=big)
        assert mt.discriminant(scores, big).dimensions[0].phi == pytest.approx(1, abs=within)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_severity_scale_and_clusters_change_no_correlation(seed):
    rng = np.random.default_rng(seed)
    scores = study(seed % 100)
    moved = scores * rng.uniform(0.5, 2) + rng.normal(0, 2, (1, 3, 4)) + rng.normal(0, 2, (6, 3, 4))[CLUSTER]
    for before, after in zip(*(mt.discriminant(s, CLUSTER).dimensions for s in (scores, moved)), strict=True):
        assert (after.phi, after.p) == pytest.approx((before.phi, before.p), abs=1e-8)
    np.testing.assert_allclose(*(mt.multitrait_multimethod(s, CLUSTER) for s in (scores, moved)), atol=1e-9)


def test_what_is_not_distinct_and_what_is_not_measurable():
    scores = np.stack([study(2), study(2)])
    scores[0, :, :, 1] = 3
    scores[1, CLUSTER != 3, :, 1] = 3  # what they share lies in one cluster
    (other, one, *_), (_, lone, *_) = (mt.discriminant(each, CLUSTER).dimensions for each in scores)
    assert (one.phi, one.low, one.p, one.distinct, lone.p, other.state) == (None, None, 1.0, False, 1.0, "ok")
    assert one.state.startswith("undefined: ")
    too_little = [(study()[:, :1], CLUSTER), (study()[:, :, :1], CLUSTER), (study()[:23], CLUSTER[:23]),
                  (np.full((6, 2, 2), np.nan), np.arange(6))]  # fmt: skip
    for scores, cluster in too_little:
        found = mt.discriminant(scores, cluster)
        assert (found.state.partition(":")[0], found.dimensions) == ("not measurable", ())
    # Three clusters in time order are one block.
    states = [mt.discriminant(study()[:34], CLUSTER[:34], consecutive=after).state for after in (False, True)]
    assert (states[0], states[1].partition(":")[0]) == ("ok", "not measurable")
    # Records with a missing score are left out.
    scores = study()
    scores[[3, 30], [0, 2], [1, 1]] = np.nan
    whole = np.delete(np.arange(CLUSTER.size), [3, 30])
    assert mt.discriminant(scores, CLUSTER) == mt.discriminant(scores[whole], CLUSTER[whole])
    # Specific needs two dimensions and a whole cycle.
    for deltas in ([[0.3], [0.2]], [[0.3, None], [None, 0.2]]):
        found = mt.specific_contrast(deltas, [0, 1], 0)
        assert (found.estimate, found.p_up, found.state.partition(":")[0]) == (None, 1.0, "not measurable")
    assert mt.specific_contrast([[0.3, 0.1], [None, 0.2], [0.5, 0.2]], [0, 1, 2], 0).df == 1


def test_the_matrix_is_that_of_correlations_within_clusters():
    scores = study(3)
    centred = scores - np.stack([part.mean(axis=0) for part in np.split(scores, np.cumsum(SIZES)[:-1])])[CLUSTER]
    expected = np.corrcoef(centred.reshape(-1, 12).T).reshape(3, 4, 3, 4)
    np.testing.assert_allclose(mt.multitrait_multimethod(scores, CLUSTER), expected, atol=1e-12)
    scores[:, 0, 0] = CLUSTER
    with pytest.raises(NotMeasurableError, match="one score per cluster"):
        mt.multitrait_multimethod(scores, CLUSTER)
    # Specific is a t test of the difference between differences.
    deltas = np.random.default_rng(1).normal(0.3, 0.2, (6, 4))
    for d in range(4):
        rest = deltas[:, d] - np.delete(deltas, d, axis=1).mean(axis=1)
        expected = stats.ttest_1samp(rest, 0, alternative="greater")
        for values, cluster in ((deltas, np.arange(6)), (np.repeat(deltas, 3, axis=0), np.repeat(np.arange(6), 3))):
            found = mt.specific_contrast(values, cluster, d)
            assert (found.estimate, found.p_up, found.df) == pytest.approx((rest.mean(), expected.pvalue, 5))
    assert mt.specific_contrast(deltas, np.arange(6), 0, consecutive=True).df == 2
    # Under a halo, a dimension with nothing of its own gets part of what another one has.
    true = np.array([0.6, 0.0, 0.0])
    seen = 0.5 * true + 0.5 * true.mean() + np.random.default_rng(2).normal(0, 0.05, (40, 3))
    own, spilled = (mt.specific_contrast(seen, np.repeat(np.arange(8), 5), d) for d in (0, 1))
    assert own.p_up < 0.001
    assert spilled.estimate < 0


@pytest.mark.parametrize(("arguments", "options", "message"), [
    ((study(), CLUSTER[:5]), {}, "one entry for each"), ((study()[0], CLUSTER), {}, "S: must have 3 axes"),
    ((study() * np.inf, CLUSTER), {}, "finite"), ((study(), CLUSTER), {"distinct": 1.0}, "distinct"),
    ((study(), CLUSTER), {"alpha": 0}, "alpha"), ((study(), CLUSTER), {"level": 95}, "level")
])  # fmt: skip
def test_wrong_input_is_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        mt.discriminant(*arguments, **options)
    for d in (-1, 2, 0.5):
        with pytest.raises(InputError, match="d: must be"):
            mt.specific_contrast([[0.3, 0.1], [0.2, 0.1]], [0, 1], d)


# Which records are compared: common clusters, grades that are missing, clusters in time order
CONSECUTIVE = 'inference = {cluster_order = "consecutive"}'


@pytest.mark.parametrize("clusters", [1, 2])
def test_fewer_than_three_clusters_cannot_be_tested(make, study, clusters):
    _, found = run(make(clusters=clusters, cycles=20, effects=(0.9, 0.0, 0.0, 0.0)), study())
    common = f"{clusters} common cluster{'s' if clusters > 1 else ''}"
    for m in named(found, "contrast"):
        assert m.state == f"cannot be tested ({common}; 3 are needed, 5 or more to have a chance)"
        assert (m.value, m.low, m.high, m.level, m.n) == (None, None, None, None, 20 * clusters)
        told = [m.detail.get(key) for key in ("p", "resolved", "se", "df", "p_equivalence")]
        assert told == [1.0, False, None, None, None]
    lead = get(found, "contrast", dimension="aggregate", high="ash", low="elm")
    assert lead.detail["gap"] > 0.5, "the gap stays for downloads"
    (m,) = named(found, "order.detectable")
    assert (m.value, m.state) == (None, "undefined: no pair can be tested")
    assert {one.detail["p"] for one in named(found, "lofo.contrast")} == {1.0}


def test_each_pair_is_tested_on_its_own_common_clusters(make, study):
    records = make(clusters=21, cycles=2, effects=(0.9, 0.0, 0.0, 0.0))
    table, found = run(some(records, lambda d: d.agent.id != "elm" or d.cluster < "week05"), study())
    test, _ = slow_contrasts(table, 0)
    for m, k, pair, _ in pairs_in(found, "contrast", dimension="aggregate"):
        expected = (5 if pair[1] == 3 else 21, pytest.approx(test.p[k], rel=1e-9))
        assert (m.detail["clusters"], m.detail["p"]) == expected
    # A pair that cannot be tested keeps its place in every count.
    records = make(effects=(0.9, 0.1, 0.0, 0.0))
    table, found = run(some(records, lambda d: d.agent.id != "elm" or d.cluster < "week02"), study())
    items = named(found, "contrast", dimension="aggregate")
    assert (len(items), [m.detail["p"] for m in items if m.value is None]) == (6, [1.0] * 3)
    # Shaffer over six pairs, of which three have p = 1.
    for j, family in enumerate(table.families):
        adjusted = mt.shaffer(slow_contrasts(table, 0, [k for k in range(3) if k != j])[0].p, 4)
        for m, k, _, _ in pairs_in(found, "lofo.contrast", dropped=family, dimension="aggregate"):
            assert m.detail["p_adjusted"] == pytest.approx(adjusted[k])


def test_pairs_that_never_meet_have_no_gap(make, study):
    turn = {"cedar": 0, "elm": 1}
    _, found = run(some(make(), lambda d: turn.get(d.agent.id) in (None, int(d.episode_id[5:]) % 2)), study())
    never = named(found, "contrast", high="cedar", low="elm")
    told = [(m.value, m.n, m.detail["gap"], m.detail["p"], m.detail["cluster_sums"]) for m in never]
    assert told == [(None, 0, None, 1.0, {})] * 4
    assert all(m.state.startswith("cannot be tested (0 common clusters;") for m in never)
    (drop,) = named(found, "lofo.contrast", dimension="risk", dropped="east", high="cedar", low="elm")
    assert (drop.value, drop.state) == (None, "never compared")


def test_scores_that_do_not_vary(make, study):
    """All clusters differ alike: only their sign speaks, unless other pairs lend a variance."""
    decisions, judgments = make(agents=("ash", "birch"))
    better = {"ash": 4.0, "birch": 3.0}
    flat = [replace(j, scores=dict.fromkeys(j.scores, better[j.trajectory.partition(".")[0]])) for j in judgments]
    _, found = run((decisions, flat), study())
    m = get(found, "contrast", dimension="aggregate", high="ash", low="birch")
    assert (m.value, m.low, m.level, m.detail["p"], m.detail["p_equivalence"]) == (1.0, None, None, 2.0**-4, 1.0)
    assert m.method.endswith("sign of 5 equal cluster differences")
    same = changed(judgments, scores=lambda own: dict.fromkeys(own, 3.0))
    _, found = run((decisions, same), study())
    m = get(found, "contrast", dimension="aggregate", high="ash", low="birch")
    assert (m.value, m.detail["p"], m.detail["p_equivalence"], m.detail["resolved"]) == (0.0, 1.0, 2.0**-5, False)


def test_kappa_over_time_leaves_out_blocks_of_neighbours(make, study):
    """Weeks 0 to 10 make the blocks 0-2, 3-5 and 6-10, by number and not by name."""
    table, found = run(make(clusters=11, cycles=4, week="{:d}"), study(CONSECUTIVE))
    weeks = np.array([int(name) for name in table.clusters])[table.cluster]
    ratings = np.clip(np.floor(table.scores @ table.weights + 0.5), 1, 5).astype(int)
    expected = mt.jackknife_kappa(ratings, np.minimum(weeks // 3, 2))
    kappa = found["kappa.mean_pairwise[dimension=aggregate]"]
    assert (kappa.low, kappa.high) == pytest.approx((expected.low, expected.high))
    assert kappa.method.endswith("delete-one-block jackknife, t(2)")
    line = np.argsort(weeks, kind="stable")
    again = mt.jackknife_kappa(ratings[line], weeks[line], consecutive=True)
    assert (again.low, again.high) == pytest.approx((expected.low, expected.high))


def test_missing_grades_are_made_up_for_by_a_fit_of_judges_and_records(make, study):
    rng = np.random.default_rng(3)
    decisions, judgments = make(effects=(0.4, 0.2, 0.0, 0.0), clusters=6, cycles=5)
    lost = {j.call_key for j in judgments if rng.random() < 0.15}
    table, found = run((decisions, unusable(judgments, lambda j: j.call_key in lost, reason="not JSON")), study())
    assert (found["panel.families[]"].detail["missing"], table.incomplete is None) == (True, False)
    for column, name in enumerate(NAMES):
        tests = {
            f: slow_contrasts(table, column, [k for k in range(3) if k != j])[0] for j, f in enumerate(table.families)
        }
        tests[None], differences = slow_contrasts(table, column)
        for kind in ("contrast", "lofo.contrast"):
            for m, k, pair, turn in pairs_in(found, kind, dimension=name):
                expected = tests[m.labels.get("dropped")]
                assert (m.value, m.detail["p"]) == pytest.approx(
                    (turn * expected.gap[k], expected.p[k]), rel=1e-7, abs=1e-9
                )
                if kind == "contrast":
                    sums = {table.clusters[g]: turn * value for g, value in differences[pair].items()}
                    told = {key: total / n for key, (total, n) in m.detail["cluster_sums"].items()}
                    assert told == pytest.approx(sums, abs=1e-9)


def test_a_severe_judge_that_misses_an_agents_records_moves_nothing(one_decision, one_judgment, study):
    """Without noise the severity is taken out exactly; the mean over who is there would gain the agent .4."""
    agents = ("ash", "birch", "elm")
    decisions = [one_decision(agent, cycle, f"w{cycle // 4}") for cycle in range(20) for agent in agents]
    severity = {"auditor": 0.0, "reader": 0.0, "skeptic": -1.2}
    quality = {"ash": 3.5, "birch": 3.5, "elm": 4.0}
    judgments = [one_judgment(d.record_id, judge, {"risk": quality[d.agent.id] + shift + (cycle in "0369") / 4})
                 for d in decisions for judge, shift in severity.items() for cycle in [d.episode_id[5:]]
                 if (judge, d.agent.id) != ("skeptic", "ash") or int(cycle) % 4 == 0]  # fmt: skip
    table = mt.score_table(judgments, decisions)
    assert len(table.left_out) == 15
    found = {m.id: m for m in mt.analyse(table, study(), rng=np.random.default_rng(1))}
    gap = {(m.labels["high"], m.labels["low"]): m.value for m in named(found, "contrast", dimension="aggregate")}
    assert gap == {("ash", "birch"): 0.0, ("elm", "ash"): pytest.approx(0.5), ("elm", "birch"): pytest.approx(0.5)}


def test_records_that_no_judge_links_are_not_compared_nor_eleven_weeks(make, study):
    """One judge grades one agent, the other judges the others: nothing says how severe they are beside each other."""
    decisions, judgments = make()
    parted = [j for j in judgments if (j.judge == "auditor") == j.trajectory.startswith("ash")]
    _, found = run((decisions, parted), study())
    for m in named(found, "contrast", dimension="risk"):
        apart = "ash" in m.labels.values()
        assert (m.value is None, m.state.startswith("cannot be tested (0 common clusters;")) == (apart, apart)
    (drop,) = named(found, "lofo.contrast", dimension="risk", dropped="south", high="ash", low="elm")
    assert drop.state == "never compared"
    _, found = run(make(clusters=11, cycles=2, effects=(2.0, 0.0, 0.0, 0.0)), study(CONSECUTIVE))
    state = "cannot be tested (11 common clusters that follow each other in time; 12 are needed)"
    assert {(m.state, m.detail["p"]) for m in named(found, "contrast")} == {(state, 1.0)}


@pytest.mark.parametrize(("week", "extra"), [("{:d}", CONSECUTIVE), ("2026-W{:02d}", "")])
def test_clusters_in_time_order_have_a_test_of_their_own(make, study, week, extra):
    """Week 9 comes before week 10, whatever the alphabet says; names that end in dates need no plan."""
    table, found = run(make(effects=(0.5, 0.1, 0.0, 0.0), clusters=14, cycles=3, week=week), study(extra))
    place = [week.format(k) for k in range(14)]
    assert table.clusters == tuple(sorted(place))
    for column, name in enumerate(NAMES):
        means = np.nanmean(cell_means(table, column), axis=1)[[table.clusters.index(name) for name in place]]
        expected = mt.serial_contrasts(means)
        for m, _, pair, turn in pairs_in(found, "contrast", dimension=name):
            one = expected[pair]
            wanted = {key: getattr(one, key) for key in ("p", "se", "df", "rho", "effective")}
            assert {key: m.detail[key] for key in wanted} == pytest.approx(wanted, rel=1e-9)
            assert (m.value, list(m.detail["cluster_sums"])) == (pytest.approx(turn * one.gap, abs=1e-9), place)
            assert "p_own_variance" not in m.detail
            assert f"worth {one.effective:.1f} independent ones" in m.method
        lags, _ = mt.autocorrelations(means)
        m = get(found, "order.autocorrelation", dimension=name)
        assert (m.detail["lags"], m.detail["order"]) == (pytest.approx(lags), "consecutive")


# Partitions of a table: their bytes, and what keeps them from being parts of one table
FAMILIES = {"auditor": "north", "reader": "south", "skeptic": "east"}
DIMENSIONS = ["clarity", "risk"]
sums_of = partial(streaming.sums_of, dimensions=DIMENSIONS)


def rows(cycles=range(6), *, names=tuple(FAMILIES), **columns) -> pa.Table:
    keys = [(c, agent, judge) for c in cycles for agent in ("ash", "elm") for judge in names]
    made = [{"trajectory": 2 * c + (agent == "elm"), "agent": agent, "cluster": f"week{c % 3}", "judge": judge,
             "family": FAMILIES[judge], "trial": 1, "cycle": c, "clarity": 1 + (3 * c + len(agent + judge)) % 5,
             "risk": 1 + (c + len(judge)) % 5, **columns} for c, agent, judge in keys]  # fmt: skip
    return pa.Table.from_pylist(made)


def given_of(folder, table: pa.Table) -> dict[str, object]:
    pq.write_table(table, folder / "scores.parquet", row_group_size=7)
    named = [one for one in DIMENSIONS if one in table.column_names]
    return {"path": str(folder / "scores.parquet"), "weights": None, "dimensions": named, "threads": 1}


def read(folder, table: pa.Table) -> Partition:
    return mt.read_partition(mt.partition_sums(given_of(folder, table)))


def as_text(table: pa.Table) -> pa.Table:
    return table.set_column(6, "cycle", table.column("cycle").cast(pa.string()))


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
    assert to_bytes(found) == mt.partition_sums(given_of(tmp_path, table))


def test_ids_that_are_no_whole_numbers_and_those_of_trajectories(tmp_path):
    table = rows(range(3))
    text = table.column("cycle").cast(pa.string())
    for column in (text, text.dictionary_encode(), table.column("cycle").cast(pa.float64())):
        found = read(tmp_path, table.set_column(6, "cycle", column))
        assert (found.names, found.sums.digest) == (("0", "1", "2"), sums_of(table).digest)
    found = read(tmp_path, rows(range(4, 6)).drop_columns("cycle"))
    assert (found.key, found.runs.tolist()) == ("trajectory", [[8, 11]])


def test_what_differs_is_named(tmp_path):
    text = as_text(rows(range(6, 8)))
    partitions = {
        "a": read(tmp_path, rows()), "b": read(tmp_path, rows(range(6, 8), names=("auditor", "reader"))),
        "c": read(tmp_path, rows(range(8, 9), length=4).drop_columns("risk")), "d": read(tmp_path, text),
        "e": read(tmp_path, rows(range(9, 12))),
    }  # fmt: skip
    assert list(map(str, mt.misfits(partitions))) == [
        "b: other judges than in a (not here: skeptic of east)",
        "c: other columns than in a (not here: risk; only here: length)",
        "d: cycle holds text here and whole numbers in a",
    ]
    # Text ids in two partitions.
    text = as_text(rows())
    both = mt.misfits({"a": read(tmp_path, text), "b": read(tmp_path, text.slice(30))})
    assert list(map(str, both)) == ["b: cycle 5 is in a too; each cycle lies in one partition"]


@given(st.lists(st.sets(st.integers(-5, 30), min_size=1), min_size=1, max_size=5))
def test_shared_ids_are_those_of_the_slow_way(sets):
    whole = sums_of(rows())
    kept = [runs_of(np.array(sorted(ids))) for ids in sets]
    partitions = {f"p{k}": Partition(whole, ("cycle",), runs, ()) for k, runs in enumerate(kept)}
    told = mt.misfits(partitions)
    pairs = {(f"p{a}", f"p{b}"): sets[a] & sets[b] for b in range(len(sets)) for a in range(b) if sets[a] & sets[b]}
    assert bool(told) == bool(pairs)
    for problem in told:
        value, _, rest = problem.what.removeprefix("cycle ").partition(" is in ")
        assert int(value) in pairs[rest.split()[0], problem.where]
    # Every partition that shares anything is named, beside one that it shares it with or after another.
    named = {word for problem in told for word in (problem.where, problem.what.split(" is in ")[1].split()[0])}
    assert {name for pair in pairs for name in pair} == named


def test_damage_and_files_that_cannot_be_summed_are_errors_with_their_names(tmp_path):
    given, path = given_of(tmp_path, rows()), tmp_path / "scores.parquet"
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], b"no table", b""):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="is not a Parquet file, or is damaged") as caught:
            mt.partition_sums(given)
        assert caught.value.source == str(path)
    gone, repeated = {**given, "path": str(tmp_path / "gone.parquet")}, given_of(tmp_path, rows(replicate=1))
    for one, message in ((gone, "no such file where it is to be read"),
                         (repeated, "there is a column replicate, so its rows are needed")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            mt.partition_sums(one)


def test_what_lacks_a_score_is_left_out_and_the_order_of_rows_does_not_matter(tmp_path):
    table = rows()
    risk = [None, *table.column("risk").to_pylist()[1:]]
    found = read(tmp_path, table.set_column(8, "risk", pa.array(risk))).sums
    assert (found.n, found.left_out, found.replies[:, :, 1].tolist()) == (11, 1, [[1, 0], [0, 0], [0, 0]])
    mixed = table.take(np.random.default_rng(3).permutation(table.num_rows))
    one, other = read(tmp_path, table), read(tmp_path, mixed)
    assert to_bytes(one) == to_bytes(replace(other, columns=one.columns))
