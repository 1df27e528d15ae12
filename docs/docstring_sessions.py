"""Sessions in docstrings, shown as sessions: Markdown takes a line that begins with ``>>>`` for a quotation."""

from __future__ import annotations

from typing import Any

import griffe


class Sessions(griffe.Extension):
    """Puts a fence around every session of a docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute as it is read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its sessions in fences.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nNothing else.").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'Nothing else.']
    """
    found: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if not inside and line.startswith(">>> "):
            inside = True
            found.append("```pycon")
        elif inside and not line.strip():
            inside = False
            found.append("```")
        found.append(line)
    return "\n".join(found[:-1])
