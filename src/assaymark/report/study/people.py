"""What do people say? Each judge beside people, and what people see of the supported orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from assaymark.claims.candidates import kind_of
from assaymark.records import AGGREGATE, Measurement
from assaymark.report.blocks import Inline, Section, Table, Text
from assaymark.report.lookup import Book
from assaymark.report.text import listing, plural, sentence, signed, state_words
from assaymark.text import clean, count, number, percent, span

_LISTED: Final = 10


def people_section(book: Book) -> Section | None:
    """The people who graded, each judge beside them, and the supported orders as people see them; None without any."""
    sample = book.one("human.sample", dimension=AGGREGATE)
    if sample is None:
        return None
    scores = [d for d in book.dimensions if book.one("human.sample", dimension=d) is not None]
    judges = tuple(row for d in scores for row in _judges(book, d))
    heads = ("Score", "Judge", "κ with people", "ICC", "Judge minus people", "Passes found", "Failures found", "n")
    orders = tuple(_orders(book))
    seen = ("Supported order", "Judges", "People", "Judges favour", "Graded", "Variance saved")
    blocks = (
        Table(heads, judges, frozenset(range(2, 8)), "Each judge beside the mean grade of people", stacked=True),
        *((Table(seen, orders, frozenset({1, 2, 4, 5}), "Supported orders as people see them", stacked=True),)
          if orders else ()),
        Text(_note(book), "cap"),
    )  # fmt: skip
    return Section("people", "What do people say?", people_words(book), blocks)


def people_words(book: Book) -> str:
    """Who graded how much, how far judges and people agree, and what became of the orders; empty without people."""
    sample = book.one("human.sample", dimension=AGGREGATE)
    if sample is None:
        return ""
    detail = sample.detail
    graders, drawn = list(detail["graders"]), int(detail["drawn"])
    graded = f"{count(int(detail['graded']))} of {count(drawn)} {clean(sample.n_of, 60)}"
    who = f"{plural(len(graders), 'person', 'people')} graded {graded}"
    if lacking := [clean(str(one), 60) for one in detail.get("ungraded", ())]:
        more = f" and {count(len(lacking) - _LISTED)} more" if len(lacking) > _LISTED else ""
        who += f" (not whole: {', '.join(lacking[:_LISTED])}{more})"
    if sample.value is None:
        return f"{sentence(who)} Nothing is corrected by them: {clean(sample.state.removeprefix('not tested: '), 200)}."
    states = [one.human_anchor for one in book.run.verdicts if one.claim.asserts_order]
    found = [f"{count(states.count(one))} {said}" for one, said in (
        ("confirms", "confirmed"), ("contradicts", "contradicted"), ("undecided", "left undecided")
    ) if one in states]  # fmt: skip
    two = book.one("human.agreement", dimension=AGGREGATE)
    each = [one.value for one in book.every("human.judge", dimension=AGGREGATE) if one.value is not None]
    agree = []
    if each:
        reach = "" if two is None or two.value is None else f"; two people agree at {number(two.value)}"
        agree = [f"Each judge agrees with them at κ {span(min(each), max(each))}{reach}."]
    said = f"Of the orders that the judges support they have {listing(found) or 'tested none'}."
    return " ".join((sentence(who), *agree, said))


def favour_words(item: Measurement) -> str:
    """What judges see beyond people, as a liking of one of the two.

    >>> item = Measurement(name="human.contrast", labels={"high": "ash", "low": "elm"}, value=0.4, n=30, n_of="",
    ...                    method="", detail={"rectifier": -0.12})
    >>> favour_words(item)
    'ash by 0.12'
    """
    rectifier = item.detail.get("rectifier")
    if not isinstance(rectifier, (int, float)):
        return "not measured"
    return f"{clean(item.labels['high' if rectifier <= 0 else 'low'], 60)} by {number(abs(rectifier))}"


def _judges(book: Book, dimension: str) -> Iterator[tuple[Inline, ...]]:
    """One row for each judge, and one for two people: what a judge can reach."""
    agreed = book.one("human.agreement", dimension=dimension)
    for judge in sorted(one.name for one in book.run.study.judges):
        item = book.one("human.judge", dimension=dimension, judge=judge)
        if item is None:
            continue
        detail = item.detail
        yield (
            book.title(dimension), clean(judge, 60),
            book.to(item, state_words(item) if item.value is None else _ends(number(item.value), item.low, item.high)),
            _stated(detail["icc"]), _stated(detail["bias"], sign=True), _rate(detail["tpr"]), _rate(detail["tnr"]),
            count(item.n),
        )  # fmt: skip
    if agreed is not None:
        kappa = state_words(agreed) if agreed.value is None else _ends(number(agreed.value), agreed.low, agreed.high)
        icc = agreed.detail.get("icc")
        shown = "" if not isinstance(icc, (int, float)) else number(icc)
        yield book.title(dimension), "two people", book.to(agreed, kappa), shown, "", "", "", count(agreed.n)


def _orders(book: Book) -> Iterator[tuple[Inline, ...]]:
    """The supported orders of two agents that people were asked about."""
    for one in book.run.verdicts:
        claim = one.claim
        if kind_of(claim) != "pair" or one.publication_level == "no-claim":
            continue
        high, low = claim.subjects
        item = book.one("human.contrast", dimension=claim.dimension, high=high, low=low)
        if item is None or item.value is None:
            continue
        judges, saving = item.detail.get("judges"), item.detail.get("saving")
        yield (
            f"{clean(high, 60)} above {clean(low, 60)} on {book.title(claim.dimension).lower()}",
            "" if not isinstance(judges, (int, float)) else signed(judges),
            book.to(item, _ends(signed(item.value), item.low, item.high)), favour_words(item), count(item.n),
            "" if not isinstance(saving, (int, float)) else percent(saving),
        )  # fmt: skip


def _note(book: Book) -> str:
    passed = number(book.run.study.human.passed_from(*book.run.study.scale), 2)
    return (
        "Humans are no ground truth: a judge is as good as a person where its interval reaches the agreement of two "
        f"people. A text passes from {passed} on. People’s difference is estimated from the graded cycles, made "
        "sharper by the judges on all cycles; what the judges favour is taken out."
    )


def _ends(value: str, low: float | None, high: float | None) -> str:
    return value if low is None or high is None else f"{value} ({span(low, high)})"


def _stated(one: Mapping[str, Any], *, sign: bool = False) -> str:
    value = one.get("estimate")
    if not isinstance(value, (int, float)):
        return clean(str(one.get("state", "")).partition(":")[2].strip() or "not measured", 60)
    return _ends(signed(value) if sign else number(value), one.get("low"), one.get("high"))


def _rate(found: Any) -> str:
    hits, n, low, high = found
    if not n:
        return "none to find"
    ends = "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"
    return f"{count(hits)} of {count(n)}{ends}"
