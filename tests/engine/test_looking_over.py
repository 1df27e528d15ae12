"""A ledger is looked over before anything is paid for: once an opening, however many runs there are."""

from __future__ import annotations

import pytest

from assaymark.engine import CallSpec, Ledger, Message, Reply, Text, run_calls
from assaymark.errors import LedgerError


class Answering:
    async def complete(self, call: CallSpec) -> Reply:
        return Reply(text="yes", model=call.model)


def asked(ledger: Ledger, number: int) -> int:
    call = CallSpec(model="reference/one", messages=(Message("user", (Text.of(f"{number}?"),)),), template="")
    return run_calls(ledger, [call], {"reference/one": Answering()}).made


def test_once_an_opening_and_again_after_the_next(tmp_path, monkeypatch):
    looks: list[str] = []
    check = Ledger.check_structure
    monkeypatch.setattr(Ledger, "check_structure", lambda self: looks.append("looked") or check(self))
    for opening in (1, 2):
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            assert [asked(ledger, 10 * opening + number) for number in range(3)] == [1, 1, 1]
        assert len(looks) == opening


def test_a_ledger_that_was_found_damaged_stays_refused(tmp_path, monkeypatch):
    def damaged(_: Ledger) -> None:
        raise LedgerError("it does not hang together")

    monkeypatch.setattr(Ledger, "check_structure", damaged)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        for number in range(2):
            with pytest.raises(LedgerError, match="does not hang together"):
                asked(ledger, number)
