"""What every page is rendered with: the templates, their style and script, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from types import SimpleNamespace
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from assaymark.claims.messages import Catalogue, english

_WORDS: Final = (
    "skip", "pages", "languages", "copy", "copied", "not_copied", "say_also", "open", "close", "covers", "search",
    "shown", "withheld", "plan", "footer",
)  # fmt: skip


@cache
def environment() -> Environment:
    """The templates of this package, with every value escaped and an undefined one an error.

    ``ui`` are the words of the frame, in English where a page does not bring those of its own language.
    """
    made = Environment(
        loader=PackageLoader("assaymark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["ui"] = frame_words(english())
    return made


def frame_words(catalogue: Catalogue) -> SimpleNamespace:
    """The words of the frame in a language, by name; ``lang`` is its code.

    >>> frame_words(english()).copy
    'Copy'
    """
    return SimpleNamespace(lang=catalogue.language, **{word: catalogue.say(f"frame.{word}") for word in _WORDS})


@cache
def asset(name: str) -> str:
    """A style sheet or script, without the spaces that only its author needs."""
    loader = environment().loader
    assert loader is not None
    source, _, _ = loader.get_source(environment(), name)
    lines = (line.strip() for line in source.splitlines())
    return re.sub(r"\n+", "\n", "\n".join(lines)).strip()


@cache
def content_security_policy() -> str:
    """Nothing may be loaded, inline styles may apply, and exactly one script may run: ours, by its hash."""
    digest = base64.b64encode(hashlib.sha256(asset("page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
