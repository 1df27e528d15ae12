"""Scoring of a season: grades of judges over a whole horizon into axes, composites, totals, bands and tie classes."""

from __future__ import annotations
