"""Models by name. Clients live here; reference models live with what they imitate, and are registered from above."""

from __future__ import annotations

from assaymark.engine.models.registry import Registry, resolve

__all__ = ["Registry", "resolve"]
