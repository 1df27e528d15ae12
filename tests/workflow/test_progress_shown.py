from __future__ import annotations

import io
import logging

from rich.console import Console

from assaymark.workflow import Piece, Shown, Within, bars, silent

NOTES = "assaymark.workflow.progress"


class Clock:
    """A clock that is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def shown_to(nobody: Console, clock: Clock) -> Shown:
    with bars(nobody) as shown:
        return Shown(shown._display, quiet=False, every_s=10.0, clock=clock)


def test_a_piece_of_work_tells_count_rate_time_left_and_cost():
    piece = Piece("asking", first=200, total=2030, began=0.0, done=200, told=0.0)
    assert piece.state(10.0, 0.0) == "200 of 2,030"  # what was there before says nothing about a rate
    piece.done = 312
    assert piece.state(10.0, 0.0) == "312 of 2,030, 11.2/s, 0:02:34 left"
    assert piece.state(10.0, 4.871) == "312 of 2,030, 11.2/s, 0:02:34 left, 4.87 USD"
    assert piece.state(0.5, 0.0) == "312 of 2,030"  # too early to tell
    piece.done = 2030
    assert piece.state(10.0, 0.001) == "2,030 of 2,030, 0.001 USD"


def test_the_log_has_the_begin_and_end_of_each_piece_and_now_and_then_a_line(caplog):
    clock, out = Clock(), io.StringIO()
    shown = shown_to(Console(file=out), clock)
    with caplog.at_level(logging.INFO, NOTES):
        for seconds, done in ((0, 0), (4, 10), (7, 20), (4, 30), (11, 70), (1, 100)):
            clock.now += seconds
            shown("asking", done, 100)
    assert [one.getMessage() for one in caplog.records] == [
        "asking: 0 of 100", "asking: 20 of 100, 1.8/s, 0:00:44 left", "asking: 70 of 100, 2.7/s, 0:00:12 left",
        "asking: 100 of 100 in 27.0 s",
    ]  # fmt: skip
    assert out.getvalue() == ""


def test_it_says_where_the_work_is():
    shown = shown_to(Console(file=io.StringIO()), Clock())
    assert shown.where() == ""
    shown("asking the judges", 312, 2030)
    assert shown.where() == " at asking the judges (312 of 2,030)"
    shown("asking the judges", 2030, 2030)
    assert shown.where() == ""


def test_lines_are_shown_unless_it_is_quiet():
    for quiet in (True, False):
        out = io.StringIO()
        with bars(Console(file=out, force_terminal=True), quiet=quiet) as shown:
            shown("asking", 1, 2)
            shown.say("a [bold]judge[/] refuses")
        for words in ("a [bold]judge[/] refuses", "asking"):
            assert (words in out.getvalue()) is not quiet


def test_the_counts_of_a_part_are_its_own_and_its_lines_and_costs_those_of_the_whole():
    whole = shown_to(Console(file=io.StringIO()), Clock())
    counts: list[tuple[int, int]] = []
    part = Within(whole, lambda done, total: counts.append((done, total)))
    part("a part", 1, 2)
    part.pay(0.0125)
    assert (whole.usd, counts) == (0.0125, [(1, 2)])
    Within(silent, lambda *_: None).pay(1.0)
