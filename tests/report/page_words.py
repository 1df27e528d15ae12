"""Pages of made-up studies, made once, and what a reader reads on them."""

from __future__ import annotations

import html
import re
from functools import cache

import assay_runs
import full_runs

from assaymark.report import render_pages

QUESTIONS = ("index", "agents", "agreement", "stability", "controls", "fact-check", "plan")
"""The first page, and those that hold what its questions link to."""


@cache
def pages(name: str) -> dict[str, str]:
    """The pages of a run by its name."""
    return dict(render_pages(getattr(assay_runs if hasattr(assay_runs, name) else full_runs, name)()))


def words(page: str) -> str:
    """The text of a page: what a reader sees, figures and their descriptions included."""
    page = re.sub(r"<(style|script)[^>]*>.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page))).replace("\u00a0", " ")


def every(made: dict[str, str]) -> str:
    """The text of the first page and of those that its questions link to."""
    return " ".join(words(made[f"{name}.html"]) for name in QUESTIONS)


def section(page: str, anchor: str) -> str:
    """The markup of one section."""
    return re.search(rf'<section[^>]* id="{anchor}".*?</section>', page, flags=re.S)[0]  # type: ignore[index]
