"""Exclude from pytest the part of the site that needs the extra ``docs``, where that is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("griffe") else ["reference_docstrings.py"]
