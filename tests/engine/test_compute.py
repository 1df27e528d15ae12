from __future__ import annotations

import os

import pytest

from assaymark.engine import beside


def double(value: int) -> int:
    return 2 * value


def where() -> int:
    return os.getpid()


def fail() -> None:
    raise ValueError("no such thing")


def die() -> int:
    """Kill the process it runs in, unless that is the test's own."""
    if os.environ.get("ASSAYMARK_TEST_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), 9)
    return 7


def test_the_result_is_that_of_a_plain_call():
    with beside(double, 21) as result:
        assert result() == 42


def test_it_runs_in_another_process_or_here_as_asked():
    with beside(where) as result:
        assert result() != os.getpid()
    with beside(where, processes=False) as result:
        assert result() == os.getpid()


@pytest.mark.parametrize("processes", [True, False])
def test_an_error_arrives_where_the_result_is_asked_for(processes):
    with beside(fail, processes=processes) as result, pytest.raises(ValueError, match="no such thing"):
        result()


def test_a_process_that_dies_is_replaced_by_a_call_here(monkeypatch):
    monkeypatch.setenv("ASSAYMARK_TEST_PARENT", str(os.getpid()))
    with beside(die) as result:
        assert result() == 7


def test_nothing_is_waited_for_when_the_block_fails():
    def stumble() -> None:
        with beside(double, 21):
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        stumble()
