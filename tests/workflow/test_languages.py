"""Pages of studies, tables, datasheets and benchmarks in German, made by the commands that users type."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from slow_command import few_questions

from assaymark.cli import main

ROOT = Path(__file__).resolve().parents[2]
OF_STUDIES = [f"{name}.html" for name in ("index", "agents", "agreement", "stability", "claims", "plan")]
MADE = {
    "study": (["demo"], [*OF_STUDIES, "controls.html", "fact-check.html", "claim-map.html", "claims-002.html"]),
    "table": (["check", str(ROOT / "examples" / "scores.csv")], [*OF_STUDIES, "sentences.html"]),
    "weak": (["check", "weak.csv", "--cluster", "week"], [*OF_STUDIES, "sentences.html"]),
    "real": (["demo", "--real"], [*OF_STUDIES, "sentences.html", "claims-002.html"]),
    "judges": (["datasheet", "--judge", "reference/checklist", "--judge", "reference/slot-biased"],
               ["datasheets.html", "datasheet/checklist.html", "datasheet/slot-biased.html"]),
    "benchmark": (["bench", "qa", "--per-template", "2"], ["index.html", "scores.html", "data.html", "claims.html"]),
}  # fmt: skip
SCHEME = re.compile("[a-z]+:")
SHOWN = re.compile(r">([^<>]+)<")
ENGLISH = re.compile(
    r"\b(the|of|is|are|with|by|yes|and|or|that|which|calls|judges|points|scores|dashed|from|for|without|this|to|than)\b"
)


@pytest.fixture(scope="module", params=MADE)
def report(request, tmp_path_factory) -> tuple[Path, list[str]]:
    command, pages = MADE[request.param]
    run = tmp_path_factory.mktemp("run") / "run"
    if "demo" in command:
        shutil.copytree(request.getfixturevalue(request.param.replace("study", "demo")), run)
    else:
        # Judges that hardly agree, with missing scores, grades of people, and few clusters.
        draw = np.random.default_rng(2).integers
        rows = [f"q{k},w{k % 5},{agent},{judge},{draw(1, 6) if k % 30 or judge == 'j0' else ''},"
                f"{draw(1, 6) if judge == 'j0' else ''}"
                for k in range(40) for agent in "abc" for judge in ("j0", "j1", "j2")]  # fmt: skip
        (run.parent / "weak.csv").write_text("\n".join(["item,week,agent,judge,score,human_1", *rows]))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(run.parent)
            few_questions(patch)
            assert main([*command, "--out", str(run), "--quiet"]) == 0
    fewer = ["--calls", "none"] if command == ["demo"] else []  # those of datasheets are made in the same way
    assert main(["report", str(run), "--language", "de", "--quiet", *fewer]) == 0
    return run / "report", pages


def test_the_main_pages_are_german_throughout(report):
    folder, pages = report
    for page in pages:
        html = (folder / "de" / page).read_text(encoding="utf-8")
        assert '<html lang="de">' in html
        plain = re.sub(r"<(style|code|script|pre)\b.*?</\1>", "", html, flags=re.DOTALL)
        # What an agent wrote is quoted as it is.
        shown = {
            re.sub("„By this screen,“|„On the numbers,“", "", unescape(one)).strip() for one in SHOWN.findall(plain)
        }
        named = {text for text in shown if re.search(r"\.csv|\.parquet$|slot-biased|checklist$|Six real judges", text)}
        assert [text for text in shown - named if ENGLISH.search(text)] == []


def test_links_of_a_german_page_lead_to_files_and_each_page_to_itself_in_the_other_language(report):
    folder, pages = report
    for page in (folder / "de").rglob("*.html"):
        links = [link for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()) if not SCHEME.match(link)]
        assert links
        assert [link for link in links if not (page.parent / link).exists()] == [], page
    for page in pages:
        up = "../" * page.count("/")
        assert f'<a href="{up}de/{page}">Deutsch</a>' in (folder / page).read_text(encoding="utf-8")
        assert f'<a href="../{up}{page}">English</a>' in (folder / "de" / page).read_text(encoding="utf-8")


def test_a_language_that_is_not_there_is_refused_before_a_page_is_written(tmp_path, ran):
    run = tmp_path / "run"
    ran(*MADE["table"][0], "--out", run, "--quiet")
    before = sorted((run / "report").rglob("*"))
    assert "xx" in ran("report", run, "--language", "xx", status=1)
    assert sorted((run / "report").rglob("*")) == before
