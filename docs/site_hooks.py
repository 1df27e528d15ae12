"""Hooks of the documentation site, which ``mkdocs.yml`` names: pages are written for the repository and read there too.

A page may link to a file outside ``docs/``, such as a study; the site then carries that file. A session in a fence is
highlighted as one, and the directives that only doctest reads are not shown. What the theme left unnamed gets a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CARRIED = ("CONTRIBUTING.md", "CHANGELOG.md", "justfile", "pyproject.toml", "studies", "examples")

_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?\)")
_DIRECTIVE = re.compile(r"[ ]+# doctest: [+\w ,]+$", re.M)


def carried() -> Iterator[Path]:
    """The files outside ``docs/`` that the site has as well."""
    for name in CARRIED:
        path = ROOT / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (one for one in found if one.is_file() and "__pycache__" not in one.parts)


def on_files(files: Any, config: Any) -> Any:
    """Add the files that pages link to outside ``docs/``."""
    from mkdocs.structure.files import File  # here, so that the module can be read where mkdocs is not installed

    for path in carried():
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Show sessions as sessions, and point links to where the site has their files."""
    here = Path(page.file.abs_src_path).parent
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_pointed(markdown[end : fence.start()], here, page.file.src_uri), _session(fence[0])]
        end = fence.end()
    return "".join([*parts, _pointed(markdown[end:], here, page.file.src_uri)])


def _session(fence: str) -> str:
    if fence.startswith("```python\n>>>"):
        fence = fence.replace("```python", "```pycon", 1)
    return _DIRECTIVE.sub("", fence)


def _pointed(text: str, here: Path, uri: str) -> str:
    def target(match: re.Match[str]) -> str:
        opening, link, fragment = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", link):
            return match[0]
        path = (here / link).resolve()
        name = path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix()
        return f"{opening}{os.path.relpath(name, Path(uri).parent)}{fragment})"

    return _LINK.sub(target, text)


def on_post_page(output: str, **_: Any) -> str:
    """Label the theme's search dialog for screen readers."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')
