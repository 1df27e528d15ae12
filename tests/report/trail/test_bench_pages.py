"""From a score of a benchmark to the episodes and answers it was computed from, and from these to their calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import bench_runs as runs
import pytest
from markup import made_problems
from outline import Outline, cells, first_number, links_to, read, words

from assaymark.benchmark import questions
from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.records import Measurement, sha256_text
from assaymark.report import portbench
from assaymark.report import records as record_pages

NAMES = ("literal", "momentum")


def key(*parts: object) -> str:
    return sha256_text(repr(parts))


@cache
def run() -> portbench.BenchRun:
    """Two models of whom every call is kept."""
    base = runs.two()
    results = [
        replace(one, excerpts={
            at: replace(heard, key=key(one.model, one.profile, one.window, *at)) for at, heard in one.excerpts.items()
        })
        for one in base.results
    ]  # fmt: skip
    answers = {
        name: [
            questions.ScoredReply(
                runs.question(f"T{at}-{n}", at - 1, "bull" if n else "bear"), condition,
                score := questions.QAScore(0.5, "ok" if n else "invalid"), score, key=key(name, at, n, condition),
            )
            for at in range(1, 8) for n in range(3) for condition in ("full", "restricted")
        ]
        for name in NAMES
    }  # fmt: skip
    return replace(base, results=results, answers=answers)


def calls(keys: Sequence[str]) -> Iterator[record_pages.AskedCall]:
    for at, one in enumerate(keys):
        text = Text.of(f"asked {at}")
        call = CallSpec(model="maker/x", messages=(Message("user", (text,)),), template="")
        yield record_pages.AskedCall(key=one, call=call, new=(text,), reply=Reply(text=f"reply {at}", model="x"))


@cache
def pages() -> dict[str, str]:
    return dict(portbench.each_benchmark_page(run(), read=calls))


@cache
def outlines() -> dict[str, Outline]:
    return {path: read(page) for path, page in pages().items() if path.endswith(".html")}


def test_every_call_of_a_stage_and_of_an_answer_stands_once():
    named = Counter(
        found for page in pages().values() for found in re.findall(r"<dt>Key</dt><dd><code>(\w+)</code>", page)
    )
    stages = {heard.key for one in run().results for heard in one.excerpts.values()}
    assert named == Counter(stages | {one.key for mine in run().answers.values() for one in mine})


def test_pages_are_whole_and_lead_somewhere():
    assert made_problems(pages()) == []


def test_a_stage_leads_to_its_call_and_the_call_back_to_its_date():
    links = [link for link in outlines()["episodes/literal-conservative-normal.html"].links if "calls/" in link]
    assert len(links) == 3 * 3
    target, _, anchor = links[0].removeprefix("../").partition("#")
    section = re.search(rf'<section class="call" id="{anchor}".*?</section>', pages()[target], flags=re.S)[0]
    assert 'href="../episodes/literal-conservative-normal.html#d1"' in section


def test_a_question_leads_to_its_call_and_to_every_answer_and_measurements_too():
    links = outlines()["questions.html"].links
    assert len([link for link in links if link.startswith("calls/")]) == len(NAMES) * 7 * 2 * 2  # the worst and best
    assert {"answers/literal.html", "answers/momentum.html"} <= set(links)
    said = words(pages()["answers/literal.html"])
    assert "0.500, invalid" in said
    assert "T3-2" in said
    assert 'href="answers/literal.html#q' in pages()["measurements.html"]
    assert 'href="episodes.html#only-' in pages()["measurements.html"]


def test_measurements_count_what_they_rest_on():
    episodes = [(one, [f"episodes/{at}.html#d1"]) for at, one in enumerate(run().results)]
    trail = portbench.BenchProvenance.of(run().answers, episodes)

    def rests(name: str, **labels: str) -> list[tuple[str, str]]:
        item = Measurement(name=name, labels=labels, value=1.0, n=1, n_of="", method="")
        return [(str(ref), ref.href.partition("#")[0]) for ref in trail.lineage(item)]

    for labels, said in (
        ({}, "21 among the answers"), ({"template": "T4"}, "3 among the answers"),
        ({"regime": "bear"}, "7 among the answers"), ({"kind": "formula"}, "6 among the answers"),
        ({"condition": "full less restricted", "template": "T4"}, "6 answers"),
    ):  # fmt: skip
        question = {"model": "literal", "condition": "full", **labels}
        assert rests("bench.question", **question) == [(said, "answers/literal.html")]
    assert rests("bench.stage", model="literal", profile="all", stage="S1") == [("12 episodes", "episodes.html")]
    one = run().results[0]
    alone = {"model": one.model, "profile": one.profile, "window": one.window}
    assert rests("bench.sharpe", **alone) == [("1 episode", "episodes/0.html")]
    assert rests("bench.baseline", baseline="EqW", window="normal") == []


@pytest.mark.parametrize("page", ["scores.html", "profiles.html", "histories.html"])
def test_a_number_leads_to_its_measurement(page):
    """An interval that stands alone leads to the row with that interval; figures of performance stand in percent."""
    rows = {
        f"{path}#{anchor}": row
        for path, text in pages().items()
        if path.startswith("measurements")
        for anchor, row in cells(text).items()
    }
    found = links_to(pages()[page], r"measurements[^\"#]*")
    assert len(found) > 20
    percents = 0
    for path, anchor, text in found:
        row = rows[f"{path}#{anchor}"]
        if "shares its tier" in row[2]:  # its interval stands, its score nowhere
            assert row[2].startswith(text)
            continue
        shown, digits = first_number(text)
        value, places = first_number(row[3] if " to " in text and "(" not in text else row[2])
        error = 0.51 * (10**-digits + 10**-places)
        close = abs(shown - value) <= error
        percents += not close
        assert close or abs(shown - 100 * value) <= 100 * error, (text, row)
    assert percents < len(found)


def test_without_a_ledger_there_are_no_calls_and_the_rest_stands():
    found = portbench.render_benchmark(run())
    assert not [path for path in found if path.startswith("calls/")]
    assert "Excerpts. The whole call is in the call log" in words(found["episodes/literal-conservative-normal.html"])
    assert set(found) == {path for path in pages() if not path.startswith("calls/")}


def test_nothing_from_a_model_is_markup():
    bad = runs.HOSTILE
    score = questions.QAScore(0.5, bad, {}, bad)
    answers = {bad: [questions.ScoredReply(runs.question(bad, 0, bad, bad), bad, score, score, bad)]}
    found = portbench.render_benchmark(replace(run(), answers=answers))
    [page] = [page for path, page in found.items() if path.startswith("answers/")]
    assert read(page).tags.count("script") == 1
    assert "img" not in read(page).tags
