"""Folders of pages that are opened, each built once for all workers, and where pictures of them go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import page_examples
import pytest


@pytest.fixture(scope="session")
def example(once, request) -> Callable[[str], Path]:
    """``example(name)``: the folder of an example's pages. Not to be changed."""

    def built(name: str) -> Path:
        if name == "demo":
            return request.getfixturevalue("demo").parent / "pages"
        if name == "capitalbench":
            shared = request.getfixturevalue("shared")
            return once("pages-capitalbench", lambda folder: page_examples.capitalbench(folder / "run", shared)) / "run"
        if name == "joined":
            parts = {part: built(part) for part in ("datasheets", "datasheet of a log")}
            return once("pages-joined", lambda folder: page_examples.joined(folder / "run", *parts.values())) / "run"
        build = page_examples.BUILT[name]
        return once(f"pages-{name.replace(' ', '-')}", lambda folder: build(folder / "run")) / "run"

    return built


@pytest.fixture(scope="session")
def pictures() -> Path | None:
    """The folder for pictures of all pages, which ASSAYMARK_SCREENSHOTS names."""
    named = os.environ.get("ASSAYMARK_SCREENSHOTS")
    return Path(named).resolve() if named else None
