"""Decisions of agents, the fact check of their sentences, and what does not reconcile, in the words of a page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_season import made_catalogue, made_season, step

from assaymark.agents import NOT_USABLE, REJECTED
from assaymark.claims import languages
from assaymark.judging import StepRecord
from assaymark.portfolio import Mismatch, broker
from assaymark.records import Action, ActionKind, EvidenceState, RationaleKind
from assaymark.report import environment, inline, plain
from assaymark.report import season as season_pages
from assaymark.report.season import decisions
from assaymark.text import clean
from assaymark.workflow import tracks

ROW = ("2026-01-05", "Alder", "r", 1)
FILL = tracks.SeasonFill(*ROW, "NVX", -4.0, 101.5, 0.4)
REFUSAL = tracks.SeasonRejection(*ROW, "ORL", "beyond-cash", "Buying 40 needs 9,000.")
HOLD = Action(instrument="NVX", kind="hold")
TRADED, REFUSED, SILENT, UNFILLED, QUIET, WRONG = decisions.FILTERS
TEXTS = st.tuples(st.sampled_from(get_args(RationaleKind)), st.text(max_size=80))
ORDERS = st.builds(Action, instrument=st.text(max_size=12), kind=st.sampled_from(get_args(ActionKind)),
                   quantity=st.none() | st.floats(0, 1e6))  # fmt: skip
STEPS = st.builds(
    step, st.just(1), st.just("2026-01-05"), orders=st.lists(ORDERS, max_size=4), texts=st.lists(TEXTS, max_size=3),
    fills=st.sampled_from([(), (FILL,), (FILL, replace(FILL, kind="delisted", price=None))]),
    rejections=st.sampled_from([(), (REFUSAL,)]),
    flags=st.sets(st.sampled_from([*NOT_USABLE, REJECTED, "replayed"])).map(tuple),
    missing=st.sampled_from([(), ("timed out",)]), seconds=st.none() | st.floats(0, 900),
    nav=st.none() | st.floats(-1e6, 1e9), mismatches=st.sampled_from([(), ("Cash 1 is stated.",)]),
)  # fmt: skip
PANEL = ("North-J", "Strand-J", "Quay-J")
STATES = (*get_args(EvidenceState), None)
LINES = st.builds(
    season_pages.SeasonClaimLine, number=st.integers(1, 9), day=st.just("2026-01-05"), quote=st.text(max_size=30),
    saw=st.text(max_size=9), numbers=st.sampled_from(STATES), rule=st.sampled_from(["", "row-labelled", "unheard of"]),
    judges=st.dictionaries(
        st.sampled_from(PANEL), st.sampled_from(["supported", "contradicted", "not_verifiable", "derivable"])
    ),
)  # fmt: skip
KINDS, PLACES = get_args(broker.MismatchKind), get_args(broker.Where)
NUMBERS = st.floats(-1e9, 1e9).map(lambda value: round(value, 4) + 0.0)
MISMATCHES = st.builds(
    Mismatch, step=st.just("day 2"), kind=st.sampled_from(KINDS), stated=NUMBERS, recomputed=NUMBERS,
    symbol=st.from_regex(r"[A-Z0-9.: -]{0,8}", fullmatch=True).map(str.strip), where=st.sampled_from(PLACES),
)  # fmt: skip
ENGLISH, GERMAN = (season_pages.Language(made_catalogue(language)) for language in ("en", "de"))
RUN = made_season(1, 2)


def book_of(*, steps=(), lines=(), run=RUN) -> season_pages.AgentIndex:
    if steps or lines:
        run = replace(RUN, steps={"Alder": tuple(steps)}, ledger={"Alder": tuple(lines)})
    return season_pages.AgentIndex.of(season_pages.SeasonIndex.of(run, ENGLISH), run.plan.agents[0])


def card(step: StepRecord) -> str:
    """A decision as its page shows it."""
    group = decisions.decision_group(book_of(steps=(step,)), step)
    return str(environment().filters["markup"](group))


def rows_of(lines):
    table = decisions.ledger_table(book_of(lines=lines), lines, {1: "agents/Alder/decisions.html#d1"}, "rows")
    return table.rows, {key: int(n) for key, _, n in table.filters}


def row_of(**values):
    line = season_pages.SeasonClaimLine(
        **{"number": 1, "day": "d", "quote": "q", "saw": "s", "numbers": "supported"} | values
    )
    ((row,), _) = rows_of((line,))
    return row


def one(**values) -> str:
    return inline(row_of(**values).cells)


def test_every_fixed_word_is_in_every_language():
    known = {
        "refusal": get_args(broker.Reason), "text": get_args(RationaleKind), "flag": (*NOT_USABLE, REJECTED),
        "filter": decisions.FILTERS, "claim_state": [state or decisions.NO_NUMBER for state in STATES],
        "mismatch": KINDS, "mismatch.where": [where.replace(" ", "-") for where in PLACES if where],
    }  # fmt: skip
    for language in languages():
        words = season_pages.Language(made_catalogue(language))
        for group, names in known.items():
            assert all(words.has(f"model.{group}.{name.replace('-', '_')}") for name in names), (language, group)


# --- decisions --------------------------------------------------------------------------------------------------------


@given(STEPS)
def test_a_decision_is_found_by_all_that_came_of_it_and_its_size_is_about_its_bytes(step):
    keys = decisions.decision_keys(step)
    assert list(keys) == [key for key in decisions.FILTERS if key in keys]
    assert (TRADED in keys, WRONG in keys) == (bool(step.fills), bool(step.mismatches))
    assert (REFUSED in keys) == (bool(step.rejections) or REJECTED in step.decision.flags)
    assert len({*keys} & {UNFILLED, QUIET}) == (not {*keys} & {TRADED, REFUSED, SILENT})
    assert QUIET not in keys or not decisions.order_count(step)
    assert UNFILLED not in keys or decisions.order_count(step)
    assert (SILENT in keys) == bool({*NOT_USABLE} & {*step.decision.flags})
    # Generous for empty cards, and never so small that a page of them could pass a megabyte.
    assert len(card(step).encode()) < 1.6 * decisions.decision_bytes(step)


@given(st.lists(STEPS, min_size=1, max_size=6))
def test_buttons_count_the_cards_that_they_show(steps):
    listing = decisions.decision_listing(book_of(steps=steps), steps)
    buttons = {key: int(n) for key, _, n in listing.filters}
    assert buttons.pop("") == len(steps)
    keys = [{one.key, *one.also.split()} for one in listing.items]
    assert buttons == {key: n for key in decisions.FILTERS if (n := sum(key in one for one in keys))}


@pytest.mark.parametrize(
    ("words", "more", "after", "said"),
    [
        (ENGLISH, 1, None, "Buy 10 NVX, 5 ORL; sell 2.5 TPL; fills at the next open"),
        (ENGLISH, 0, None, "Buy 10 NVX, 5 ORL; sell 2.5 TPL; not filled, because the season has ended"),
        (ENGLISH, 1, 9.0, "Buy 10 NVX, 5 ORL; sell 2.5 TPL; no fill is recorded"),
        (GERMAN, 1, None, "Kauf: 10 NVX, 5 ORL; Verkauf: 2,5 TPL; wird zur nächsten Eröffnung ausgeführt"),
        (GERMAN, 0, None, "Kauf: 10 NVX, 5 ORL; Verkauf: 2,5 TPL; nicht ausgeführt, weil die Saison zu Ende ist"),
    ],
)
def test_orders_that_wait_for_the_next_day_are_said_as_given(words, more, after, said):
    orders = [Action(instrument=name, kind=kind, quantity=units) for name, kind, units in (
        ("NVX", "buy", 10.0), ("TPL", "sell", 2.5), ("ORL", "buy", 5.0),
    )]  # fmt: skip
    run = replace(RUN, planned=RUN.days + more)
    given, held = (step(1, "2026-01-05", orders=made, nav=after) for made in (orders, [HOLD]))
    index = season_pages.SeasonIndex.of(run, words)
    assert decisions.trades_words(index, given) == said
    assert decisions.trades_words(index, held) == words.word("filter", QUIET)


def test_the_value_beside_a_decision_says_of_when_it_is():
    valued = step(1, "2026-01-05", nav=101_000.0)
    for run, said in ((RUN, "at the next close: 101,000"), (replace(RUN, source="an arena"), "as recorded: 101,000")):
        own, other = replace(run, steps={"Alder": (valued,)}), "as recorded" if run is RUN else "next close"
        text = str(environment().filters["markup"](decisions.decision_group(book_of(run=own), valued)))
        assert said in text
        assert other not in text


def test_the_fact_check_counts_numbers_and_quotations():
    line = season_pages.SeasonClaimLine(1, "2026-01-05", "Up 2.00% and 3.00%.", "", "supported")
    said = decisions.ledger_answer(book_of(lines=[replace(line, which="2.00%"), replace(line, which="3.00%")]))
    assert said == "Of 2 numbers and quotations that can be checked, by arithmetic: 2 supported."


def test_every_kind_of_order_has_words_and_those_too_many_are_counted():
    index = season_pages.SeasonIndex.of(replace(RUN, planned=RUN.days + 1), ENGLISH)
    kinds = [kind for kind in get_args(ActionKind) if kind not in ("hold", "no_trade")]
    for kind in kinds:
        one = step(1, "2026-01-05", orders=[Action(instrument="NVX", kind=kind, weight=0.1)])
        assert decisions.trades_words(index, one).endswith(" NVX 10.0\xa0%; fills at the next open")
    six = step(1, "2026-01-05", orders=[Action(instrument=kind, kind=kind) for kind in kinds])
    assert decisions.trades_words(index, six).endswith("; 2 more; fills at the next open")


def test_the_newest_decision_is_first_and_the_section_counts_days():
    book = book_of(run=made_season(1, 61))
    (newest,) = decisions.list_pages(book.season, book.path, "decisions", book.steps[:9]).values()
    assert [step.number for step in newest] == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    silent = sum(bool(step.decision.flags[-1:] == ("no-answer",)) for step in book.steps)
    assert decisions.decisions_answer(book) == f"61 decisions. With a trade: 61. Without a usable answer: {silent}."


@pytest.mark.parametrize(
    ("values", "says", "silent"),
    [
        ({"rejections": (REFUSAL,)}, ("<b>ORL</b>: more than the cash", "shown: “Buying 40 needs 9,000.”"), ()),
        ({"fills": (FILL,)}, ("sold 4 NVX at 101.50, cost 0.40",), ()),
        ({"fills": (replace(FILL, quantity=1234.5678, cost=0.0),)}, ("bought 1,234.57 NVX at 101.50<",), ()),
        ({"fills": (replace(FILL, price=None),)}, ("sold 4 NVX, price not recorded",), ()),
        ({"fills": (replace(FILL, kind="delisted", quantity=-2),)}, ("paid out 2 NVX, which ended at 101.50",), ()),
        ({"flags": ("no-answer",), "missing": ("the provider timed out",)},
         ("No usable answer. The agent holds.", "the provider timed out", 'data-k="no-answer"'), ()),
        ({"texts": (("summary", "short"),)}, (), ("<details",)),
        ({"texts": (("summary", "word " * 200),)}, ("<details",), ()),
        ({"texts": (("summary", "x" * 7500),)}, ("1500 more characters are not shown.",), ()),
        ({"texts": (("summary", "first\r\n\r\n  second"),)}, ("first\nsecond",), ()),
        ({"texts": (("risk", "a"),)}, (), ("Risk",)),
        ({"texts": (("risk", "a"), ("risk", "b"), ("summary", "c"), ("risk", "d"))},
         ('<p class="hd">Risk</p>', '<p class="hd">Summary</p>'), ()),
        ({"orders": (Action(instrument="", kind="no_trade"),)}, ("No order",), ("no_trade",)),
        ({"orders": (HOLD,)}, ("No order", "hold NVX"), ()),
        ({"orders": (HOLD, Action(instrument="ORL", kind="buy", quantity=2.5))}, ("hold NVX", "buy ORL, quantity 2.5"),
         ("No order",)),
    ],
)  # fmt: skip
def test_a_card_says_what_was_decided_and_what_came_of_it(values, says, silent):
    html = card(step(3, "2026-01-07", **values))
    assert all(text in html for text in says)
    assert not any(text in html for text in silent)
    if len(values.get("texts", ())) > 1:  # kinds of texts are named where there are several, each once in a row
        assert [html.count(text) for text in says] == [2, 1]


# --- the fact check ---------------------------------------------------------------------------------------------------


@given(st.lists(LINES, min_size=1, max_size=12))
def test_buttons_and_counts_are_those_of_the_rows(lines):
    rows, buttons = rows_of(lines)
    assert buttons.pop("") == len(lines)
    assert buttons == Counter(key for row in rows for key in (row.key, row.also) if key)
    assert buttons.get(decisions.DIFFER, 0) == sum(line.disagree for line in lines)
    book = book_of(lines=lines)
    assert [*decisions.list_pages(book.season, book.path, "ledger", lines).values()] == [tuple(lines[::-1])]
    *_, table = decisions.ledger_head(book)
    assert sum(int(row[1]) for row in table.rows) == len(lines)
    for at, judge in enumerate(table.columns[2:], 2):
        assert sum(int(row[at]) for row in table.rows) == sum(judge in line.judges for line in lines)


@pytest.mark.parametrize(("numbers", "judges", "differs"), [
    ("supported", {"North-J": "contradicted"}, True),
    ("supported", {"North-J": "supported", "Quay-J": "not_verifiable"}, True),
    ("supported", dict.fromkeys(PANEL, "supported"), False), ("derivable", {"North-J": "supported"}, False),
    ("in_context", {"North-J": "not_verifiable"}, False), ("not_found", {"North-J": "supported"}, True),
])  # fmt: skip
def test_a_disagreement_is_underlined_and_nothing_else(numbers, judges, differs):
    assert row_of(numbers=numbers, judges=judges).style == ("diff" if differs else "")


def test_a_row_marks_its_number_names_who_says_so_and_leads_to_its_decision():
    said = row_of(quote="Cash is 500, so 20 units fit.", which="20", start=16).cells[1]
    assert [str(part) for part in said] == ["“Cash is 500, so ", "20", " units fit.”"]
    assert "<b>20</b>" in inline(said)
    assert "North-J" not in one(judges=dict.fromkeys(PANEL, "supported"))
    assert "North-J" in one(judges={"North-J": "supported"})
    split = one(judges={"North-J": "supported", "Strand-J": "contradicted", "Quay-J": "supported"})
    assert "North-J, Quay-J" in split
    assert split.count("#g-contradicted") == 1
    assert row_of(numbers=None).key == decisions.NO_NUMBER
    html = one(rule="own-labelled, return-1w, one-cell-differs", saw="own:quantity; NVX close 18.4; own:<b>")
    for text, cells in (
        ("not checked", one()), ("no field seen", one(saw="")), ("no number", one(numbers=None)),
        ("quotation not found in the reasons", one(numbers=None, rule="misquoted")),
        ("return over 15 days, same row, field named, unheard of", one(rule="return-15d, row-labelled, unheard of")),
        ("its own order, return over 1 week, one cell differs", html),
        ("its own figure: quantity; NVX close 18.4; its own figure: &lt;b&gt;", html),
        ('href="agents/Alder/decisions.html#d1"', one(number=1)),
    ):  # fmt: skip
        assert text in cells
    assert "<a " not in one(number=7)


def test_the_notes_say_what_was_measured():
    run = made_season(2, 20)
    *notes, _ = decisions.ledger_head(book_of(run=run))
    text = " ".join(plain(one.body) for one in notes).replace("\xa0", " ")
    assert "The material bears out 93.0 % of 110 numbers. Of 90 numbers compared with single values" in text
    assert "93.0 % match one, and by chance alone 8.0 % would; beyond chance the share is 0.92, where" in text
    differ = sum(line.disagree for line in run.ledger["Alder"])
    assert f"The layers disagree on {differ} of {len(run.ledger['Alder'])} claims" in text


# --- what does not reconcile ------------------------------------------------------------------------------------------


@given(MISMATCHES)
def test_every_sentence_of_a_reconciliation_is_understood(mismatch):
    sentence = str(mismatch).removeprefix(f"{mismatch.step}: ")
    english, german = (decisions.mismatch_words(words, sentence) for words in (ENGLISH, GERMAN))
    assert clean(sentence) not in (english, german)
    assert "angegeben" in german
    assert " ".join(mismatch.symbol.split()) in german
    for value in (mismatch.stated, mismatch.recomputed):
        written = f"{value:.10g}".replace("-", "\N{MINUS SIGN}")
        assert written in english
        assert written.replace(".", ",") in german


@given(st.text(max_size=60))
def test_any_other_text_is_shown_as_it_is_and_safe(text):
    assert decisions.mismatch_words(ENGLISH, f"odd: {text}") == clean(f"odd: {text}")


def test_a_move_that_no_action_explains_is_said_in_every_language():
    moved = "price of A on 2024-03-12: 101.5 after 1000 on 2024-03-11, "
    said = "The price of A went from 1000 on 2024-03-11 to 101.5 on 2024-03-12, which no split or dividend"
    assert decisions.mismatch_words(ENGLISH, f"{moved}explained by no action").startswith(said)
    assert "was kein Split" in decisions.mismatch_words(GERMAN, f"{moved}explained by no action")
    acted = decisions.mismatch_words(ENGLISH, f"{moved}not explained by A: split of 10 for 1, ex-date 2024-03-12")
    assert acted.endswith("does not explain (A: split of 10 for 1, ex-date 2024-03-12).")
