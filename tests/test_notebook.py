"""In a kernel, as Jupyter runs it: the tutorial, results that show themselves, and calls that can be interrupted."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
WHY = "needs nbclient and ipykernel to run a notebook (extra: test)"

ASKING = '''
import asyncio, pathlib
from assaymark.engine import CallSpec, Ledger, Message, Reply, Text, run_calls

class Slow:
    """Answers after a moment, and says in a file that it was asked."""
    async def complete(self, call):
        with open("asked.txt", "a") as file:
            print(call.key, file=file)
        await asyncio.sleep(0.3)
        return Reply(text="fine", model="slow-1")

def call(n):
    return CallSpec(model="a/slow", messages=(Message("user", (Text.of(str(n)),)),), template="")

calls = [call(n) for n in range(40)]

def ask():
    with Ledger.open(pathlib.Path("ledger.db")) as ledger:
        made = run_calls(ledger, calls, {"a/slow": Slow()}, concurrency=2)
        return made.interrupted, made.made, len(ledger.orphaned()), made.left
'''


def test_the_notebook_is_as_generated() -> None:
    """By ``docs/notebook.py``, which is no part of the package."""
    made = runpy.run_path(str(DOCS / "notebook.py"))
    assert made["NOTEBOOK"].read_text(encoding="utf-8") == made["notebook"](made["SOURCE"].read_text(encoding="utf-8"))


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Any]:
    """A client of a kernel that works in an empty folder."""
    nbclient = pytest.importorskip("nbclient", reason=WHY)
    pytest.importorskip("ipykernel", reason=WHY)
    nbformat = pytest.importorskip("nbformat", reason=WHY)
    made = nbclient.NotebookClient(
        nbformat.v4.new_notebook(), timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    with made.setup_kernel():
        yield made


def run(kernel: Any, code: str) -> list[dict[str, Any]]:
    import nbformat

    kernel.nb.cells.append(nbformat.v4.new_code_cell(code))
    cell = kernel.execute_cell(kernel.nb.cells[-1], len(kernel.nb.cells) - 1)
    return list(cell.outputs)


def said(output: dict[str, Any]) -> str:
    """What an output of a cell says."""
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "".join(text)


def agrees(stored: str, made: str) -> bool:
    """Whether two texts are the same but for where lines break; three dots stand for anything, as on the page."""
    parts = [re.escape("".join(part.split())) for part in stored.split("...")]
    return re.fullmatch(".*".join(parts), "".join(made.split())) is not None


def joined(outputs: Iterable[Any]) -> list[Any]:
    """Outputs with what was printed in one piece: a kernel sends it in as many as it likes."""
    made: list[Any] = []
    for output in outputs:
        if made and output.output_type == made[-1].output_type == "stream" and output.name == made[-1].name:
            made[-1].text += output.text
        else:
            made.append(output)
    return made


def test_the_tutorial_shows_in_a_kernel_what_its_page_shows(kernel: Any, tmp_path: Path) -> None:
    import nbformat

    cells = [cell for cell in nbformat.read(DOCS / "tutorial.ipynb", as_version=4).cells if cell.cell_type == "code"]
    figures = 0
    for cell in cells:
        kernel.nb.cells.append(nbformat.from_dict(cell | {"outputs": []}))
        made = joined(kernel.execute_cell(kernel.nb.cells[-1], len(kernel.nb.cells) - 1).outputs)
        assert len(made) == len(cell.outputs), cell.source
        for stored, output in zip(cell.outputs, made, strict=True):
            assert stored.output_type == output.output_type, cell.source
            assert agrees(said(stored), said(output)), cell.source
            figures += "<svg" in output.get("data", {}).get("text/html", "")
    assert figures == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_drains_and_the_cell_goes_on_when_it_is_run_again(kernel: Any, tmp_path: Path) -> None:
    run(kernel, ASKING)
    asked = tmp_path / "asked.txt"

    def interrupt() -> None:
        while not asked.exists():
            time.sleep(0.01)
        asyncio.run(kernel.km.interrupt_kernel())

    pressing = threading.Thread(target=interrupt)
    pressing.start()
    output = run(kernel, "ask()")[-1]
    pressing.join()
    interrupted, made, orphaned, left = ast.literal_eval(said(output))
    assert (interrupted, orphaned, made + left) == (True, 0, 40)
    assert made == len(asked.read_text().splitlines()) < 40
    asked.unlink()
    again = run(kernel, f"calls = calls[: {made} + 2]; ask()")[-1]
    assert ast.literal_eval(said(again)) == (False, 2, 0, 0)
    assert len(asked.read_text().splitlines()) == 2
