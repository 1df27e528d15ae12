"""The tutorial as a notebook, made from its page: prose and code in cells, without what was printed.

python docs/notebook.py
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
SOURCE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"

_FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
_ASKS = re.compile(r"\bverbs\.(?:lock|decide|judge)\(")
_DIRECTIVE = re.compile(r"[ ]+# doctest: .*$", re.M)

_FIRST = {
    "cell_type": "code",
    "execution_count": None,
    "metadata": {},
    "outputs": [],
    "source": "import asyncio  # a notebook has an event loop of its own: what asks models is done in a thread",
}


def notebook(text: str) -> str:
    """The notebook of a page, as JSON that is the same for the same page."""
    cells = [_numbered(number, cell) for number, cell in enumerate([_FIRST, *_cells(text)], 1)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    end = 0
    for fence in _FENCE.finditer(text):
        yield from _prose(text[end : fence.start()])
        for source, raises in code_of(fence[1]):
            tags = {"tags": ["raises-exception"]} if raises else {}
            yield {"cell_type": "code", "execution_count": None, "metadata": tags, "outputs": [], "source": source}
        end = fence.end()
    yield from _prose(text[end:])


def _prose(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": text.strip()}


def _numbered(number: int, cell: dict[str, Any]) -> dict[str, Any]:
    lines = cell["source"].splitlines(keepends=True)
    return cell | {"id": f"cell-{number:03}", "source": lines}


def code_of(session: str) -> Iterator[tuple[str, bool]]:
    """The code of a session, and whether it ends in an error on purpose; cut where a session shows a result.

    >>> error = "Traceback (most recent call last):\\n    ...\\nKeyError: 1\\n"
    >>> list(code_of(">>> n = 2\\n>>> n + 1\\n3\\n>>> {}[1]\\n" + error))
    [('n = 2\\nn + 1', False), ('{}[1]', True)]
    """
    waiting: list[str] = []
    for example in doctest.DocTestParser().get_examples(session):
        waiting.append(in_a_thread(_DIRECTIVE.sub("", example.source).rstrip("\n")))
        if example.want:
            yield "\n".join(waiting), example.exc_msg is not None
            waiting = []
    if waiting:
        yield "\n".join(waiting), False


def in_a_thread(code: str) -> str:
    """The code with every call that asks models made in a thread.

    >>> in_a_thread("verbs.judge(folder, models()).made")
    '(await asyncio.to_thread(verbs.judge, folder, models())).made'
    """
    found = _ASKS.search(code)
    if found is None:
        return code
    end, depth = found.end(), 1
    while depth:
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    call = f"{code[found.start() : found.end() - 1]}, {code[found.end() : end]}"
    return f"{code[: found.start()]}(await asyncio.to_thread({call}){in_a_thread(code[end:])}"


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__)
    NOTEBOOK.write_text(notebook(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
