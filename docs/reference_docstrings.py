"""Changes to docstrings for the reference.

Markdown takes a line that begins with ``>>>`` for a quotation, so sessions are put in fences. A name for a list of
allowed words has no docstring, and would be left out. A constant is shown with its value, unless that is long.
"""

from __future__ import annotations

from typing import Any

import griffe

_WIDEST = 300


class Docstrings(griffe.Extension):
    """Puts a fence around every session of a docstring, and names what is a list of words."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute as it is read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
        elif isinstance(obj, griffe.Attribute) and str(obj.value).startswith("Literal["):
            obj.docstring = griffe.Docstring("One of these words.", parent=obj)
        if isinstance(obj, griffe.Attribute) and len(str(obj.value or "")) > _WIDEST:
            obj.value = "..."


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
