"""Pairwise judging: stimuli with known differences, gates, prompts, replies, and built-in judges with planted flaws.

`build_stimuli` makes pairs of texts from hand-written tasks; `check` applies the gates; `plan_pair_calls` makes the
calls of one judge, and `pair_call` turns each reply into a record. `point_stimuli` makes the texts of the same ladder,
with filler and without, for judges that score one text at a time.
"""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.judging.pairs.calls import (
        GATES, PAIR_PROMPTS, STRICT, TIE_ALLOWED, Pair, PlannedPair, Requirement, Stimulus, Task, check,
        finance_tasks, load_tasks, marks, pair_call, pair_form, pair_prompt_hashes, plan_pair_calls,
    )  # fmt: skip
    from assaymark.judging.pairs.reference import (
        PLANTED_PAIRS, pair_argument_problems, planted_values, reference_pair_judges,
    )  # fmt: skip
    from assaymark.judging.pairs.stimuli import (
        PointStimulus, build_stimuli, manifest_of, point_records, point_stimuli, stimuli_json,
    )  # fmt: skip

__all__ = [
    "GATES", "PAIR_PROMPTS", "PLANTED_PAIRS", "STRICT", "TIE_ALLOWED", "Pair", "PlannedPair", "PointStimulus",
    "Requirement", "Stimulus", "Task", "build_stimuli", "check", "finance_tasks", "load_tasks", "manifest_of", "marks",
    "pair_argument_problems", "pair_call", "pair_form", "pair_prompt_hashes", "plan_pair_calls", "planted_values",
    "point_records", "point_stimuli", "reference_pair_judges", "stimuli_json",
]  # fmt: skip

__getattr__ = exported(__name__)
