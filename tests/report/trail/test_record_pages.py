"""From a number to its judgments: every record has one row, counts are right, and nothing is ordered by a score."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import assay_runs as runs
import page_words
import pytest
from full_runs import judged, judgment
from hypothesis import given
from hypothesis import strategies as st
from markup import made_problems
from outline import Outline, read, words

from assaymark.report import AssayRun, each_page, render_pages
from assaymark.report import records as record_pages


@cache
def run() -> AssayRun:
    return judged()


@cache
def pages() -> dict[str, str]:
    return dict(render_pages(run()))


@cache
def outlines() -> dict[str, Outline]:
    return {path: read(page) for path, page in pages().items()}


@cache
def trail() -> record_pages.StudyProvenance:
    return record_pages.StudyProvenance.of(run())


def rests(name: str, **labels: str) -> list[tuple[str, str]]:
    lineage = record_pages.lineage(trail(), run().evidence)
    return [(str(ref), ref.href) for ref in lineage(runs.measured(name, labels, 0.5))]


def test_every_judgment_and_every_decision_has_exactly_one_row():
    ids = Counter(name for outline in outlines().values() for name in outline.ids)
    judgments = [record_pages.row_id(one) for rows in run().judgments.values() for one in rows]
    assert len(set(judgments)) == len(judgments)
    assert {ids[name] for name in judgments} == {1}
    assert {ids[place.partition("#")[2]] for place in trail().decisions.values()} == {1}


def test_pages_are_whole_small_and_lead_to_rows():
    assert made_problems(pages()) == []
    large = ("judgments/", "decisions/")
    assert max(len(page.encode()) for path, page in pages().items() if path.startswith(large)) < 450_000


def test_a_long_run_is_cut_into_pages_without_losing_a_judgment():
    base = run()
    many = [judgment(one, "quay-1", "quay", trial) for trial in range(1, 41) for one in base.decisions]
    shelf = record_pages.StudyProvenance.of(replace(base, judgments={"panel": many}, texts=base.decisions))
    [group] = shelf.groups
    assert len(group.pages) > 2
    assert sorted(map(record_pages.row_id, group.judgments)) == sorted(map(record_pages.row_id, many))
    assert len({path for path, _ in group.pages}) == len(group.pages)


def test_rows_stand_by_agent_and_date_and_never_by_score():
    shelf = trail()
    for group in shelf.groups:
        order = [(one.trajectory.startswith("cell"), shelf.records[one.trajectory].agent.id) for one in group.judgments]
        assert order == sorted(order)
    turned = {part: list(reversed(rows)) for part, rows in run().judgments.items()}
    assert record_pages.StudyProvenance.of(replace(run(), judgments=turned)).groups == shelf.groups


def test_judgments_without_scores_are_named_with_the_reason():
    page = words(pages()["judgments/index.html"])
    assert "2 judgments gave none" in page
    assert "invalid: no JSON object" in page
    assert "refused: no reason was kept" in page
    rows = pages()["judgments/north-1.html"]
    assert rows.count('data-x="not-ok"') == 2


def test_the_overview_counts_what_each_judge_said_of_each_agent():
    page = pages()["judgments/index.html"]
    [row] = re.findall(r"<tr id=\"a[0-9a-f]+\"><th scope=\"row\">Otter</th>(.*?)</tr>", page)
    found = [one or two for one, two in re.findall(r"<td>(?:<a [^>]*>)?(\d+)|(none)", row)]
    agents = Counter(one.agent.id for one in run().decisions)
    n = agents["Otter"]
    tens = sum(one.agent.id == "Otter" for one in run().decisions[:10])
    assert found == [str(n), str(2 * n), str(n), str(n), str(tens), str(n)]


@pytest.mark.parametrize("name", ["index", "Index", "../x", "a~2", "outside-tarn-1", "<b>&amp;"])
def test_no_name_of_a_judge_takes_the_place_of_another_page(name):
    base = run()
    twin = [judgment(one, "tarn-1", "tarn") for one in base.decisions]
    rows = [judgment(one, name, "x") for one in base.decisions]
    found = dict(render_pages(replace(base, judgments={"panel": rows, "outside": twin}, texts=base.decisions)))
    assert "Which judges?" in words(found["judgments/index.html"])
    assert len([path for path in found if path.startswith("judgments/")]) == 3
    assert all(".." not in path and "<" not in path for path in found)


def test_nothing_from_a_record_is_markup():
    bad = runs.CANARY
    base = run()
    decisions = [replace(one, record_id=one.record_id + bad, cluster=bad, flags=(bad,)) for one in base.decisions]
    named = {"judge": bad, "family": bad, "rubric": bad, "reason": bad, "lookahead_check": bad}
    rows = [
        replace(judgment(one, "q", "f"), trajectory=one.record_id + bad, evidence=(bad,) * 5, **named)
        for one in base.decisions
    ]
    rows[0] = replace(rows[0], status="invalid", scores={})
    found = render_pages(replace(base, judgments={"panel": rows}, texts=decisions))
    for path, page in found.items():
        outline = read(page)
        assert outline.tags.count("script") <= (3 if path == "index.html" else 2), path
        assert "img" not in outline.tags


def test_a_measurement_leads_to_the_judgments_that_it_rests_on():
    n = Counter(one.agent.id for one in run().decisions)
    every = len(run().decisions)
    overview = "judgments/index.html"
    otter = f"{overview}#{record_pages.Subject(False, 'Otter').anchor}"
    stoat = f"{overview}#{record_pages.Subject(False, 'Stoat').anchor}"
    assert rests("score.effect", dimension="aggregate", agent="Otter") == [
        (f"{4 * n['Otter']} among the judgments", otter)
    ]
    assert rests("contrast", dimension="aggregate", high="Stoat", low="Otter") == [
        (f"{4 * n['Otter']} among the judgments on Otter", otter),
        (f"{4 * n['Stoat'] - 1} among the judgments on Stoat", stoat),
    ]  # fmt: skip
    assert rests("kappa.fleiss", dimension="aggregate") == [(f"{4 * every - 2:,} among the judgments", overview)]
    assert rests("judge.invalid_share", judge="north-1") == [
        (f"{2 * every:,} among the judgments", "judgments/north-1.html")
    ]
    assert rests("single.rho", a="strand-1", b="quay-1") == [
        (f"{every:,} among the judgments by quay-1", "judgments/quay-1.html"),
        (f"{every:,} among the judgments by strand-1", "judgments/strand-1.html"),
    ]
    assert rests("lofo.rho", dropped="north") == [(f"{2 * every:,} among the judgments", overview)]
    assert rests("probe.state") == [(f"{every:,} judgments", "judgments/outside-tarn-1.html")]
    assert rests("anchor.shift", dimension="sizing") == [("10 judgments", "judgments/anchors-north-1.html")]
    assert rests("cell.score", cell="cell_b")[0][0] == "16 judgments"
    assert rests("terse.share", agent="Otter")[0][0] == f"{n['Otter']} decisions"
    assert rests("evidence.share", state="supported") == [(f"{len(run().evidence):,} numbers", "ledger/page-001.html")]
    assert rests("something.new") == [("judgments", overview)]


def test_a_link_labelled_n_leads_to_exactly_those_n():
    """Its button shows them and no others; a row of the overview counts each judge's."""
    found = 0
    for path in ("measurements.html", "judgments/index.html"):
        for href, n in re.findall(
            r'<a href="([^"]+#only-[^"]+)">([\d,]+)(?: judgments?| decisions?)?[^<]*</a>', pages()[path]
        ):
            target, _, name = href.partition("#")
            page = pages()[target.removeprefix("../") if "/" in target else f"judgments/{target}"]
            key, shown = re.search(
                rf'<button type="button" id="{name}" data-f="([^"]+)"[^>]*>.*? ([\d,]+)</button>', page
            ).groups()
            assert shown == n, (path, href)
            assert page.count(f'<tr data-k="{key}"') == int(n.replace(",", "")), (path, href)
            found += 1
    assert found > 20
    assert "#only-" not in pages()["index.html"]


def test_a_pair_tells_no_order_and_a_run_without_judgments_has_no_pages_of_records():
    one = rests("contrast", dimension="aggregate", high="Stoat", low="Otter")
    assert one == rests("contrast", dimension="aggregate", high="Otter", low="Stoat")
    found = page_words.pages("realistic")
    assert not [path for path in found if path.startswith(("judgments", "decisions", "calls"))]
    assert "Rests on" not in found["measurements.html"]


def test_a_judgment_by_a_person_names_no_call():
    base, asked = run(), []
    judges = tuple(
        judge.model_copy(update={"model": "human/table"} if judge.name == "quay-1" else {})
        for judge in base.study.judges
    )
    one = replace(base, study=base.study.model_copy(update={"judges": judges}))
    list(each_page(one, read=lambda keys: iter(asked.extend(keys) or ())))
    wanted = [row.call_key for rows in base.judgments.values() for row in rows if row.judge != "quay-1"]
    assert set(asked) == set(wanted)


@given(st.text(max_size=12), st.booleans())
def test_subjects_have_places_of_their_own(name, control):
    assert record_pages.Subject(control, name).anchor != record_pages.Subject(not control, name).anchor
