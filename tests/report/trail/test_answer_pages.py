"""From a measurement of a datasheet to the answers it was computed from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from outline import read, words

from assaymark.records import Judgment, Measurement, PairCall
from assaymark.report import Frame
from assaymark.report import records as record_pages

FRAME = Frame(study="", mark="", nav=())
HOSTILE = "<script>1</script>\x1b"


def pair(at: int, judge: str = "quay", **more) -> PairCall:
    base = {"condition": "ladder", "task": "t", "order": "uv" if at % 2 else "vu", "verdict": "1", "delta": 1.0,
            "better": "u", "variant": "Q1 over Q0", "call_key": f"{at:064x}"}  # fmt: skip
    return PairCall(pair=f"t.ladder.{at // 2}", judge=judge, **{**base, **more})


def text(at: int, judge: str = "quay", **more) -> Judgment:
    base = {"family": "f", "rubric": "v1.0", "trial": 1, "status": "ok", "scores": {"risk": 4.0}, "call_key": "a" * 64}
    return Judgment(trajectory=f"t.point.{at}", judge=judge, **{**base, **more})


def measured(name: str, **labels: str) -> Measurement:
    return Measurement(name=name, labels={"judge": "quay", **labels}, value=1.0, n=1, n_of="", method="")


PAIRS = [
    *(pair(at) for at in range(6)),
    *(pair(at, delta=3.0, variant="Q3 over Q0") for at in range(6, 10)),
    *(pair(at, prompt="strict", condition="vacuum", variant="empty", delta=0.0, better=None, verdict="tie")
      for at in range(10, 13)),
    pair(13, condition="filler", variant="before", verdict="invalid", reason="no verdict"),
]  # fmt: skip
BOOK = record_pages.AnswerIndex.of({"quay": PAIRS, "other": [pair(0, "other")]}, {"quay": [text(1), text(2)]})


def pages(book: record_pages.AnswerIndex) -> dict[str, str]:
    return dict(record_pages.answer_pages(book, FRAME, None))


def test_every_answer_has_exactly_one_row():
    ids = Counter(
        name for page in pages(BOOK).values() for name in read(page).ids if re.fullmatch("[ps][0-9a-f]{12}", name)
    )
    assert len(ids) == len(PAIRS) + 1 + 2
    assert set(ids.values()) == {1}


def test_a_measurement_leads_to_the_first_of_its_answers_and_counts_them():
    made = pages(BOOK)
    for name, labels, count in (
        ("sensitivity", {"delta": "3", "prompt": "tie-allowed"}, 4), ("threshold", {"prompt": "tie-allowed"}, 10),
        ("dark_current", {"prompt": "strict", "variant": "empty"}, 3),
        ("filler.preference", {"prompt": "tie-allowed"}, 1), ("pair.invalid_share", {"prompt": "tie-allowed"}, 11),
        ("repeat.stability", {}, 14), ("point.slope", {"dimension": "risk"}, 2),
    ):  # fmt: skip
        [ref] = BOOK.lineage(measured(name, **labels))
        assert str(ref) == f"{count} answer{'s' * (count > 1)}"
        path, _, anchor = ref.href.partition("#")
        assert anchor in read(made[path]).ids
    assert BOOK.lineage(measured("dark_current", prompt="tie-allowed")) == ()
    assert BOOK.lineage(measured("drift", quantity="threshold")) == ()


def test_agreement_of_two_judges_leads_to_the_answers_of_both():
    item = Measurement(name="between.kappa", labels={"a": "other", "b": "quay"}, value=1.0, n=1, n_of="", method="")
    assert [str(ref) for ref in BOOK.lineage(item)] == ["1 answer by other", "14 answers by quay"]


def test_an_answer_says_what_was_chosen_and_whether_it_is_the_better_text():
    asked = [pair(0), pair(1), replace(pair(2), verdict="2")]
    page = words(pages(record_pages.AnswerIndex.of({"quay": asked}, {}))["answers/quay.html"])
    for said in (
        "the first (v), not the better one", "the first (u), the better one", "the second (u), the better one",
    ):  # fmt: skip
        assert said in page
    assert "invalid: no verdict" in words(pages(BOOK)["answers/quay.html"])


def test_nothing_from_an_answer_is_markup():
    bad = pair(1, judge=HOSTILE, variant=HOSTILE, prompt=HOSTILE, verdict="invalid", reason=HOSTILE, call_key=HOSTILE)
    worse = text(1, judge=HOSTILE, rubric=HOSTILE, scores={HOSTILE: 1.0})
    book = record_pages.AnswerIndex.of({HOSTILE: [replace(bad, pair=HOSTILE)]}, {HOSTILE: [worse]})
    for path, page in pages(book).items():
        assert read(page).tags.count("script") == 1
        assert "<" not in path


def test_a_long_booklet_is_cut_into_pages():
    many = [pair(at, trial=trial) for trial in range(1, 9) for at in range(400)]
    made = pages(record_pages.AnswerIndex.of({"quay": many}, {}))
    assert len(made) > 2
    assert max(len(page.encode()) for page in made.values()) < 420_000
