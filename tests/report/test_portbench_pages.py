"""Pages of a benchmark: what they hold, what they withhold, and that nothing a model wrote becomes markup."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html import unescape

import bench_runs as runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outline import html_of, read, words

from assaymark.claims import BenchRules, Board, Leaderboard, decide_benchmark
from assaymark.report import Group, plain
from assaymark.report.portbench import BenchmarkIndex, EpisodeTrace, render_benchmark
from assaymark.report.portbench.first import sentences, tier_cuts
from assaymark.report.portbench.levels import (
    claim_cards,
    design_note,
    said_levels,
    stage_note,
    stage_tables,
    withheld_groups,
)
from assaymark.report.portbench.records import episode_paths, questions_section
from assaymark.report.portbench.sections import every_measurement, signals_figure, windows_table
from assaymark.text import NBSP, number

EIGHT = BenchmarkIndex.of(runs.eight())
RUNS = ("eight", "two", "single", "questions_only", "pipeline_only", "hostile", "empty")


@pytest.fixture(scope="module")
def pages():
    made = {}

    def of(name: str):
        if name not in made:
            made[name] = render_benchmark(getattr(runs, name)())
        return made[name]

    return of


@pytest.mark.parametrize("name", RUNS)
def test_every_page_is_well_formed_has_one_h1_and_links_that_lead_somewhere(pages, name):
    made = pages(name)
    ids = {path: set(read(html).ids) for path, html in html_of(made).items()}
    for path, html in html_of(made).items():
        outline = read(html)
        assert len(outline.ids) == len(set(outline.ids)), path
        assert outline.tags.count("h1") == 1, path
        folder = path.rpartition("/")[0]
        for link in outline.links:
            target, _, anchor = link.partition("#")
            found = path if not target else target.removeprefix("../") if folder else target
            assert found in made, (path, link)
            assert not anchor or anchor in ids[found], (path, link)


@pytest.mark.parametrize("name", RUNS)
def test_pages_stay_within_the_sizes_and_hold_no_nan(pages, name):
    made = pages(name)
    for html in made.values():
        assert len(html.encode()) <= 1_000_000
    assert len(made["index.html"].encode()) < 400_000
    assert "nan" not in re.findall(r"[A-Za-z]+", words(made["index.html"]).lower())


def test_twelve_models_stay_within_the_sizes():
    made = render_benchmark(runs.twelve())
    assert len(made["index.html"].encode()) < 400_000
    assert max(len(html.encode()) for html in made.values()) <= 1_000_000


def test_equal_runs_give_equal_bytes(pages):
    again = runs.made(("literal", "momentum"))
    assert again is not runs.two()
    assert render_benchmark(again) == pages("two")


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
    book = BenchmarkIndex.of(runs.eight())
    for group, board in zip(stage_tables(book), book.run.leaderboards, strict=False):
        tiers = [one for one in tiers_of(group) if not one[0].startswith("Ceiling")]
        assert [tuple(row[0].partition("rank")[0] for row in rows) for _, rows in tiers] == [*board.tiers]
        for _, rows in tiers:
            assert [row[0] for row in rows] == sorted(row[0] for row in rows)
            for row in rows:
                assert ("(" in row[7]) == (len(rows) == 1) != ("rank" in row[0])
    heads = [head for head, _ in tiers_of(stage_tables(book)[0])]
    assert [head.partition(" cannot")[0] for head in heads[:2]] == ["Rank 1 to 4", "Rank 5 to 7"]
    assert heads[2].startswith("Rank 8")
    assert all(head.endswith("Supported") for head in heads[:3])
    assert {row[0].partition("rank")[2] for row in tiers_of(stage_tables(book)[0])[0][1]} == {" 1 to 4 of 8"}


def test_a_board_says_how_it_is_tested_what_depends_and_what_can_be_detected():
    book = BenchmarkIndex.of(runs.eight())
    note = stage_tables(book)[0].blocks[-1].body
    assert note.startswith("Differences: moderated cluster t. Autocorrelation of neighbouring clusters: ")
    assert "Smallest detectable difference (power 80" in note
    item = book.one("order.autocorrelation", dimension="all")
    serial = replace(item, detail={**item.detail, "order": "consecutive", "lags": [0.31, 0.2, 0.1, 0.05]})
    turned = BenchmarkIndex.of(replace(book.run, measurements=(serial,)))
    assert "Autocorrelation of clusters at lags 1 to 4: 0.31, 0.20, 0.10, 0.05" in design_note(turned, "all")


def test_the_score_of_a_model_that_shares_its_tier_is_not_on_the_page(pages):
    """It would rank the models of the tier; only its interval is shown."""
    run = runs.eight()
    index = pages("eight")["scores.html"]
    members = [name for tier in run.leaderboards[0].tiers if len(tier) > 1 for name in tier]
    for name in members:
        row = re.search(rf'<tr><th scope="row">{name}<.*?</tr>', index, re.S).group()
        level = run.leaderboards[0].levels[name]
        assert f"{number(level.low)} to {number(level.high)}" in row
        assert f">{number(level.value)}<" not in row
        assert "h10v10" not in row
    alone = re.search(r'<tr><th scope="row">fir<.*?</tr>', index, re.S).group()
    assert f">{number(run.leaderboards[0].levels['fir'].value)}</a> (" in alone
    assert "h10v10" in alone


def test_measurements_of_unsupported_differences_and_shared_tiers_have_no_number():
    book = BenchmarkIndex.of(runs.eight())
    rows = {row.id: row for row in every_measurement(book)}
    for item in book.by_name["contrast"]:
        level = book.pair_level(item.labels["dimension"], item.labels["high"], item.labels["low"])
        row = rows[item.id]
        assert (row.value == "not shown: no supported order") == (level == "no-claim")
        if level == "no-claim":
            names = sorted((item.labels["high"], item.labels["low"]))
            assert f"agents {names[0]} and {names[1]}" in row.about
            assert "high" not in row.about
            assert row.interval == ""
    for board in book.run.leaderboards:
        for tier in board.tiers:
            for name in tier:
                item, value = board.levels[name], rows[board.levels[name].id].value
                hidden = f"{number(item.low)} to {number(item.high)}, its interval; the model shares its tier"
                assert (value == hidden) == (len(tier) > 1)
    assert rows[book.by_name["bench.sharpe.contrast"][0].id].value == "not shown: the difference is not supported"


def test_only_licensed_sentences_are_set_in_serif(pages):
    said = {
        f"“{v.claim.statement.replace(' %', NBSP + '%')}”".replace("'", "’")
        for v in runs.eight().verdicts
        if v.publication_level != "no-claim"
    }
    cuts = {f"“{quote.sentence}”" for board in runs.eight().leaderboards for quote, _ in tier_cuts(EIGHT, board)}
    for path, html in pages("eight").items():
        quotes = {text for text in read(html).serif if text.strip()}
        assert quotes <= (said | cuts if path == "index.html" else said), path
    assert {text for text in read(pages("eight")["index.html"]).serif if text.strip()}


def test_a_cut_between_tiers_is_a_sentence_only_where_every_order_across_it_is():
    board = EIGHT.run.leaderboards[0]
    cuts = list(tier_cuts(EIGHT, board))
    assert len(cuts) == len(board.tiers) - 1
    quote, why = cuts[0]
    above, below = board.tiers[0], [name for tier in board.tiers[1:] for name in tier]
    assert quote.sentence.startswith(f"{', '.join(above[:-1])} and {above[-1]} score above the other four models on ")
    assert why == f"Every order across this cut is supported: {len(above) * len(below)} pairs."
    pair = next(v for v in EIGHT.of_kind("above") if v.claim.subjects == (above[0], below[0]))
    rest = tuple(v for v in EIGHT.run.verdicts if v is not pair)
    for gone, left in ((rest, 1), ((*rest, replace(pair, publication_level="no-claim")), 1)):
        assert len(list(tier_cuts(BenchmarkIndex.of(replace(EIGHT.run, verdicts=gone)), board))) == left


def test_a_sentence_about_built_in_models_is_never_copied_without_saying_so():
    run = runs.eight()
    built_in = runs.plan_of(runs.EIGHT, "reference/portbench-literal")
    for plan, says in ((built_in, "The models are rule-based stand-ins."), (run.plan, "")):
        found = render_benchmark(replace(run, plan=plan))
        copies = [
            unescape(text)
            for path in ("index.html", "claims.html")
            for text in re.findall(r'data-copy="(“[^"]*)"', found[path])
        ]
        assert copies
        assert all(("stand-ins" in text) == bool(says) and says in text for text in copies)
        assert all(f"(assaymark: {run.title}, 20 November 2026, plan {run.plan_hash})" in text for text in copies)


def test_a_withheld_order_is_named_without_its_direction(pages):
    run = runs.eight()
    everything = " ".join(words(html) for path, html in pages("eight").items() if path.startswith("claims"))
    kept = [v for v in run.verdicts if v.publication_level == "no-claim" and v.claim.asserts_order]
    assert kept
    for verdict in kept:
        assert verdict.claim.statement not in everything
    pairs = [v for v in kept if v.claim.id.startswith("above")]
    one, two = sorted(pairs[0].claim.subjects)
    assert f"Any ranking of {one} and {two} on" in everything
    assert not any(v.claim.id in page for v in pairs for page in pages("eight").values())


def test_every_verdict_has_one_card():
    run = runs.eight()
    cards = claim_cards(BenchmarkIndex.of(run))
    assert len(cards) == len(run.verdicts)
    assert Counter(card.level for card in cards) == Counter(verdict.publication_level for verdict in run.verdicts)


def test_the_tallies_of_the_first_page_count_its_sentences(pages):
    for name in ("eight", "two", "single", "questions_only"):
        book, index = BenchmarkIndex.of(getattr(runs, name)()), words(pages(name)["index.html"])
        shown = Counter(quote.level for quote, _ in sentences(book))
        for level, said in (("headline", "supported"), ("qualified", "only with a condition")):
            assert f" {shown[level]} {said}" in index
        assert f" {len(withheld_groups(book))} not supported" in index
        assert shown.total() <= 4


def test_withheld_claims_are_few_lines_with_numbers():
    levels = list(said_levels(EIGHT))
    groups = levels[2].groups
    assert [group.text for group in groups] == [
        "Any further ranking of the models.",
        "That any model beats equal weight.",
        "Whether questions and pipeline rank the models alike.",
    ]
    assert "All profiles, 9 of 28" in groups[0].why[0][0]
    assert groups[1].why[0][0] == "All 24 Sharpe differences have intervals that contain zero. "
    assert sum(group.covers for group in groups) == sum(
        verdict.publication_level == "no-claim" for verdict in runs.eight().verdicts
    )


def test_a_model_that_ranks_first_is_the_first_sentence():
    names = ("alder", "dogwood", "elm", "gorse")  # the others are .06 below the first
    headline, *_ = said_levels(BenchmarkIndex.of(runs.made(names)))
    assert headline.shown[0].sentence == "alder ranks first of the four models on CEPS over all profiles."
    quotes = [claim.sentence for claim in (*headline.shown, *headline.more)]
    assert any("conservative profile" in quote for quote in quotes)


def test_one_model_has_no_order_and_two_have_one_pair(pages):
    index = words(pages("single")["index.html"]) + words(pages("single")["scores.html"])
    assert "One model no other model to compare it with" in index
    assert "scores above" not in index
    assert "stays within a drawdown" in index or "falls by more than" in index
    assert "All 2 cannot be ranked" in words(pages("two")["scores.html"])


def test_a_group_without_verdicts_has_no_position():
    run = runs.eight()
    bare = BenchmarkIndex.of(replace(run, verdicts=()))
    tiers = [one for one in tiers_of(stage_tables(bare)[0]) if not one[0].startswith("Ceiling")]
    assert tiers
    for head, rows in tiers:
        assert head.endswith("Not supported")
        assert not any("(" in row[7] for row in rows)
        assert {row[8] for row in rows} == {"not decided"}


def test_a_board_that_is_not_of_a_profile_is_no_stage_table():
    run = runs.eight()
    other = Leaderboard(Board("else", "something", "f"), (), {}, (), {})
    assert len(stage_tables(BenchmarkIndex.of(replace(run, leaderboards=(*run.leaderboards, other))))) == 4


def test_questions_come_in_tiers_and_only_what_was_asked_has_a_column(pages):
    run = runs.eight()
    *tables, further = [one for one in questions_section(BenchmarkIndex.of(run)).blocks if isinstance(one, Group)]
    full, _, difference = tables
    board = next(one for one in run.leaderboards if one.board.name == "questions")
    assert [tuple(re.split(" ?rank", row[0])[0] for row in rows) for _, rows in tiers_of(full)] == [*board.tiers]
    assert [len(one.blocks[0].heads) for one in tables] == [9, 3, 3]
    cells = [cell for row in difference.blocks[0].lines for cell in row.cells[1:]]
    assert {(cell.value, cell.share) for cell in cells} == {("−0.10", 0.0)}
    for _, rows in tiers_of(full):
        assert [row[-1] for row in rows] == ["0.61 (0.57 to 0.65)" if len(rows) == 1 else "0.57 to 0.65"] * len(rows)
    assert [len(one.blocks[0].heads) for one in further.blocks] == [3, 5]
    assert "not measured" not in words(pages("eight")["index.html"])


def test_calm_against_stress_shows_intervals_and_no_point(pages):
    book = BenchmarkIndex.of(runs.eight())
    table = windows_table(book)
    assert [row[0] for row in table.rows] == list(book.names)
    for name, *cells in table.rows:
        for strip, said, kind in ((*cells[:2], "normal"), (*cells[2:], "stress")):
            item = book.one("bench.stage", model=name, profile="all", stage="CEPS", windows=kind)
            assert said == f"{number(item.low)} to {number(item.high)}"
            assert "h10v10" not in strip
    assert windows_table(BenchmarkIndex.of(runs.questions_only())) is None
    assert signals_figure(BenchmarkIndex.of(runs.questions_only())) is None
    figure = signals_figure(BenchmarkIndex.of(runs.twelve()))
    for name in BenchmarkIndex.of(runs.twelve()).names:
        assert name[:12] in figure.wide
    assert "Does quality hold under stress?" in words(pages("eight")["scores.html"])


def test_a_score_without_an_interval_is_said_so_beside_the_calm_windows():
    run = runs.two()
    bare = tuple(
        replace(m, low=None, high=None, level=None) if m.labels.get("windows") == "stress" else m
        for m in run.measurements
        if m.labels.get("windows") != "normal" or m.labels["model"] != "literal"
    )
    rows = windows_table(BenchmarkIndex.of(replace(run, measurements=bare))).rows
    assert [plain(said) for said in rows[0][2::2]] == ["not measured", "no interval"]


# --- what is missing --------------------------------------------------------------------------------------------------


def test_a_missing_half_is_said_with_the_command_that_makes_it(pages):
    assert "assaymark bench pipeline" in words(pages("questions_only")["index.html"])
    assert "assaymark bench qa" in words(pages("pipeline_only")["index.html"])
    assert "histories.html" not in pages("questions_only")
    assert "questions.html" not in pages("pipeline_only")
    both = words(pages("empty")["index.html"])
    assert "assaymark bench pipeline" in both
    assert "assaymark bench qa" in both


def test_an_undefined_number_is_a_state_in_words():
    run = runs.single()
    broken = tuple(
        replace(m, value=None, low=None, high=None, level=None, state="undefined: no date was reached")
        if m.name in ("bench.sharpe", "bench.stage", "bench.risk_safe")
        else m
        for m in run.measurements
    )
    index = words(render_benchmark(replace(run, measurements=broken))["scores.html"])
    assert "not defined: no date was reached" in index
    assert "momentum" in index


def test_limits_are_not_decided_where_a_stress_window_was_not_run():
    run = runs.two()
    fewer = tuple(
        replace(m, detail={**m.detail, "wanted": [*m.detail["wanted"], "rates-2030"]}) if "wanted" in m.detail else m
        for m in run.measurements
    )
    decided = decide_benchmark(fewer, runs.BOARDS, BenchRules(), runs.PLAN)
    run = replace(run, measurements=fewer, leaderboards=decided.leaderboards, verdicts=decided.verdicts)
    made = render_benchmark(run)
    index = words(made["index.html"])
    assert "Whether limits are kept under stress (conservative, balanced and aggressive)." in index
    assert index.count("Whether limits are kept under stress") == 1
    assert "Not decided under the conservative profile." in index
    assert "not decided" in words(made["scores.html"])
    claims = words(made["claims.html"])
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
    decided = decide_benchmark(strong, runs.BOARDS, BenchRules(), runs.PLAN)
    book = BenchmarkIndex.of(
        replace(run, measurements=strong, leaderboards=decided.leaderboards, verdicts=decided.verdicts)
    )
    headline, _, withheld = said_levels(book)
    said = [claim.sentence for claim in (*headline.shown, *headline.more)]
    assert sum("literal beats equal weight" in quote for quote in said) == 3
    assert "That any other model or profile beats equal weight." in [group.text for group in withheld.groups]
    cards = claim_cards(book)
    assert any(
        getattr(card.blocks[0], "body", "").startswith("That momentum beats equal weight (Sharpe ratio")
        for card in cards
    )


def test_a_verdict_of_an_unknown_kind_is_a_card_and_not_a_sentence_of_the_first_screen():
    run = runs.single()
    other = replace(
        run.verdicts[0],
        publication_level="no-claim",
        claim=replace(run.verdicts[0].claim, id="else[x=1]", asserts_order=True, statement="secret"),
    )
    made = render_benchmark(replace(run, verdicts=(*run.verdicts, other)))
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
    decided = decide_benchmark(kept, [runs.BOARDS[2]], BenchRules(), runs.PLAN)
    smallest = replace(
        run, measurements=kept, verdicts=decided.verdicts, leaderboards=decided.leaderboards,
        profiles=runs.PROFILES[1:2], windows=runs.WINDOWS[:1], episodes=(), answers={},
        results=[one for one in run.results if (one.window, one.profile) == ("normal", "balanced")],
        baselines=run.baselines[:1],
    )  # fmt: skip
    made = render_benchmark(smallest)
    index = words(made["index.html"]) + words(made["scores.html"])
    for said in (
        "All 1 candidate sentence", "(the one Sharpe difference has an interval that contains zero).",
        "No stress window was run", "Does it fit the investor?", "not decided", "Balanced profile",
    ):  # fmt: skip
        assert said in index
    assert "under stress " not in index.replace("losses under stress are", "")


def test_replies_that_were_lost_are_counted_in_words():
    run = runs.single()
    for replies, said in (
        ({"ok": 3, "refused": 1, "truncated": 1}, "Of 5 replies 2 were refused or cut off"),
        ({"ok": 1}, "The one reply could be read."),
        ({}, "follow from its supported pairs."),
    ):
        assert said in stage_note(BenchmarkIndex.of(replace(run, replies=replies)))


def test_an_episode_without_a_history_says_so():
    run = runs.eight()
    made = render_benchmark(replace(run, results=[one for one in run.results if one.model != "elm"]))
    assert "No history: this episode was not run to its end." in words(made["scores.html"])


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_shows_prompt_reply_truth_arithmetic_and_what_could_not_be_read(pages):
    page = words(pages("eight")["episodes/alder-conservative-normal.html"])
    for text in (
        "S1: Market interpretation", "Score 0.512", "As of 2024-03-01", '{"SPY": 0.5, "TLT": -0.3}', "MAE = 0.450",
        "Read in part: 3 of 81 instruments were not named", "Could not be read: weights sum to 1.4", "1 February 2024",
        "Computed from the weights; the model is not asked.", "in the ledger under the key kkkk",
    ):  # fmt: skip
        assert text in page
    assert words(pages("eight")["episodes.html"]).count("crypto") == 0
    assert len([path for path in pages("eight") if path.startswith("episodes/")]) == len(runs.eight().episodes)


def test_a_long_episode_is_cut_into_parts_that_link_to_each_other():
    (first, *_) = runs.episodes(("alder",), "word " * 1000)
    long = replace(first, dates=first.dates * 40)
    made = render_benchmark(replace(runs.single(), episodes=(long,)))
    parts = [path for path in made if path.startswith("episodes/alder")]
    assert parts[:2] == ["episodes/alder-conservative-normal.html", "episodes/alder-conservative-normal-002.html"]
    assert 'href="alder-conservative-normal-002.html"' in made[parts[0]]
    assert sum(made[path].count('<section class="sec" id="d') for path in parts) == 120
    assert max(len(made[path].encode()) for path in parts) <= 1_000_000


def test_paths_of_episodes_are_safe_and_never_the_same():
    names = ("a", "A", "a-b", "../../etc/passwd", "x" * 300, "con", "", "a\0b", "a/b", "名")
    episodes = [
        EpisodeTrace(model=model, profile=profile, window="w", dates=()) for model in names for profile in ("b-c", "c")
    ]
    paths = episode_paths(episodes)
    assert len({path.lower() for path in paths}) == len(episodes)
    assert all(re.fullmatch(r"episodes/[A-Za-z0-9][A-Za-z0-9._-]{0,130}", path) for path in paths)
    assert not any(".." in path for path in paths)


# --- the data behind a run --------------------------------------------------------------------------------------------


def test_the_data_of_a_run_is_drawn_with_its_numbers_beside_it(pages):
    """Figures 9 to 16: instruments, pairs, classes, histories, regimes, splits, texts."""
    made = pages("eight")
    page = words(made["data.html"])
    for text in (
        "How many instruments are in each class?", "Which instruments move together?", "Do classes move together?",
        "How did each class move?", "In which regimes are the questions?", "How large is the whole set?",
        "How much text comes with a question?", "91 pairs", "real estate 2 instruments",
    ):  # fmt: skip
        assert text in page
    assert made["data.html"].count('class="fig both"') == 3  # a panel for each class
    lines = made["data/correlations.csv"].splitlines()
    assert lines[0].split(",")[1:4] == ["TE0", "TE1", "TE2"]
    market = runs.eight().data
    assert float(lines[2].split(",")[1]) == market.correlation[1, 0]
    assert lines[14].split(",")[1] == ""  # a pair that has none
    assert made["data/classes.csv"].splitlines()[0] == "day,equity,bond,real_estate"
    shown = words(made["snapshots.html"])
    assert "Normal year 2024, 1 March 2024" in shown
    assert "Ten-year yield 4.7 percent ok" in shown


def test_a_run_of_questions_alone_has_no_snapshot_and_one_without_a_market_no_data(pages):
    assert not {"data.html", "snapshots.html"} & pages("questions_only").keys()
    run = replace(runs.eight(), data=replace(runs.market(), snapshots=()), pool=())
    made = render_benchmark(run)
    assert "snapshots.html" not in made
    assert "What is asked?" not in made["data.html"]


# --- hostile input ----------------------------------------------------------------------------------------------------


def test_nothing_that_a_model_wrote_becomes_markup(pages):
    for path, html in html_of(pages("hostile")).items():
        outline = read(html)
        assert outline.tags.count("script") == (2 if "data-brush" in html else 1), path
        assert "img" not in outline.tags
        assert not {name for name in outline.attributes if name.startswith("on")}, path
        assert "\x1b" not in html
        assert "\u202e" not in html
    page = next(html for path, html in pages("hostile").items() if path.startswith("episodes/"))
    assert "{{ 7*7 }}{% raw %}" in words(page)
    assert "more characters are not shown" in words(page)


@cache
def usual_tags() -> set[str]:
    return {tag for html in html_of(render_benchmark(runs.single())).values() for tag in read(html).tags}


@given(st.text(st.characters(codec=None), max_size=60))
@settings(max_examples=25)
def test_any_text_leaves_pages_that_can_be_written_and_have_only_our_markup(text):
    """Lone surrogates, control characters, markup and template braces in every place that texts come from."""
    run = runs.single()
    trace = runs.episodes(("momentum",), text)[0]
    stages = (replace(runs.stage_trace("S1", text, text, text), rows=((text,),), arithmetic=(text,)),)
    plan = runs.plan_of((text,), text, name=text, title=text)
    made = render_benchmark(
        replace(
            run,
            plan=plan,
            market=text,
            notes=(text,),
            locked_at=text,
            results=(),
            baselines=(),
            episodes=(replace(trace, model=text, dates=(replace(trace.dates[0], day=text, stages=stages),)),),
            answers={text: runs.answers((text,), text)[text][:2]},
            measurements=(),
            leaderboards=(),
            verdicts=(),
            data=runs.market(text, text),
        )
    )
    for path, html in made.items():
        html.encode()
        assert re.fullmatch(r"[A-Za-z0-9/._-]+", path)
    for html in html_of(made).values():
        outline = read(html)
        assert outline.tags.count("script") == 1
        assert set(outline.tags) <= usual_tags()


def test_the_policy_lets_one_script_run_and_nothing_be_loaded(pages):
    for html in html_of(pages("eight")).values():
        assert "default-src &#39;none&#39;" in html
        assert not re.search(r'(src|href)="(https?:)?//', html)
        assert "url(http" not in html


def test_the_ceiling_stands_below_the_models_and_is_no_model(pages):
    first = words(pages("eight")["scores.html"])
    assert "Ceiling true answers at every stage" in first
    *tiers, (_, [ceiling]) = tiers_of(stage_tables(BenchmarkIndex.of(runs.eight()))[0])
    assert ceiling[1:6] == ["1.00", "1.00", "0.72", "1.00", "1.00"]
    assert all("true answers" not in row[0] for _, rows in tiers for row in rows)
