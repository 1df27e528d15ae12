"""Pages of a benchmark: what they hold, what they withhold, and that nothing a model wrote becomes markup."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache
from html import unescape

import bench_runs as runs
import numpy as np
import pytest
from bench_runs import rendered
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import made_problems
from outline import html_of, read, words

from assaymark.benchmark import EpisodeResult
from assaymark.claims import Board, Leaderboard, decide_benchmark
from assaymark.records import Condition
from assaymark.report import Group, plain, portbench
from assaymark.text import NBSP, number

EIGHT = portbench.BenchmarkIndex.of(runs.eight())
RUNS = ("eight", "two", "single", "questions_only", "pipeline_only", "hostile", "empty")


def said(name: str, *paths: str) -> str:
    """The words of some pages of a run."""
    return " ".join(words(rendered(name)[path]) for path in paths or ("index.html",))


def changed(run, measurements, boards=runs.BOARDS, **more):
    """The run with other measurements, decided anew."""
    verdicts, leaderboards = decide_benchmark(measurements, boards, runs.PLAN)
    return replace(run, measurements=measurements, leaderboards=leaderboards, verdicts=verdicts, **more)


@pytest.mark.parametrize("name", RUNS)
def test_every_page_is_well_formed_within_its_size_closed_and_leads_somewhere(name):
    assert "nan" not in re.findall(r"[A-Za-z]+", words(rendered(name)["index.html"]).lower())
    assert made_problems(rendered(name)) == []


def test_equal_runs_give_equal_bytes():
    assert portbench.render_benchmark(runs.made(("literal", "momentum"))) == rendered("two")


# --- permission -------------------------------------------------------------------------------------------------------


def tiers_of(group):
    """The table of a group as tiers: the words of the head of each, and its rows as lines of text."""
    found = [("", [])]
    for row in group.blocks[0].lines:
        if len(row.cells) == 1:
            found.append((plain(row.cells[0]), []))
        else:
            found[-1][1].append([plain(cell) for cell in row.cells])
    return found if found[0][1] else found[1:]


def test_models_are_sorted_by_name_inside_a_tier_and_only_a_supported_rank_has_a_point():
    tables = portbench.stage_tables(EIGHT)
    for group, board in zip(tables, EIGHT.run.leaderboards, strict=False):
        tiers = [one for one in tiers_of(group) if not one[0].startswith("Ceiling")]
        assert [tuple(row[0].partition("rank")[0] for row in rows) for _, rows in tiers] == [*board.tiers]
        for _, rows in tiers:
            assert [row[0] for row in rows] == sorted(row[0] for row in rows)
            for row in rows:
                assert ("(" in row[7]) == (len(rows) == 1) != ("rank" in row[0])
    tiers = tiers_of(tables[0])
    heads = [head for head, _ in tiers]
    assert [head.partition(" cannot")[0] for head in heads[:2]] == ["Rank 1 to 4", "Rank 5 to 7"]
    assert heads[2].startswith("Rank 8")
    assert all(head.endswith("Supported") for head in heads[:3])
    assert {row[0].partition("rank")[2] for row in tiers[0][1]} == {" 1 to 4 of 8"}
    # The ceiling stands below the models and is no model.
    *models, (_, [ceiling]) = tiers
    assert ceiling[1:6] == ["1.00", "1.00", "0.72", "1.00", "1.00"]
    assert all("true answers" not in row[0] for _, rows in models for row in rows)
    assert "Ceiling true answers at every stage" in said("eight", "scores.html")


def test_a_board_says_how_it_is_tested_what_depends_and_what_can_be_detected():
    note = portbench.stage_tables(EIGHT)[0].blocks[-1].body
    assert note.startswith("Differences: moderated cluster t. Autocorrelation of neighbouring clusters: ")
    assert "Smallest detectable difference (power 80" in note
    item = EIGHT.get("order.autocorrelation", "all")
    serial = replace(item, detail={**item.detail, "order": "consecutive", "lags": [0.31, 0.2, 0.1, 0.05]})
    turned = portbench.BenchmarkIndex.of(replace(EIGHT.run, measurements=(serial,)))
    assert "Autocorrelation of clusters at lags 1 to 4: 0.31, 0.20, 0.10, 0.05" in portbench.design_note(turned, "all")


def test_the_score_of_a_model_that_shares_its_tier_is_not_on_the_page():
    """It would rank the models of the tier; only its interval is shown."""
    board, html = EIGHT.run.leaderboards[0], rendered("eight")["scores.html"]
    for tier in board.tiers:
        for name in tier:
            row = re.search(rf'<tr><th scope="row">{name}<.*?</tr>', html, re.S).group()
            level = board.levels[name]
            assert f"{number(level.low)} to {number(level.high)}" in row
            assert ("h10v10" in row) == (len(tier) == 1)
            assert (f">{number(level.value)}<" in row) == (len(tier) == 1)
    alone = re.search(r'<tr><th scope="row">fir<.*?</tr>', html, re.S).group()
    assert f">{number(board.levels['fir'].value)}</a> (" in alone


def test_measurements_of_unsupported_differences_and_shared_tiers_have_no_number():
    rows = {item.id: row.cells for item, row in portbench.bench_measurements(EIGHT)}
    for item in EIGHT.by_name["contrast"]:
        level, row = EIGHT.pair_level(item.labels["dimension"], item.labels["high"], item.labels["low"]), rows[item.id]
        assert (row[2] == "not shown: no supported ranking") == (level == "no-claim")
        if level == "no-claim":
            names = sorted((item.labels["high"], item.labels["low"]))
            assert f"agents {names[0]} and {names[1]}" in row[1]
            assert "high" not in row[1]
            assert row[3] == ""
    for board in EIGHT.run.leaderboards:
        for tier in board.tiers:
            for name in tier:
                item, value = board.levels[name], rows[board.levels[name].id][2]
                hidden = f"{number(item.low)} to {number(item.high)}, its interval; the model shares its tier"
                assert (value == hidden) == (len(tier) > 1)
    assert rows[EIGHT.by_name["bench.sharpe.contrast"][0].id][2] == "not shown: the difference is not supported"


def test_only_licensed_sentences_are_set_in_serif():
    licensed = {
        f"“{v.claim.statement.replace(' %', NBSP + '%')}”".replace("'", "’")
        for v in EIGHT.run.verdicts
        if v.publication_level != "no-claim"
    }
    cuts = {f"“{quote.sentence}”" for board in EIGHT.run.leaderboards for quote, _ in portbench.tier_cuts(EIGHT, board)}
    for path, html in html_of(rendered("eight")).items():
        if not re.search(r'class="[^"]*\bquote\b', html):
            continue
        quotes = {text for text in read(html).serif if text.strip()}
        assert quotes <= (licensed | cuts if path == "index.html" else licensed), path
        assert quotes or path != "index.html"


def test_a_cut_between_tiers_is_a_sentence_only_where_every_order_across_it_is():
    board = EIGHT.run.leaderboards[0]

    def cuts(verdicts):
        return list(portbench.tier_cuts(portbench.BenchmarkIndex.of(replace(EIGHT.run, verdicts=verdicts)), board))

    (quote, why), *others = cuts(EIGHT.run.verdicts)
    assert len(others) == len(board.tiers) - 2
    above, below = board.tiers[0], [name for tier in board.tiers[1:] for name in tier]
    assert quote.sentence.startswith(f"{', '.join(above[:-1])} and {above[-1]} score above the other four models on ")
    assert why == f"Every ranking across this cut is supported: {len(above) * len(below)} pairs."
    pair = next(v for v in EIGHT.of_kind("above") if v.claim.subjects == (above[0], below[0]))
    rest = tuple(v for v in EIGHT.run.verdicts if v is not pair)
    (quote, _), *_ = cuts((*rest, replace(pair, conditions=(Condition("small-gap", "They are close."),))))
    assert quote.condition.startswith(f"They are close. This applies to {' and '.join(sorted(pair.claim.subjects))}.")
    assert quote.condition.endswith("the margin that counts as none. This applies to 2 of 16 pairs.")
    for gone in (rest, (*rest, replace(pair, publication_level="no-claim"))):
        assert len(cuts(gone)) == 1


@pytest.mark.parametrize(("model", "says"), [("reference/portbench-literal", "The models are rule-based stand-ins."),
                                             ("maker/{0}", "")])  # fmt: skip
def test_a_sentence_about_built_in_models_is_never_copied_without_saying_so(model, says):
    run = runs.eight()
    found = (
        portbench.render_benchmark(replace(run, plan=runs.plan_of(runs.EIGHT, model))) if says else rendered("eight")
    )
    copies = [
        unescape(text)
        for path in ("index.html", "claims.html")
        for text in re.findall(r'data-copy="(“[^"]*)"', found[path])
    ]
    assert copies
    assert all(("stand-ins" in text) == bool(says) and says in text for text in copies)
    assert all(f"(assaymark: {run.title}, 20 November 2026, plan {run.plan_hash})" in text for text in copies)


def test_a_withheld_order_is_named_without_its_direction():
    everything = said("eight", *(path for path in rendered("eight") if path.startswith("claims")))
    kept = [v for v in EIGHT.run.verdicts if v.publication_level == "no-claim" and v.claim.asserts_order]
    assert kept
    assert not any(verdict.claim.statement in everything for verdict in kept)
    pairs = [v for v in kept if v.claim.id.startswith("above")]
    one, two = sorted(pairs[0].claim.subjects)
    assert f"Any ranking of {one} and {two} on" in everything
    assert not any(v.claim.id in page for v in pairs for page in rendered("eight").values())


def test_every_verdict_has_one_card():
    cards = portbench.claim_cards(EIGHT)
    assert Counter(card.level for card in cards) == Counter(one.publication_level for one in EIGHT.run.verdicts)


@pytest.mark.parametrize("name", ["eight", "two", "single", "questions_only"])
def test_the_tallies_of_the_first_page_count_its_sentences(name):
    book, index = portbench.BenchmarkIndex.of(getattr(runs, name)()), said(name)
    shown = Counter(quote.level for quote, _ in portbench.front_sentences(book))
    assert f" {shown['headline']} supported" in index
    assert f" {shown['qualified']} only with a condition" in index
    assert f" {len(portbench.bench_withheld(book))} not supported" in index
    assert shown.total() <= 4


def test_withheld_claims_are_few_lines_with_numbers():
    groups = list(portbench.bench_levels(EIGHT))[2].claims
    assert [group.text for group in groups] == [
        "Any further ranking of the models.", "That any model beats equal weight.",
        "Whether questions and pipeline rank the models alike.",
    ]  # fmt: skip
    assert "All profiles, 9 of 28" in groups[0].why[0][0]
    assert groups[1].why[0][0] == "All 24 Sharpe differences have intervals that contain zero. "
    withheld = sum(verdict.publication_level == "no-claim" for verdict in EIGHT.run.verdicts)
    assert sum(group.covers for group in groups) == withheld


def test_a_model_that_ranks_first_is_the_first_sentence():
    names = ("alder", "dogwood", "elm", "gorse")  # the others are .06 below the first
    headline, *_ = portbench.bench_levels(portbench.BenchmarkIndex.of(runs.made(names)))
    assert headline.claims[0].sentence == "alder ranks first of the four models on CEPS over all profiles."
    assert any("conservative profile" in claim.sentence for claim in (*headline.claims, *headline.more))


def test_one_model_has_no_order_and_two_have_one_pair():
    index = said("single", "index.html", "scores.html")
    assert "One model no other model to compare it with" in index
    assert "scores above" not in index
    assert "stays within a drawdown" in index or "falls by more than" in index
    assert "All 2 cannot be ranked" in said("two", "scores.html")


def test_a_group_without_verdicts_has_no_position_and_a_board_of_no_profile_no_table():
    tiers = tiers_of(portbench.stage_tables(portbench.BenchmarkIndex.of(replace(EIGHT.run, verdicts=())))[0])
    tiers = [one for one in tiers if not one[0].startswith("Ceiling")]
    assert tiers
    for head, rows in tiers:
        assert head.endswith("Not supported")
        assert not any("(" in row[7] for row in rows)
        assert {row[8] for row in rows} == {"not decided"}
    other = Leaderboard(Board("else", "something", "f"), (), {}, (), {})
    more = replace(EIGHT.run, leaderboards=(*EIGHT.run.leaderboards, other))
    assert len(portbench.stage_tables(portbench.BenchmarkIndex.of(more))) == 4


def test_questions_come_in_tiers_and_only_what_was_asked_has_a_column():
    *tables, further = [one for one in portbench.questions_section(EIGHT).blocks if isinstance(one, Group)]
    full, _, difference = tables
    board = next(one for one in EIGHT.run.leaderboards if one.board.name == "questions")
    assert [tuple(re.split(" ?rank", row[0])[0] for row in rows) for _, rows in tiers_of(full)] == [*board.tiers]
    assert [len(one.blocks[0].columns) for one in tables] == [9, 3, 3]
    cells = [cell for row in difference.blocks[0].lines for cell in row.cells[1:]]
    assert {(cell.value, cell.share) for cell in cells} == {("−0.10", 0.0)}
    for _, rows in tiers_of(full):
        assert [row[-1] for row in rows] == ["0.61 (0.57 to 0.65)" if len(rows) == 1 else "0.57 to 0.65"] * len(rows)
    assert [len(one.blocks[0].columns) for one in further.blocks] == [3, 5]
    assert "not measured" not in said("eight")


def test_one_tier_of_ranked_pairs_is_not_said_to_be_of_equals():
    joined = [replace(one, tiers=(one.models,)) if one.board.name == "questions" else one
              for one in EIGHT.run.leaderboards]  # fmt: skip
    assert any(one.open_pairs < one.pairs for one in joined if one.board.name == "questions")
    first = words(portbench.render_benchmark(replace(EIGHT.run, leaderboards=tuple(joined)))["index.html"])
    assert "none is shown to be above all others" in first
    assert "No model is shown to know more" not in first


def test_calm_against_stress_shows_intervals_and_no_point():
    table = portbench.windows_table(EIGHT)
    assert [row[0] for row in table.rows] == list(EIGHT.names)
    for name, *cells in table.rows:
        for strip, shown, kind in ((*cells[:2], "normal"), (*cells[2:], "stress")):
            item = EIGHT.get("bench.stage", model=name, profile="all", stage="CEPS", windows=kind)
            assert shown == f"{number(item.low)} to {number(item.high)}"
            assert "h10v10" not in strip
    questions, twelve = (portbench.BenchmarkIndex.of(run()) for run in (runs.questions_only, runs.twelve))
    assert portbench.windows_table(questions) is None
    assert portbench.signals_figure(questions) is None
    drawn = portbench.signals_figure(twelve).wide
    assert all(name[:12] in drawn for name in twelve.names)
    assert "Does quality hold under stress?" in said("eight", "scores.html")


def test_a_score_without_an_interval_is_said_so_beside_the_calm_windows():
    run = runs.two()
    bare = tuple(
        replace(m, low=None, high=None, level=None) if m.labels.get("windows") == "stress" else m
        for m in run.measurements
        if m.labels.get("windows") != "normal" or m.labels["model"] != "literal"
    )
    rows = portbench.windows_table(portbench.BenchmarkIndex.of(replace(run, measurements=bare))).rows
    assert [plain(cell) for cell in rows[0][2::2]] == ["not measured", "no interval"]


# --- what is missing --------------------------------------------------------------------------------------------------


def test_a_missing_half_is_said_with_the_command_that_makes_it():
    for name, commands in (
        ("questions_only", ("pipeline",)), ("pipeline_only", ("qa",)), ("empty", ("pipeline", "qa")),
    ):  # fmt: skip
        assert all(f"assaymark bench {command}" in said(name) for command in commands)
    assert not {"histories.html", "snapshots.html"} & rendered("questions_only").keys()
    assert "questions.html" not in rendered("pipeline_only")


def test_an_undefined_number_is_a_state_in_words():
    run, names = runs.single(), ("bench.sharpe", "bench.stage", "bench.risk_safe")
    gone = {"value": None, "low": None, "high": None, "level": None, "state": "undefined: no date was reached"}
    broken = tuple(replace(m, **gone) if m.name in names else m for m in run.measurements)
    index = words(portbench.render_benchmark(replace(run, measurements=broken))["scores.html"])
    assert "not defined: no date was reached" in index
    assert "momentum" in index


def test_limits_are_not_decided_where_a_stress_window_was_not_run():
    run = runs.two()
    fewer = tuple(
        replace(m, detail={**m.detail, "wanted": [*m.detail["wanted"], "rates-2030"]}) if "wanted" in m.detail else m
        for m in run.measurements
        if m.name != "bench.sharpe"
    )
    made = portbench.render_benchmark(changed(run, fewer))
    index, claims = words(made["index.html"]), words(made["claims.html"])
    assert "Whether limits are kept under stress (conservative, balanced and aggressive)." in index
    assert index.count("Whether limits are kept under stress") == 1
    assert "Not decided under the conservative profile; the sentences say why." in index
    assert "calm windows only" in words(made["histories.html"])
    assert "not decided" in words(made["scores.html"])
    assert "Whether literal and momentum stay within the limit (drawdown, balanced)." in claims
    assert "Whether literal stays within the limit (drawdown, balanced)." in claims


def test_an_answer_to_whether_models_beat_equal_weight_is_a_sentence_and_the_others_are_withheld():
    run = runs.two()
    strong = tuple(
        replace(m, value=2.0, low=1.0, high=3.0, detail={"p": 1e-6})
        if m.name == "bench.sharpe.contrast" and m.labels["model"] == "literal"
        else m
        for m in run.measurements
    )
    book = portbench.BenchmarkIndex.of(changed(run, strong))
    headline, _, withheld = portbench.bench_levels(book)
    quotes = [claim.sentence for claim in (*headline.claims, *headline.more)]
    assert sum("literal beats equal weight" in quote for quote in quotes) == 3
    assert "That any other model or profile beats equal weight." in [group.text for group in withheld.claims]
    bodies = [getattr(card.blocks[0], "body", "") for card in portbench.claim_cards(book)]
    assert any(body.startswith("That momentum beats equal weight (Sharpe ratio") for body in bodies)


def test_a_verdict_of_an_unknown_kind_is_a_card_and_not_a_sentence_of_the_first_screen():
    run = runs.single()
    claim = replace(run.verdicts[0].claim, id="else[x=1]", asserts_order=True, statement="secret")
    other = replace(run.verdicts[0], publication_level="no-claim", claim=claim)
    made = portbench.render_benchmark(replace(run, verdicts=(*run.verdicts, other)))
    assert "A claim about momentum" in words(made["claims.html"])
    assert not any("secret" in html for html in made.values())


def test_one_calm_window_under_one_profile_is_said_as_such():
    """The smallest run: nothing about stress, nothing about several investors, and no limit decided."""
    run = runs.single()
    kept = tuple(
        m
        for m in run.measurements
        if m.labels.get("window", "normal") == "normal"
        and m.labels.get("windows") != "stress"
        and m.labels.get("profile", "balanced") == m.labels.get("board", "balanced") == "balanced"
        and m.name in ("bench.level", "bench.stage", "bench.sharpe", "bench.sharpe.contrast", "bench.performance")
    )
    alone = run.plan.pipeline.model_copy(update={"profiles": ("balanced",), "windows": ("normal",)})
    made = portbench.render_benchmark(changed(
        run, kept, [runs.BOARDS[2]], plan=run.plan.model_copy(update={"pipeline": alone}), windows=run.windows[:1],
        answers={}, results=[one for one in run.results if (one.window, one.profile) == ("normal", "balanced")],
        baselines=run.baselines[:1],
    ))  # fmt: skip
    index = words(made["index.html"]) + words(made["scores.html"])
    for text in (
        "All 1 candidate sentence", "(the one Sharpe difference has an interval that contains zero).",
        "No stress window was run", "Does it fit the investor?", "not decided", "Balanced profile",
    ):  # fmt: skip
        assert text in index
    assert "under stress " not in index.replace("losses under stress are", "")


@pytest.mark.parametrize(("replies", "text"), [
    ({"S1": ("refused",), "S3": ("truncated",)}, "Of 3 replies 2 were refused or cut off"),
    ({}, "All 3 replies could be read."), (None, "follow from its supported pairs."),
])  # fmt: skip
def test_replies_that_were_lost_are_counted_in_words(replies, text):
    run = runs.single()
    dates = () if replies is None else (runs.dated(date(2024, 1, 1), **replies),)
    one = replace(run.results[0], dates=dates)
    assert text in portbench.stage_note(portbench.BenchmarkIndex.of(replace(run, results=[one])))


def test_an_episode_without_a_history_says_so():
    run = runs.two()
    made = portbench.render_benchmark(replace(run, results=[one for one in run.results if one.model != "literal"]))
    assert "No history: this episode was not run to its end." in words(made["scores.html"])


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_shows_prompt_reply_truth_arithmetic_and_what_could_not_be_read():
    page = said("eight", "episodes/alder-conservative-normal.html")
    for text in (
        "S1: Market interpretation", "Score 0.512", "As of 2024-03-01", '{"SPY": 0.5, "TLT": -0.3}',
        "1 − 0.235 / 2 = 0.512; 0.235 is the mean error over 14 instruments", "4 of 14 right = 0.512",
        "0.5 × 0 (the same alarm)", "traded 0.300 of the portfolio, the oracle 0.400", "TE0 7.1 % 100.0 %",
        "Read in part: 3 of 81 instruments were not named", "Could not be read: weights sum to 1.4", "1 February 2024",
        "Computed from the weights; the model is not asked.", "in the call log under the key kkkk",
    ):  # fmt: skip
        assert text in page
    assert said("eight", "episodes.html").count("crypto") == 0
    assert len([path for path in rendered("eight") if path.startswith("episodes/")]) == len(EIGHT.run.results)


def test_a_long_episode_is_cut_into_parts_that_link_to_each_other():
    first = runs.with_dates(runs.single().results[0], "word " * 1000)
    made = portbench.render_benchmark(replace(runs.single(), results=[replace(first, dates=first.dates * 40)]))
    parts = [path for path in made if path.startswith("episodes/momentum")]
    assert parts[:2] == ["episodes/momentum-conservative-normal.html", "episodes/momentum-conservative-normal-002.html"]
    assert 'href="momentum-conservative-normal-002.html"' in made[parts[0]]
    assert sum(made[path].count('<section class="sec" id="d') for path in parts) == 120
    assert max(len(made[path].encode()) for path in parts) <= 1_000_000


def test_paths_of_episodes_are_safe_and_never_the_same():
    names = ("a", "A", "a-b", "../../etc/passwd", "x" * 300, "con", "", "a\0b", "a/b", "名")
    whose = [(name, *one) for name in names for one in (("balanced", "normal"), ("balanced", "covid-2020"))]
    empty = [EpisodeResult(*one, (), np.empty(0), np.empty(0)) for one in whose]
    made = portbench.render_benchmark(replace(runs.single(), plan=runs.plan_of(names), results=empty))
    paths = [path for path in made if path.startswith("episodes/")]
    assert len({path.lower() for path in paths}) == 2 * len(names)
    assert all(re.fullmatch(r"episodes/[A-Za-z0-9][A-Za-z0-9._-]{0,130}\.html", path) for path in paths)
    assert not any(".." in path for path in paths)


# --- the data behind a run --------------------------------------------------------------------------------------------


def test_the_data_of_a_run_is_drawn_with_its_numbers_beside_it():
    """Figures 9 to 16: instruments, pairs, classes, histories, regimes, splits, texts."""
    made, page = rendered("eight"), said("eight", "data.html")
    for text in (
        "How many instruments are in each class?", "Which instruments move together?", "Do classes move together?",
        "How did each class move?", "In which regimes are the questions?", "How large is the whole set?",
        "How much text comes with a question?", "91 pairs", "real estate 2 instruments",
    ):  # fmt: skip
        assert text in page
    assert made["data.html"].count('class="fig both"') == 3  # a panel for each class
    lines = made["data/correlations.csv"].splitlines()
    assert lines[0].split(",")[1:4] == ["TE0", "TE1", "TE2"]
    pair = EIGHT.run.market.history.bars["close"][:96, :2]  # the months up to 2022
    assert float(lines[2].split(",")[1]) == pytest.approx(np.corrcoef((pair[1:] / pair[:-1]).T)[0, 1], abs=1e-9)
    assert lines[14].split(",")[1] == ""  # a pair that has none
    assert made["data/classes.csv"].splitlines()[0] == "day,equity,bond,real_estate"
    shown = said("eight", "snapshots.html")
    assert "Normal year 2024, 1 January 2024" in shown
    assert "Ten-year yield 4.7 percent ok" in shown
    bare = portbench.render_benchmark(replace(runs.two(), results=(), pool=()))
    assert "snapshots.html" not in bare
    assert "Which questions are asked?" not in bare["data.html"]


# --- hostile input ----------------------------------------------------------------------------------------------------


def test_what_a_model_wrote_is_cut_and_shown_as_it_is():
    page = said("hostile", next(path for path in rendered("hostile") if path.startswith("episodes/")))
    assert "{{ 7*7 }}{% raw %}" in page
    assert "more characters are not shown" in page


@cache
def usual_tags() -> set[str]:
    return {tag for html in html_of(rendered("single")).values() for tag in read(html).tags}


@given(st.text(st.characters(codec=None), max_size=60))
@settings(max_examples=25)
def test_any_text_leaves_pages_that_can_be_written_and_have_only_our_markup(text):
    """Lone surrogates, control characters, markup and template braces in every place that texts come from."""
    run = runs.single()
    one = runs.with_dates(replace(run.results[0], model=text, nav=np.empty(0)), text, text)
    dates = (runs.dated(one.dates[0].day, S1=("invalid", text)),)
    made = portbench.render_benchmark(replace(
        run, plan=runs.plan_of((text,), text, name=text, title=text), market=runs.market(text), notes=(text,),
        locked_at=text, pool=run.pool[:20], results=(replace(one, dates=dates),), baselines=(), measurements=(),
        leaderboards=(), verdicts=(), windows=runs.windows(text, text),
        answers={text: runs.answers((text,), text)[text][:2]},
    ))  # fmt: skip
    for path, html in made.items():
        html.encode()
        assert re.fullmatch(r"[A-Za-z0-9/._-]+", path)
    for html in html_of(made).values():
        outline = read(html)
        assert outline.tags.count("script") == 1
        assert set(outline.tags) <= usual_tags()
