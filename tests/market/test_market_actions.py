"""Corporate actions: inferred from factors, listed by a file, known from their ex-date, and kept on disk."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from assaymark.errors import InputError
from assaymark.market import (
    CorporateAction,
    history_of,
    open_history,
    read_manifest,
    snapshot_from_file,
    snapshot_of,
    write_snapshot,
)
from assaymark.market.history import Clock
from assaymark.market.instruments import implied_action

EX = date(2024, 3, 12)
NOW = datetime(2024, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ratio", "split", "dividend"),
    [
        (10.0, 10.0, 0.0),
        (1.5, 1.5, 0.0),
        (1 / 8, 1 / 8, 0.0),
        (0.95, 0.95, 0.0),
        (1 / (1 - 0.5 / 100), 1.0, 0.5),
        (1 / (1 - 30.0 / 100), 1.0, 30.0),
        (10 / (1 - 0.2 / 10), 10.0, 0.2),
        (1.5 / (1 - 0.6 / (100 / 1.5)), 1.5, 0.6),
        (2.5 / (1 - 0.2 / 40), 2.5, 0.2),
        (1 / 8 / (1 - 5.0 / 800), 1 / 8, 5.0),
        (1.0 + 1e-7, None, None),
    ],
    ids=[
        "ten",
        "three for two",
        "reverse",
        "odd",
        "dividend",
        "special",
        "both",
        "three for two and a dividend",
        "five for two and a dividend",
        "reverse and a dividend",
        "rounding",
    ],
)
def test_what_a_change_of_the_factor_implies(ratio, split, dividend):
    found = implied_action("A", EX, ratio, 100.0)
    if split is None:
        assert found is None
    else:
        assert (found.split, found.dividend) == (pytest.approx(split), pytest.approx(dividend))
        # the value of a holding at the last close is the same after it
        assert found.split * (100.0 / ratio) + found.split * found.dividend / 1.0 == pytest.approx(100.0, rel=0.1)


ROWS = """instrument,date,open,close,volume,split,dividend
A,2024-03-08,99,100,5,,
A,2024-03-11,101,102,5,1,0
A,2024-03-12,10.1,10,50,10,
A,2024-03-13,9.9,10,50,,0.25
B,2024-03-08,20,20,5,,
B,2024-03-11,20,20,5,,
B,2024-03-12,20,20,5,,
B,2024-03-13,20,20,5,,
"""


def made(path: Path, text: str = ROWS):
    file = path / "prices.csv"
    file.write_text(text)
    return snapshot_from_file(file, now=NOW)


def test_a_file_that_lists_actions_gets_factors_and_keeps_what_was_traded(tmp_path):
    snapshot = made(tmp_path)
    history = history_of(snapshot)
    view = history.as_of(datetime(2024, 3, 13, 22, tzinfo=UTC))
    assert view.actions() == {
        "A": (CorporateAction("A", EX, split=10.0), CorporateAction("A", date(2024, 3, 13), dividend=0.25))
    }
    wanted = [10.0 * (1 - 0.25 / 10), 10.2 * (1 - 0.25 / 10), 10.0 * (1 - 0.25 / 10), 10.0]
    assert view.prices(4).values[:, 0] == pytest.approx(wanted)
    day = Clock(history, ["A", "B"], date(2024, 3, 8), date(2024, 3, 13)).day(EX)
    assert (day.quotes["A"].open, day.quotes["A"].close) == (10.1, 10.0)
    assert day.closes[:, 0] == pytest.approx([10.0, 10.2, 10.0])
    assert day.bars["volume"][:, 0].tolist() == [50.0, 50.0, 50.0]
    assert not history.unstated


def test_an_action_is_known_from_its_ex_date_on(tmp_path):
    history = history_of(made(tmp_path))
    assert history.as_of(datetime(2024, 3, 11, 22, tzinfo=UTC)).actions() == {}
    assert [one.ex_date for one in history.as_of(datetime(2024, 3, 12, 22, tzinfo=UTC)).actions()["A"]] == [EX]
    day = Clock(history, ["A"], date(2024, 3, 8), date(2024, 3, 13)).day(date(2024, 3, 11))
    assert (day.quotes["A"].close, day.closes[-1, 0]) == (102.0, pytest.approx(102.0))


def test_actions_and_traded_prices_go_through_disk_and_a_cache(tmp_path):
    snapshot = made(tmp_path)
    write_snapshot(tmp_path / "there", snapshot)
    assert read_manifest(tmp_path / "there").files["actions"].rows == 2
    moment = datetime(2024, 3, 13, 22, tzinfo=UTC)
    first, again = (open_history(tmp_path / "there").as_of(moment) for _ in range(2))
    copy = history_of(snapshot_of(history_of(snapshot), "copy", snapshot.origin)).as_of(moment)
    assert first.digest() == again.digest() == copy.digest()
    assert first.actions() == again.actions() == copy.actions() != {}


def test_a_file_without_a_word_on_adjustment_says_nothing(tmp_path):
    text = "\n".join(line.rsplit(",", 2)[0] for line in ROWS.splitlines())
    snapshot = made(tmp_path, text)
    assert history_of(snapshot).unstated == {"A", "B"}
    write_snapshot(tmp_path / "there", snapshot)
    assert open_history(tmp_path / "there").unstated == open_history(tmp_path / "there").unstated == {"A", "B"}
    assert "actions" not in read_manifest(tmp_path / "there").files


def test_no_price_of_a_bar_is_below_zero(tmp_path):
    with pytest.raises(InputError, match=r"A, 2024-03-11, open: a price must be positive \(got -101\)"):
        made(tmp_path, ROWS.replace("A,2024-03-11,101,", "A,2024-03-11,-101,"))


@pytest.mark.parametrize(
    ("cell", "words"), [("-10,", "prices.csv: row 3, split: must be above 0"), (",-1", "row 3, dividend: must be 0 or")]
)
def test_actions_that_cannot_be_are_refused(tmp_path, cell, words):
    with pytest.raises(InputError, match=words):
        made(tmp_path, ROWS.replace("50,10,", f"50,{cell}"))


@pytest.mark.parametrize(
    ("split", "dividend", "words"),
    [(-10.0, 0.0, "actions, split: must be positive"), (1.0, -1.0, "actions, dividend: must not be negative")],
)
def test_a_snapshot_with_actions_that_cannot_be_is_no_store(tmp_path, split, dividend, words):
    snapshot = made(tmp_path)
    known = int(datetime(2024, 3, 12, 21, tzinfo=UTC).timestamp())
    wrong = replace(history_of(snapshot), actions=((known, CorporateAction("A", EX, split, dividend)),))
    with pytest.raises(InputError, match=words):
        history_of(snapshot_of(wrong, "wrong", snapshot.origin))
    stranger = replace(wrong, actions=((known, CorporateAction("Z", EX, 2.0)),))
    with pytest.raises(InputError, match="actions, Z: is in no table of instruments"):
        history_of(snapshot_of(stranger, "wrong", snapshot.origin))


def test_factors_that_count_forward_imply_the_same(tmp_path):
    backward = "instrument,date,close,adj_factor\nA,2024-03-11,1000,0.1\nA,2024-03-12,101,1\nA,2024-03-13,102,1\n"
    forward = backward.replace(",0.1\n", ",1\n").replace("101,1\n", "101,10\n").replace("102,1\n", "102,10\n")
    found = []
    for text in (backward, forward):
        view = history_of(made(tmp_path, text)).as_of(datetime(2024, 3, 13, 22, tzinfo=UTC))
        found.append([(one.split, one.dividend, one.ex_date) for one in view.actions()["A"]])
        returns = np.diff(np.log(view.prices(3).values[:, 0]))
        assert returns == pytest.approx(np.log([1.01, 102 / 101]))
    assert found[0] == found[1] == [(10.0, 0.0, EX)]
