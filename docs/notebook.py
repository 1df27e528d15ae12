"""The tutorial as a notebook, made from its page: prose and code in cells, each with what the page shows below it.

python docs/notebook.py
"""

from __future__ import annotations

import ast
import doctest
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
SOURCE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"

_FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
_DIRECTIVE = re.compile(r"[ ]+# doctest: .*$", re.M)


def notebook(text: str) -> str:
    """The notebook of a page, as JSON that is the same for the same page."""
    cells = [_numbered(number, cell) for number, cell in enumerate(_cells(text), 1)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    end, counts, printers = 0, itertools.count(1), {"print"}
    for fence in _FENCE.finditer(text):
        yield from _prose(text[end : fence.start()])
        for source, shown in code_of(fence[1], printers):
            count = next(counts)
            tags = {"tags": ["raises-exception"]} if any(one["output_type"] == "error" for one in shown) else {}
            outputs = [one | ({"execution_count": count} if "data" in one else {}) for one in shown]
            yield {
                "cell_type": "code", "execution_count": count, "metadata": tags, "outputs": outputs, "source": source,
            }  # fmt: skip
        end = fence.end()
    yield from _prose(text[end:])


def _prose(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": text.strip()}


def _numbered(number: int, cell: dict[str, Any]) -> dict[str, Any]:
    lines = cell["source"].splitlines(keepends=True)
    return cell | {"id": f"cell-{number:03}", "source": lines}


def code_of(session: str, printers: set[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The code of a session and the outputs that it has in a notebook; cut where the session shows a result.

    ``printers`` are the functions that print; those that the session defines are added.

    >>> error = "Traceback (most recent call last):\\n    ...\\nKeyError: 1\\n"
    >>> made = dict(code_of(">>> n = 2\\n>>> n + 1\\n3\\n>>> {}[1]\\n" + error, {"print"}))
    >>> list(made)
    ['n = 2\\nn + 1', '{}[1]']
    >>> made["n = 2\\nn + 1"][0]["data"]["text/plain"], made["{}[1]"][0]["ename"]
    (['3'], 'KeyError')
    """
    waiting: list[str] = []
    for example in doctest.DocTestParser().get_examples(session):
        printers |= _defined_printers(example.source)
        waiting.append(_DIRECTIVE.sub("", example.source).rstrip("\n"))
        if example.want:
            yield "\n".join(waiting), [_output(example, printers)]
            waiting = []
    if waiting:
        yield "\n".join(waiting), []


def _output(example: doctest.Example, printers: set[str]) -> dict[str, Any]:
    """Return the output below an example as a kernel gives it: an error, a printed text, or the value."""
    if example.exc_msg is not None:
        kind, _, words = example.exc_msg.strip().partition(": ")
        return {"output_type": "error", "ename": kind.rpartition(".")[2], "evalue": words, "traceback": [example.want]}
    lines = example.want.rstrip("\n").splitlines(keepends=True)
    if _is_value(example.source, printers):
        return {"output_type": "execute_result", "data": {"text/plain": lines}, "metadata": {}}
    return {"output_type": "stream", "name": "stdout", "text": lines}


def _is_value(source: str, printers: set[str]) -> bool:
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.Expr):
        return False
    return not (isinstance(last.value, ast.Call) and ast.unparse(last.value.func) in printers)


def _defined_printers(source: str) -> set[str]:
    made = (one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef))
    return {one.name for one in made if "print(" in ast.unparse(one)}


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__)
    NOTEBOOK.write_text(notebook(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
