"""Every page of every example in Chromium: silent, alone, whole at every width and on paper, open to everybody."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import APART
from filelock import FileLock
from looking import ALL_SETTINGS, NARROWEST, TWO_SETTINGS, Visitor, said, visiting
from page_examples import NAMES

from assaymark.encoding import sha256_text

pytestmark = pytest.mark.browser

OPENED = [name for name in NAMES if name not in ("made benchmarks", "made datasheets")]
"""Those two are built of what real benchmarks and datasheets are built of, and are gone through as files."""


class Seen:
    """What pages were built of that have been gone through, or are being: by this worker or by another."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_new(self, kinds: set[str]) -> bool:
        """Whether a page of these kinds is built of something new, which nobody else is told from now on."""
        with FileLock(f"{self.path}.lock"):
            known = set(self.path.read_text().split()) if self.path.exists() else set()
            marks = {sha256_text(kind)[:16] for kind in kinds}
            self.path.write_text("\n".join(known | marks))
        return not marks <= known


@pytest.fixture(scope="module")
def seen(once) -> Seen:
    return Seen(once("kinds-of-pages", Path.touch) / "kinds.txt")


def problems_of(visitor: Visitor, path: Path, name: str, seen: Seen) -> list[str]:
    """What is wrong with one page. All are opened and folded out on the narrowest screen; a page is gone through
    where it is built of something that no page before it was.
    """
    visitor.open(path.as_uri(), NARROWEST)
    kinds, found, main = visitor.kinds(), visitor.spoken(path.as_uri()), path.name == "index.html"
    new = seen.is_new(kinds)
    settings = ALL_SETTINGS if main else TWO_SETTINGS
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
    return found + (visitor.barriers(settings) if new else [])


@pytest.mark.parametrize("name", OPENED)
def test_every_page_is_silent_fits_and_is_open_to_everybody(browser, example, pictures, tmp_path, seen, name):
    root = example(name)
    problems: list[str] = []
    with visiting(browser, pictures) as visitor:
        for path in sorted(root.rglob("*.html")):
            if name == "joined" and path.parent.name in ("answers", "calls"):
                continue  # as in the examples that are joined, but for the menu, which others have too
            page = f"{name.replace(' ', '-')}/{path.relative_to(root).as_posix()}"
            if found := problems_of(visitor, path, page, seen):
                visitor.shots = pictures or tmp_path
                visitor.open(path.as_uri())
                shown = [str(visitor.picture(page, setting)) for setting in TWO_SETTINGS]
                visitor.shots = pictures
                problems += [f"{page}: {one}" for one in found] + [f"{page}: see {', '.join(shown)}"]
    assert not problems, said(problems)
