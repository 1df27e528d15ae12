"""A small made-up market and the decisions about it, shared by the tests of the evidence ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assaymark import records
from assaymark.judging import evidence

AT = datetime(2026, 3, 2, tzinfo=UTC)
INSTRUMENTS = (
    records.Instrument(id="GOLD", symbol="IAU", name="Gold Trust"),
    records.Instrument(id="CHIPS", symbol="SMH", name="Semiconductor Equities"),
    records.Instrument(id="SP500", symbol="SPY", name="S&P 500"),
    records.Instrument(id="SOUTH_KOREA", symbol="EWY", name="South Korea Equities"),
)
CELLS = {
    "GOLD": (0.0312, 0.0814, -0.0652, 0.1873, 0.31, 88.87), "CHIPS": (-0.0547, 0.2968, -0.1748, 0.5269, 3.06, 566.54),
    "SP500": (0.0123, 0.0341, -0.0203, 0.1113, 1.00, 737.62),
    "SOUTH_KOREA": (0.1271, 0.3377, -0.0911, 0.4166, 1.52, 141.05),
}  # fmt: skip
COLUMNS = (
    ("return_5d", "ratio"), ("return_21d", "ratio"), ("max_drawdown_21d", "ratio"), ("volatility_21d", "ratio"),
    ("beta_spy_63d", "index"), ("close", "price"),
)  # fmt: skip


def fact(name, instrument, field, value, unit="ratio", **more):
    return records.Fact(
        id=name, instrument=instrument, field=field, value=value, unit=unit, **{"available_at": AT} | more
    )


def free(name, field, value, unit, note=""):
    """A fact about no instrument."""
    return fact(name, "", field, value, unit, note=note)


CPI = "BLS reported June CPI up 3.5% over 12 months, core CPI up 2.6%."
YIELDS = "The 10-year Treasury yield rose to 4.63% from 4.58% and the 30-year to 5.18%."
OIL = "Brent crude settled at $91.01 a barrel, down 2.0%."
FUNDS = "The Fed kept its target range at 3.50% to 3.75%."
BRIEFING = (
    ("reported June CPI up", 3.5, "percent", CPI), ("core CPI up", 2.6, "percent", CPI),
    ("10-year Treasury yield rose to", 4.63, "percent", YIELDS), ("yield rose to from", 4.58, "percent", YIELDS),
    ("and the 30-year to", 5.18, "percent", YIELDS),
    ("payrolls increased by", 115_000.0, "count", "Nonfarm payrolls increased by 115,000 in April."),
    ("Brent crude settled at", 91.01, "usd", OIL), ("a barrel down", -2.0, "percent", OIL),
    ("target range at", 3.5, "percent", FUNDS), ("to", 3.75, "percent", FUNDS),
)  # fmt: skip
FACTS = (
    *(fact(f"{name}.{field}", name, field, value, unit)
      for name, values in CELLS.items() for (field, unit), value in zip(COLUMNS, values, strict=True)),
    *(free(f"b{at}", *said) for at, said in enumerate(BRIEFING, start=1)),
)  # fmt: skip


def context(*, completeness="complete", **parts):
    """The market as a context; keyword arguments replace its parts."""
    made = {
        "completeness": completeness, "cutoff": AT, "cutoff_source": "made up",
        "prompt": "Allocate. Weights must be multiples of 5%. The portfolio must hold between 1 and 6 holdings.",
        "facts": FACTS, "instruments": INSTRUMENTS,
    }  # fmt: skip
    return records.Context(**(made | parts))


def material(**parts):
    return evidence.ContextIndex.of(context(**parts))


def built(*facts, **more):
    """A material of these facts about our instruments."""
    return evidence.ContextIndex.build(facts=list(facts), **{"instruments": INSTRUMENTS} | more)


COMPLETE = material()
PARTIAL = material(completeness="partial")


def audit(text, seen=COMPLETE, own=None):
    return evidence.audit_texts([("summary", text)], seen, own)


def states(text, seen=COMPLETE, own=None):
    return [finding.state for finding in audit(text, seen, own)]


def only(text, seen=COMPLETE, own=None):
    found = audit(text, seen, own)
    assert len(found) == 1, found
    return found[0]


def decision(*texts, record="r1", agent="a1", cluster="w1", actions=(), stages=None, confidence=None):
    said = tuple(records.Rationale(text=one, kind="summary") if isinstance(one, str) else one for one in texts)
    return records.Decision(
        record_id=record, episode_id="e1", step=0, cluster=cluster, decided_at=AT,
        agent=records.Agent(id=agent, family="f"), context_id="c1", actions=actions, rationales=said, format="made",
        provenance=records.Provenance(source="made"), confidence=confidence, stages=stages or {},
    )  # fmt: skip


def bars(instrument, closes):
    """Daily bars on consecutive days, the last one at the cutoff."""
    times = tuple(AT - timedelta(days=len(closes) - 1 - i) for i in range(len(closes)))
    return records.Series(instrument=instrument, interval_s=86_400, times=times, close=tuple(closes))
