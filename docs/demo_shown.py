"""Screens of the demo and of `assaymark check` for the README and the documentation.

python docs/demo_shown.py          makes all anew
"""

from __future__ import annotations

import csv
import io
import random
import re
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from rich.console import Console, RenderableType

from assaymark import check
from assaymark.cli import main
from assaymark.workflow.publish import report
from assaymark.workflow.run_folder import RunFolder

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
SCORES = DOCS.parent / "examples" / "scores.csv"


def show_demo() -> None:
    """Run the demo and write what it shows."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "demo"
        if main(["demo", "--quiet", "--out", str(folder)]) != 0:
            sys.exit("the demo failed")
        text = screen(folder)
    SCORES.write_text(scores())
    fill(DOCS / "index.md", "screen", f"```text\n{screen_head(text)}\n```")
    fill(README, "screen", f"```text\n{check_head()}\n```")


def fill(path: Path, mark: str, block: str) -> None:
    """Write a block between two marks of a page."""
    whole = f"<!-- {mark} -->\n{block}\n<!-- /{mark} -->"
    path.write_text(re.sub(f"<!-- {mark} -->.*?<!-- /{mark} -->", lambda _: whole, path.read_text(), flags=re.S))


def scores() -> str:
    """The README's table: four invented support bots on 24 questions, graded by three invented judges."""
    rng, out = random.Random(7), io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["question", "system", "judge", "score"])
    for question in range(24):
        ease = rng.gauss(0, 0.5)
        for system, skill in (("Atlas", 3.9), ("Borealis", 3.1), ("Cirrus", 3.0), ("Dune", 1.9)):
            quality = skill + ease + rng.gauss(0, 0.5)
            for judge, leniency in (("Wren", 0.0), ("Heron", 0.3), ("Kestrel", -0.2)):
                score = round(quality + leniency + rng.gauss(0, 0.45))
                rows.writerow([f"q{question + 1:02}", system, judge, min(5, max(1, score))])
    return out.getvalue()


def check_head() -> str:
    """Return the output of `assaymark check` on the README's table, up to the next steps."""
    with chdir(README.parent):
        found = check(SCORES.relative_to(README.parent))
    return printed(found.summary, width=106).split("\nNext")[0].rstrip()


def screen(folder: Path) -> str:
    """Return the terminal output of a finished run, 80 columns wide, without colour."""
    return printed(report(RunFolder(folder)).summary)


def printed(summary: RenderableType, width: int = 80) -> str:
    """A summary as a terminal without colour shows it."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, color_system=None).print(summary)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def screen_head(text: str) -> str:
    """The screen down to who is ahead."""
    return text.split("\nDo planted texts")[0].rstrip()


if __name__ == "__main__":
    show_demo()
