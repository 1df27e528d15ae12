"""Season files, for tests: two rule-based agents over some weeks of the embedded market."""

from __future__ import annotations


def season_text(
    *,
    prompt: str = "Grow the book.",
    head: str = "",
    seed: int = 0,
    first: str = "2024-03-01",
    last: str = "2024-03-15",
    calendar: str = "",
    rules: str = "",
    model: str = "reference/momentum",
    other: str = "reference/equal-weight",
) -> str:
    """A season file with some lines changed or added."""
    universe = "" if "universe" in head else "universe = 8"
    return f"""
version = "1"
name = "spring"
title = "A short season"
seed = {seed}
prompt = '''{prompt}'''
{universe}
{head}

[calendar]
first = {first}
last = {last}
{calendar}

[rules]
{rules}

[[agents]]
name = "one"
family = "reference"
model = "{model}"

[[agents]]
name = "two"
family = "reference"
model = "{other}"
"""
