"""Every kind of page of every example in Chromium: silent, alone, whole on every screen and paper, open to all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from browsing import APART
from filelock import FileLock
from looking import ALL_SETTINGS, NARROWEST, TWO_SETTINGS, Visitor, said, visiting
from markup import Page, covering, pages_below
from page_examples import NAMES

from assaymark.encoding import sha256_text

pytestmark = pytest.mark.browser

OPENED = [name for name in NAMES if name not in ("made benchmarks", "made datasheets")]
"""Those two are built of what real benchmarks and datasheets are built of, and are gone through as files."""


RECORDS = {"agents", "answers", "asked", "calls", "datasheet", "decisions", "episodes", "judgments", "ledger"}
"""Folders of pages of one kind: the first three of them are opened, the last, and whichever holds something new."""


class Seen:
    """What pages were built of that have been gone through, or are being: by this worker or by another."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def take(self, pages: Mapping[str, Page]) -> set[str]:
        """Pages that hold between them whatever is new in these, which nobody else is told from now on."""
        marks = {name: {sha256_text(repr(one))[:16] for one in page.blocks} for name, page in pages.items()}
        with FileLock(f"{self.path}.lock"):
            known = set(self.path.read_text().split())
            self.path.write_text("\n".join(known.union(*marks.values())))
        return set(covering(marks, known))


@pytest.fixture(scope="module")
def seen(once) -> Seen:
    return Seen(once("kinds-of-pages", lambda folder: (folder / "kinds.txt").touch()) / "kinds.txt")


def opened(pages: Iterable[str]) -> set[str]:
    """Of folders of records some pages, of all others each."""
    folders = defaultdict(list)
    for name in sorted(pages):
        folder = Path(name).parent
        # Answers and calls are numbered by what they are: the texts of calls are another kind than their list.
        folders[folder, Path(name).stem.partition("-")[0] if folder.name == "calls" else ""].append(name)
    few = [names[:3] + names[-1:] if folder.name in RECORDS else names for (folder, _), names in folders.items()]
    return {name for names in few for name in names}


def problems_of(visitor: Visitor, path: Path, name: str, new: bool) -> list[str]:
    """What is wrong with one page. All are folded out on the narrowest screen; one in which there is something new is
    gone through.
    """
    visitor.open(path.as_uri(), NARROWEST)
    found, main = visitor.spoken(path.as_uri()), path.name == "index.html"
    if new or main:
        for setting in TWO_SETTINGS:
            visitor.picture(name, setting)
        found += visitor.overflow(390)
    if new:
        found += visitor.printed()
    found += visitor.unfolded_overflow(NARROWEST)
    if new or main:
        for width in (1440, 390):
            visitor.set(("light", width))
            found += [f"labels at {width} px: {one}" for one in visitor.page.evaluate(APART)]
    return found + (visitor.barriers(ALL_SETTINGS if main else TWO_SETTINGS) if new else [])


@pytest.mark.parametrize("name", OPENED)
def test_pages_are_silent_fit_and_are_open_to_everybody(browser, example, pictures, tmp_path, seen, name):
    root = example(name)
    problems: list[str] = []
    pages = pages_below(root)
    if name == "joined":  # answers and calls as in the examples that are joined, but for the menu, which others have
        pages = {path: page for path, page in pages.items() if Path(path).parent.name not in ("answers", "calls")}
    new = seen.take(pages)
    with visiting(browser, pictures) as visitor:
        for path in sorted(new | opened(pages)):
            page = f"{name.replace(' ', '-')}/{path}"
            if found := problems_of(visitor, root / path, page, path in new):
                visitor.shots = pictures or tmp_path
                visitor.open((root / path).as_uri())
                shown = [str(visitor.picture(page, setting)) for setting in TWO_SETTINGS]
                visitor.shots = pictures
                problems += [f"{page}: {one}" for one in found] + [f"{page}: see {', '.join(shown)}"]
    assert not problems, said(problems)
