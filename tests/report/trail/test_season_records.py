"""The records of a season: each has one row, none is markup, and they are ordered by name and day alone."""

from __future__ import annotations

import re

from outline import read, words

from assaymark.report import Frame
from assaymark.report import season as season_pages

FRAME = Frame(study="spring", mark="", nav=())
HOSTILE = "<script>document.title='in'</script>\x1b"


def record(at: int, **more) -> season_pages.SeasonRecord:
    base = {"kind": "grades", "who": f"judge {at % 3}", "of": f"one, 2024-W{at:04d}", "said": f"composite {at}.00"}
    return season_pages.SeasonRecord(**{**base, **more})


def pages(*records: season_pages.SeasonRecord) -> dict[str, str]:
    return dict(season_pages.season_record_pages(season_pages.SeasonProvenance(records, None), FRAME))


def test_every_record_has_one_row_and_kinds_have_pages_of_their_own():
    made = pages(*(record(at) for at in range(9)), record(1, kind="guesses", said="one, right of 3"))
    assert set(made) == {"records/index.html", "records/grades.html", "records/guesses.html"}
    assert len([name for name in read(made["records/grades.html"]).ids if re.fullmatch("r[0-9a-f]{12}", name)]) == 9
    assert {"../records/grades.html", "../records/guesses.html"} <= set(read(made["records/index.html"]).links)
    assert "9 records" in words(made["records/index.html"])


def test_rows_stand_by_name_and_day_whatever_was_given():
    rows = [record(at) for at in range(30)]
    assert pages(*rows) == pages(*reversed(rows))
    said = words(pages(*rows)["records/grades.html"])
    assert said.index("2024-W0003") < said.index("2024-W0006") < said.index("2024-W0001")


def test_a_record_without_a_usable_answer_stands_out():
    page = pages(record(1, said="refused: no", usable=False))["records/grades.html"]
    assert "<b>refused: no</b>" in page


def test_nothing_from_a_record_is_markup():
    for page in pages(record(1, who=HOSTILE, of=HOSTILE, said=HOSTILE, keys=(HOSTILE,))).values():
        assert read(page).tags.count("script") == 1


def test_a_long_season_is_cut_into_pages():
    made = pages(*(record(at) for at in range(4000)))
    assert len(made) > 3
    assert max(len(page.encode()) for page in made.values()) < 420_000
