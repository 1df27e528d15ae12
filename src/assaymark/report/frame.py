"""What every page is rendered with: the templates, their style and script, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def environment() -> Environment:
    """The templates of this package, with every value escaped and an undefined one an error."""
    return Environment(
        loader=PackageLoader("assaymark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


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
