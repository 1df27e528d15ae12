"""The first page and the bench of a study in German: whole, with links that lead somewhere and scripts that may run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape

import bench_runs
import judged_sheets
import page_words
import pytest
from markup import made_problems

from assaymark.errors import UnknownNameError
from assaymark.report import in_language, render_comparison, render_datasheet
from assaymark.report.portbench import render_benchmark
from assaymark.report.translation import translation

GERMAN = translation("de")
TELLING = sorted(
    english for english, german in GERMAN.exact.items()
    if len(english) > 9 and not re.search("[#§]", english) and english != german
)  # fmt: skip


@pytest.fixture(scope="module", params=["realistic", "full", "withheld"])
def pages(request) -> dict[str, str]:
    return dict(in_language(page_words.pages(request.param).items(), "de"))


def test_no_english_text_of_the_table_is_left_on_a_german_page(pages):
    for path in (path for path in pages if path.startswith("de/")):
        page = re.sub(r"<(style|code|script)\b.*?</\1>", "", pages[path], flags=re.DOTALL)
        shown = re.findall(r'>([^<>]+)<|(?:aria-label|placeholder|data-(?:l|said|v|line|brush|copy))="([^"]*)"', page)
        texts = {" ".join(unescape(one or other).split()) for one, other in shown}
        for data in re.findall(r'id="b-data">(.*?)</script>', pages[path]):
            said = [*json.loads(data)["texts"], *(words for _, words in json.loads(data)["scores"])]
            texts |= {one for one in said if ".html" not in one}
        assert not [text for text in TELLING if any(text in one for one in texts)], path
        if path.endswith(".html"):
            assert '<html lang="de">' in page
            assert "Übereinstimmung" in page


def log_pages() -> dict[str, str]:
    logs = (judged_sheets.log(), judged_sheets.one_order_log())
    return render_comparison(logs) | {path: page for one in logs for path, page in render_datasheet(one, logs).items()}


@pytest.mark.parametrize("name", ["two", "eight", "questions_only", "empty", "minimal", "sheets", "logs"])
def test_no_sentence_of_a_german_page_is_left_in_english(name):
    if hasattr(bench_runs, name):
        made = render_benchmark(getattr(bench_runs, name)())
    else:
        made = judged_sheets.pages() if name == "sheets" else page_words.pages(name) if name != "logs" else log_pages()
    for path, page in in_language(dict(made).items(), "de"):
        page = re.sub(r"<(style|code|script|pre|bdi)\b.*?</\1>", "", page, flags=re.DOTALL) if "de/" in path else ""
        found = re.findall(r">([^<>]*\b(?:the|of|is|are|not|no|each|which|can|does|one|with)\b[^<>]*)<", page)
        found += re.findall(r'data-(?:v|line)="([^"]*\b(?:of|is|to|maximum|mostly|from|stable)\b[^"]*)"', page)
        assert [one for one in found if not re.search("made by hand|no-answer|A grader of the", one)] == [], path


def test_german_pages_are_whole_and_lead_somewhere(pages):
    assert [one for one in made_problems(pages) if ".svg'" not in one] == []


def test_scripts_of_a_german_page_are_allowed_and_speak_german_and_it_leads_to_itself_in_english(pages):
    page = pages["de/index.html"]
    for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in page.partition("<style>")[0]
        assert not re.search("Nothing to copy|Copy sentence|Say also", script)
    assert "Nichts zu kopieren" in page
    assert '<a href="de/index.html">Deutsch</a>' in pages["index.html"]
    assert '<a href="../index.html">English</a>' in pages["de/index.html"]


def test_a_translation_has_the_fields_of_its_text():
    for english, german in GERMAN.exact.items():
        fields = [re.findall("([#§])", one) for one in (english, german)]
        assert set(fields[1]) <= set(fields[0]), english
        assert all(fields[0].count(kind) >= max(map(int, re.findall(f"{kind}(\\d)", german)), default=0)
                   for kind in "#§"), english  # fmt: skip
    copied = (
        "“A ranks first of the 13 agents on the overall score.” Graded by rule-based stand-ins. (assaymark: B, plan c)"
    )
    assert GERMAN.render(copied).startswith(
        "„A steht auf Rang 1 der 13 Agenten bei der Gesamtwertung.“ Bewertet von regel"
    )
    kept = "Whether limits are kept under stress (balanced and conservative)."
    assert GERMAN(kept) == "Ob Grenzen in der Krise gehalten werden (ausgewogen und vorsichtig)."


def test_a_language_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(UnknownNameError, match="de"):
        translation("xx")
