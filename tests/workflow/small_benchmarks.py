"""The plan of a small benchmark, for tests: twelve instruments, two profiles, a calm window and one of stress."""

from __future__ import annotations

from pathlib import Path

_PLAN = """
[market]
instruments = 12
[pipeline]
profiles = ["balanced", "conservative"]
windows = ["normal", "covid-2020"]
frequency = "quarterly"
[questions]
per_template = {per_template}
file = "{questions}"
"""


def small_plan(questions: Path, per_template: int, *words: str) -> str:
    """The plan, with so many of the questions in a file for each template, and the reference models of these words."""
    models = (
        f'[[models]]\nname = "{word}"\nfamily = "{word}"\nmodel = "reference/portbench-{word}"\n' for word in words
    )
    return _PLAN.format(questions=questions, per_template=per_template) + "".join(models)
