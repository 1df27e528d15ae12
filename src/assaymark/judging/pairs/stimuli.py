"""Stimuli: pairs of texts whose difference is known because it was built, deterministic from a seed.

Ten tasks make 450 pairs, shown in both orders: 900 calls for one judge under one prompt. How each condition is built
is in `arms`; what is checked before any call in `gates`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.pairs.arms import drafts
from assaymark.judging.pairs.tasks import Task, task_problems
from assaymark.judging.pairs.texts import Brief, Order, Pair, Stimulus
from assaymark.records import PairCondition, canonical_json, content_id, parse, record, sha256_text

VERSION = "1"
"""Changes with anything that changes a stimulus made from the same tasks and seed."""


@record
class Manifest:
    """What a set of stimuli is: its hash, and how many pairs of which kind it holds.

    ``sha256`` covers the version and every pair with both texts, its situation and requirements, condition, variant,
    difference and orders. ``counts`` are pairs by condition, ``variants`` by condition and variant; the ladder's
    variants are its steps. Calls under one prompt and in one trial are ``calls``.
    """

    version: str
    seed: int
    tasks: int
    pairs: int
    calls: int
    counts: Mapping[str, int]
    variants: Mapping[str, int]
    sha256: str


def build_stimuli(tasks: Sequence[Task], seed: int) -> tuple[Pair, ...]:
    """Every pair of a datasheet, task by task: ladder, controls without a difference, fillers, vacuum.

    A task's pairs depend on the seed and on that task alone: leaving out or adding another changes none of them.

    Parameters
    ----------
    tasks : sequence of Task
        From `load_tasks` or `finance_tasks`. For each task: 15 ladder pairs over whole requirements and 4 over half
        of one, 6 with the same and 6 with different requirements of equal number, 5 with filler, 6 without any
        difference and up to 3 with next to none.
    seed : int
        Which requirements are drawn, in which order, and which text is called u.

    Raises
    ------
    InputError
        The tasks cannot carry stimuli (`task_problems`).

    Examples
    --------
    >>> from assaymark.judging.pairs.tasks import finance_tasks
    >>> pairs = build_stimuli(finance_tasks(), seed=7)
    >>> len(pairs), pairs == build_stimuli(finance_tasks(), seed=7)
    (450, True)
    """
    if problems := task_problems(tasks):
        raise InputError("tasks", problems)
    return tuple(pair for task in tasks for pair in drafts(task, seed))


def manifest_of(pairs: Sequence[Pair], seed: int) -> Manifest:
    """The manifest of pairs that were built from ``seed``.

    >>> from assaymark.judging.pairs.tasks import finance_tasks
    >>> made = manifest_of(build_stimuli(finance_tasks(), seed=7), seed=7)
    >>> made.calls, made.counts["vacuum"], made.counts["same_subset"]
    (900, 60, 60)
    """
    return Manifest(
        version=VERSION,
        seed=seed,
        tasks=len({pair.task for pair in pairs}),
        pairs=len(pairs),
        calls=sum(len(pair.orders) for pair in pairs),
        counts=dict(Counter(pair.condition for pair in pairs)),
        variants=dict(Counter(f"{pair.condition}.{pair.variant}" for pair in pairs)),
        sha256=_digest(pairs),
    )


def _digest(pairs: Sequence[Pair]) -> str:
    """sha256 over every pair. Texts and situations stand by their own hashes, each made once."""
    texts: dict[str, str] = {}
    briefs: dict[int, str] = {}
    lines = [f"stimuli {VERSION}"]
    for pair in pairs:
        for stimulus in (pair.u, pair.v):
            if stimulus.text not in texts:
                texts[stimulus.text] = sha256_text(stimulus.text)
        if id(pair.brief) not in briefs:
            briefs[id(pair.brief)] = content_id(pair.brief)
        fields = [pair.id, pair.condition, pair.variant, briefs[id(pair.brief)], repr(float(pair.delta))]
        fields += [pair.better or "", ",".join(pair.orders)]
        for stimulus in (pair.u, pair.v):
            fields += [texts[stimulus.text], ",".join(stimulus.met), ",".join(stimulus.partly)]
        lines.append("\t".join(fields))
    return sha256_text("\n".join(lines))


# --- to and from a file -----------------------------------------------------------------------------------------------


@record
class _StoredPair:
    """A pair as it stands in a file: its situation by the name of the task."""

    id: str
    condition: PairCondition
    variant: str
    task: str
    u: Stimulus
    v: Stimulus
    delta: float
    better: Literal["u", "v"] | None
    orders: tuple[Order, ...]


@record
class _Stored:
    """A file of stimuli."""

    manifest: Manifest
    tasks: tuple[Brief, ...]
    pairs: tuple[_StoredPair, ...]


def stimuli_json(pairs: Sequence[Pair], manifest: Manifest) -> str:
    """Pairs and their manifest as canonical JSON, for a run folder."""
    briefs = {pair.task: pair.brief for pair in pairs}
    stored = tuple(
        _StoredPair(
            id=pair.id,
            condition=pair.condition,
            variant=pair.variant,
            task=pair.task,
            u=pair.u,
            v=pair.v,
            delta=float(pair.delta),
            better=pair.better,
            orders=pair.orders,
        )
        for pair in pairs
    )
    return canonical_json(_Stored(manifest=manifest, tasks=tuple(briefs.values()), pairs=stored))


def read_stimuli(text: str | bytes, *, source: str = "stimuli.json") -> tuple[tuple[Pair, ...], Manifest]:
    """The pairs and manifest of a file that `stimuli_json` made.

    Raises
    ------
    InputError
        Not such a file, or its pairs are not those that the manifest was made of.
    """
    stored = parse(_Stored, text, source=source)
    briefs = {brief.task: brief for brief in stored.tasks}
    lost = sorted({pair.task for pair in stored.pairs} - briefs.keys())
    if lost:
        raise InputError(source, [Problem(f"task {name}", "its situation is not in the file") for name in lost])
    pairs = tuple(_pair(pair, briefs[pair.task]) for pair in stored.pairs)
    if manifest_of(pairs, stored.manifest.seed) != stored.manifest:
        raise InputError(source, [Problem("manifest", "the pairs are not those it was made of")])
    return pairs, stored.manifest


def _pair(stored: _StoredPair, brief: Brief) -> Pair:
    """A pair with its situation."""
    return Pair(
        id=stored.id,
        condition=stored.condition,
        variant=stored.variant,
        brief=brief,
        u=stored.u,
        v=stored.v,
        delta=stored.delta,
        better=stored.better,
        orders=stored.orders,
    )
