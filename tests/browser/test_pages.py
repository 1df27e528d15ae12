"""Every kind of page of every example in Chromium: silent, alone, whole on every screen and paper, open to all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from browsing import APART
from filelock import FileLock
from looking import BROKEN, NARROWEST, Visitor, said, visiting
from markup import Page, covering, pages_below
from page_examples import NAMES

from assaymark.records import sha256_text

pytestmark = pytest.mark.browser

WHOLE = ("demo", "season", "portbench", "made studies", "capitalbench")
"""Of these pages without anything new are opened too: their names and texts are as long as those of real records."""
RECORDS = {"agents", "answers", "asked", "calls", "datasheet", "decisions", "episodes", "judgments", "ledger"}
"""Folders of pages of one kind: the first two of them are opened, the last, and whichever holds something new."""


class Seen:
    """The blocks of a track's pages that were checked, or are being checked: here or by another worker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def take(self, track: str, pages: Mapping[str, Page]) -> set[str]:
        """Pages that hold between them whatever is new in these, which nobody else is told from now on. Of pages
        with as much that is new a short one: a ledger of thousands of rows takes seconds at every width.
        """
        short = sorted(pages.items(), key=lambda one: len(one[1].text))
        marks = {name: {sha256_text(track + repr(one))[:16] for one in page.blocks} for name, page in short}
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
    few = [names[:2] + names[-1:] if folder.name in RECORDS else names for (folder, _), names in folders.items()]
    return {name for names in few for name in names}


def problems_of(visitor: Visitor, path: Path, name: str, new: bool) -> list[str]:
    """Return the problems of a page: all are folded out on the narrowest screen, and the first pages and those in which
    there is something new are gone through."""
    visitor.open(path.as_uri(), NARROWEST)
    found = visitor.spoken(path.as_uri())
    if new or path.name == "index.html":
        visitor.pictures(name)
        found += [*visitor.overflow(1440, 768, 390), *visitor.printed()]
        for width in (1440, 390):
            visitor.set(("light", width))
            found += [f"labels at {width} px: {one}" for one in visitor.page.evaluate(APART)]
            found += [f"broken at {width} px: {one}" for one in visitor.page.evaluate(BROKEN)]
    found += visitor.overflow(NARROWEST[1], unfolded=True)
    return found + (visitor.barriers() if new else [])


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_silent_fit_and_are_open_to_everybody(browser, example, pictures, tmp_path, seen, name):
    root, problems = example(name), []
    track = next((one for one in ("datasheet", "season", "portbench") if one in name), "study")
    pages = pages_below(root)
    if name == "joined":  # answers and calls as in the examples that are joined, but for the menu, which others have
        pages = {path: page for path, page in pages.items() if Path(path).parent.name not in ("answers", "calls")}
    new = seen.take(track, pages)
    with visiting(browser, pictures) as visitor:
        for path in sorted(new | opened(pages if name in WHOLE else [one for one in pages if "index" in one])):
            page = f"{name.replace(' ', '-')}/{path}"
            if found := problems_of(visitor, root / path, page, path in new):
                visitor.open((root / path).as_uri())
                shown = ", ".join(visitor.pictures(page, pictures or tmp_path))
                problems += [f"{page}: {one}" for one in found] + [f"{page}: see {shown}"]
    assert not problems, said(problems)
