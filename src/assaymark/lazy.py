"""Lazy imports for packages: a module is loaded when one of its names is first used, so that commands start fast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def exported(package: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package, which exports the names that it imports under ``if TYPE_CHECKING``."""
    places: dict[str, tuple[str, str]] = {}

    def get(name: str) -> Any:
        if not places:  # the module of each name and what it is called there, read from the package's own text
            spec = find_spec(package)
            source = spec.loader.get_source(package) if spec and spec.loader else None  # type: ignore[attr-defined]
            typed = [node for node in ast.parse(source or "").body if isinstance(node, ast.If)]
            imports = [item for node in typed for item in node.body if isinstance(item, ast.ImportFrom)]
            # At once, since another thread may ask meanwhile.
            places.update(
                {name.asname or name.name: (str(node.module), name.name) for node in imports for name in node.names}
            )
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, called = places[name]
        value = getattr(import_module(module), called)
        setattr(sys.modules[package], name, value)
        return value

    return get
