"""The documentation site: how-tos do what they say, pages are as generated, and the site builds without a warning."""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from looking import visiting

from assaymark.cli import main

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PEOPLE = DOCS / "how-to" / "human-graders.md"
HOW_TO = sorted({*(DOCS / "how-to").glob("*.md"), DOCS / "check.md", DOCS / "scale.md"} - {PEOPLE})
CHECKER = doctest.OutputChecker()
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_FENCE = re.compile(
    r'^(?:<!-- (?P<note>[^>]*) -->\n)?```(?P<kind>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.M | re.S
)


# --- how-tos ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A fence of a how-to: a file to write, commands or Python to run, or what they print."""

    note: str
    kind: str
    title: str
    text: str


def follow(path: Path, folder: Path, people: Callable[[], None] | None = None) -> None:
    """Do what a page says, in an empty folder, and hold what is printed against what it shows.
    ``people`` grade before what they send back is read."""
    printed = ""
    with chdir(folder):
        for step in (Step(*found.groups(default="")) for found in _FENCE.finditer(read(path))):
            if step.title:
                Path(step.title).parent.mkdir(parents=True, exist_ok=True)
                Path(step.title).write_text(step.text)
            elif step.kind == "text":
                assert CHECKER.check_output(step.text, printed, OPTIONS), f"{path.name}: printed was\n{printed}"
            elif not step.note.startswith("not run: "):
                if people is not None and " --read " in step.text:
                    people()
                printed = ran(step)


def ran(step: Step) -> str:
    """Return the output of the commands or the Python of a step; names of files are filled in as by a shell."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        if step.kind == "python":
            exec(compile(step.text, "<page>", "exec"), {})
        else:
            assert step.kind == "sh"
            for line in step.text.replace("\\\n", " ").splitlines():
                program, *rest = shlex.split(line, comments=True)
                assert program == "assaymark"
                words = [name for one in rest for name in (sorted(map(str, Path().glob(one))) if "*" in one else [one])]
                assert main(words) == (step.note == "exit 1"), f"{line}\n{out.getvalue()}"
    return out.getvalue()


@pytest.mark.parametrize("path", HOW_TO, ids=[path.stem for path in HOW_TO])
def test_a_how_to_works_as_written(path: Path, tmp_path: Path) -> None:
    follow(path, tmp_path)


@pytest.mark.browser
def test_two_people_grade_and_the_verdict_says_so(browser: Any, tmp_path: Path) -> None:
    """Each text has one to five reasons, and is graded by their number, by keyboard alone."""

    def people() -> None:
        for grader in ("ab", "cd"):
            with visiting(browser, accept_downloads=True) as visitor:
                visitor.open((tmp_path / f"label-{grader}.html").as_uri())
                for _ in range(60):
                    reasons = str(visitor.page.text_content("#text")).count("Because")
                    visitor.page.keyboard.press(str(reasons))
                    visitor.page.keyboard.press("Enter")
                visitor.page.focus("#take")
                with visitor.page.expect_download() as found:
                    visitor.page.keyboard.press("Enter")
                found.value.save_as(tmp_path / found.value.suggested_filename)

    follow(PEOPLE, tmp_path, people)


# --- every statistic ------------------------------------------------------------------------------------------------


def test_every_promised_function_says_what_it_returns_or_shows_it(docs_script) -> None:
    """The pages of the reference are made from these docstrings."""
    names = docs_script("names").promised()
    found = [getattr(importlib.import_module(place), name) for place, kept in names.items() for name in kept]
    said = {one.__name__: inspect.getdoc(one) or "" for one in found if isinstance(one, FunctionType)}
    assert len(said) > 40
    assert [name for name, text in said.items() if not re.search(r"^(>>> |Returns$)", text, re.M)] == []


@pytest.mark.parametrize(("page", "prefix"), [("scoring", "season"), ("metrics", "bench")])
def test_every_measurement_of_a_season_and_of_a_benchmark_has_a_full_row(page: str, prefix: str) -> None:
    code = "".join(read(path) for path in (ROOT / "src" / "assaymark").rglob("*.py"))
    named = set(re.findall(rf'"({prefix}\.[a-z_]+(?:\.[a-z_]+)*)"', code)) - {f"{prefix}.toml"}
    named = {name for name in named if not name.endswith((".css", ".html", ".js"))}
    rows = re.findall(rf"^\| `({prefix}\.[a-z_.]+)`( \| [^|]+){{4}} \|$", read(DOCS / f"{page}.md"), re.M)
    assert sorted(name for name, _ in rows) == sorted(named)


# --- what is generated ------------------------------------------------------------------------------------------------


def test_the_pages_of_printed_figures_and_on_installing_are_as_generated_with_limits_and_extras(docs_script) -> None:
    figures, found = docs_script("seeds_table"), docs_script("install")
    assert read(figures.PAGE) == figures.page()
    text = read(found.PAGE)
    assert text.startswith(found.HEAD)
    rows = re.findall(r"^\| [^|]+ \| ([\d,]+) (MB|s) \| (\d+) \2 \|$", text, re.M)
    assert [unit for _, unit, _ in rows] == ["MB", "s"]
    assert [value for value, _, limit in rows if int(value.replace(",", "")) > int(limit)] == []
    extras = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    assert re.findall(r"^\| `(\w+)` \|", text, re.M) == list(found.EXTRAS) == list(extras)


# --- the site ---------------------------------------------------------------------------------------------------------


REFERENCE = {
    "metrology": "assaymark.metrology", "datasheet": "assaymark.metrology.datasheet", "claims": "assaymark.claims",
    "judging": "assaymark.judging", "portfolio": "assaymark.portfolio", "benchmark": "assaymark.benchmark",
    "market": "assaymark.market", "importers": "assaymark.importers", "engine": "assaymark.engine",
    "agents": "assaymark.agents", "report": "assaymark.report", "verbs": "assaymark.workflow.verbs",
}  # fmt: skip
FETCHED = re.compile(r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//|<link[^>]*\shref="(?:https?:)?//')


def test_the_site_builds_without_a_warning_and_asks_no_other_host_for_anything(tmp_path: Path) -> None:
    """One test, because one build takes seconds. Broken links, anchors and references are warnings."""
    for name in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(name, reason="needs mkdocs-material and mkdocstrings-python: install the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    made = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    # Links may lead elsewhere; nothing that a browser fetches by itself does.
    pages = {path: read(path) for path in tmp_path.rglob("*.html")}
    assert len(pages) > 40
    assert [path.name for path, text in pages.items() if FETCHED.search(text)] == []
    styles = map(read, tmp_path.rglob("*.css"))
    assert [text[:80] for text in styles if re.search(r"url\([\"']?(?:https?:)?//", text)] == []
    for page, package in REFERENCE.items():
        text, names = pages[tmp_path / "reference" / f"{page}.html"], importlib.import_module(package).__all__
        assert [name for name in names if not re.search(rf'id="{package}(\.\w+)?\.{name}"', text)] == []


def test_every_package_with_public_names_has_a_page_of_the_reference() -> None:
    shown = set(re.findall(r"^::: ([\w.]+)$", "".join(map(read, (DOCS / "reference").glob("*.md"))), re.M))
    assert set(REFERENCE.values()) <= shown
    inner = {"cli", "prompting", "workflow"}  # commands, what prompts are made of, and what is called through its verbs
    packages = {path.parent.name for path in (ROOT / "src" / "assaymark").glob("*/__init__.py")} - inner
    assert {f"assaymark.{name}" for name in packages} <= shown


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
