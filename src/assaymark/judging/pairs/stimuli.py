"""Stimuli: pairs of texts whose difference is known because it was built, deterministic from a seed.

Ten tasks make 450 pairs, shown in both orders: 900 calls for one judge under one prompt. How each condition is built
is in `arms`; what is checked before any call in `gates`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.judging.pairs.tasks import (
    FILLERS,
    LEAST_REQUIREMENTS,
    MET,
    MISSING,
    PARTLY,
    SYNONYMS,
    UNITS,
    Brief,
    Form,
    Order,
    Pair,
    Stimulus,
    Task,
    Writer,
    brief_of,
    task_problems,
    tokens_of,
)
from assaymark.records import PairCondition, canonical_json, content_id, parse, record, sha256_text

# Changes to the surface of a text that leave what it says as it is: a typo, a unit, a synonym.


_WORD = re.compile(r"(?<![\w-])[a-z]{6,}(?![\w-])")

Change = Callable[[str, Collection[str]], str | None]
"""From a text and the names of its requirements to the changed text; None if there is nothing to change."""


def with_typo(text: str, kept: Collection[str]) -> str | None:
    """``text`` with two letters of its first long word exchanged, but of no word of a requirement's name.

    >>> with_typo("The position size was discussed.", ["position size"])
    'The position size was dicsussed.'
    """
    words = {word for name in kept for word in name.split()}
    for found in _WORD.finditer(text):
        word = found.group()
        at = next((i for i in range(2, len(word) - 1) if word[i] != word[i + 1]), None)
        if word not in words and at is not None:
            swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            return text[: found.start()] + swapped + text[found.end() :]
    return None


def with_other_unit(text: str, kept: Collection[str]) -> str | None:  # noqa: ARG001 - all changes are called alike
    """``text`` with its first unit written another way; the value stays.

    >>> with_other_unit("We hold 4 % of it.", ())
    'We hold 4 percent of it.'
    """
    for pattern, written in UNITS:
        changed, count = pattern.subn(written, text, count=1)
        if count:
            return changed
    return None


def with_synonym(text: str, kept: Collection[str]) -> str | None:
    """``text`` with one word swapped for another of the same meaning.

    >>> with_synonym("The whole note ends here.", ())
    'The entire note ends here.'
    """
    words = {word for name in kept for word in name.split()}
    for word, other in SYNONYMS:
        changed, count = re.subn(rf"(?<![\w-]){word}(?![\w-])", other, text, count=1)
        if count and word not in words and other not in words:
            return changed
    return None


CHANGES: Mapping[str, Change] = {"typo": with_typo, "unit": with_other_unit, "synonym": with_synonym}
"""The variants of graded vacuum by name."""


# The conditions of a datasheet, each as the pairs that one task gives to it.


STEPS = LEAST_REQUIREMENTS
"""The ladder's highest step: Q5 meets five requirements more than Q0."""
FILLER_SHARE = 0.5
"""A filler text is longer by at least this share of the other."""

_FORMS: tuple[Form, ...] = ("lines", "paragraphs", "bullets")
_BLANKS = (("   ", "   "), (" \n", "\n\n\t"))
_PLACES = ("before", "between", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A pair before it is known which of its texts is called u. ``first`` is the better one if any is."""

    condition: PairCondition
    variant: str
    first: Stimulus
    second: Stimulus
    delta: float = 0.0
    fixed: bool = False


class _Drawn:
    """What is drawn for one task before its pairs are made.

    ``order`` is the order in which requirements are added along the prefix chain; ``chain`` holds the texts Q0 .. Q5.
    """

    def __init__(self, task: Task, rng: np.random.Generator) -> None:
        count = len(task.requirements)
        self.rng = rng
        self.names = task.names
        self.order: list[int] = rng.permutation(count).tolist()
        wordings = (rng.random(count) * [len(one.met) for one in task.requirements]).astype(int)
        self.writer = Writer.of(task, wordings.tolist(), rng.permutation(count).tolist())
        self.chain = [self.writer.write(self.earned(self.order[:level])) for level in range(STEPS + 1)]

    def earned(self, met: Collection[int], partly: int | None = None) -> list[float]:
        """What a text earns that meets these requirements, and one in part."""
        found = [MET if at in met else MISSING for at in range(len(self.names))]
        if partly is not None:
            found[partly] = PARTLY
        return found

    def drawn(self, choices: int, count: int) -> list[int]:
        """``count`` different numbers below ``choices``."""
        found: list[int] = self.rng.permutation(choices)[:count].tolist()
        return found


def _generator(task: Task, seed: int) -> np.random.Generator:
    """Randomness that depends on the seed and the name of one task."""
    name = int.from_bytes(hashlib.sha256(task.name.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, name])


def prefix_chain(task: Task, seed: int) -> list[Stimulus]:
    """The texts Q0 .. Q5 of a task: each meets what the one before it meets and one requirement more."""
    return _Drawn(task, _generator(task, seed)).chain


def drafts(task: Task, seed: int) -> Iterator[Pair]:
    """The pairs of one task. They depend on the seed and on this task alone."""
    rng = _generator(task, seed)
    drawn = _Drawn(task, rng)
    brief = brief_of(task)
    made = [
        *_ladder(drawn),
        *_half_steps(drawn),
        *_same_subset(drawn),
        *_different_subset(drawn),
        *_filler(drawn),
        *_vacuum(drawn),
        *_graded_vacuum(drawn),
    ]
    flips = rng.random(len(made)) < 0.5
    numbers: Counter[str] = Counter()
    for draft, flip in zip(made, flips.tolist(), strict=True):
        numbers[draft.condition] += 1
        yield _placed(draft, brief, f"{task.name}.{draft.condition}.{numbers[draft.condition]}", flip)


def _placed(draft: Draft, brief: Brief, name: str, flip: bool) -> Pair:
    """A draft as a pair, its texts called u and v as drawn."""
    flip = flip and not draft.fixed
    u, v = (draft.second, draft.first) if flip else (draft.first, draft.second)
    better: Literal["u", "v"] = "v" if flip else "u"
    return Pair(
        id=name,
        condition=draft.condition,
        variant=draft.variant,
        brief=brief,
        u=u,
        v=v,
        delta=draft.delta,
        better=better if draft.delta else None,
    )


def _ladder(drawn: _Drawn) -> Iterator[Draft]:
    """Every two levels of the chain: five pairs one requirement apart, down to one pair five apart."""
    for delta in range(1, STEPS + 1):
        for low in range(STEPS + 1 - delta):
            yield Draft(
                condition="ladder",
                variant=f"Q{low + delta} over Q{low}",
                first=drawn.chain[low + delta],
                second=drawn.chain[low],
                delta=float(delta),
            )


def _half_steps(drawn: _Drawn) -> Iterator[Draft]:
    """Half a requirement apart: met against met in part, and met in part against not at all, twice each."""
    for number, level in enumerate(drawn.drawn(STEPS, 4)):
        part = drawn.writer.write(drawn.earned(drawn.order[:level], partly=drawn.order[level]))
        over = number % 2 == 0
        yield Draft(
            condition="ladder",
            variant="met over partly" if over else "partly over missing",
            first=drawn.chain[level + 1] if over else part,
            second=part if over else drawn.chain[level],
            delta=0.5,
        )


def _same_subset(drawn: _Drawn) -> Iterator[Draft]:
    """The same requirements in other words, in another order, in another form, twice each."""
    writer = drawn.writer
    for kind in ("wording", "order", "formatting"):
        sizes = drawn.drawn(STEPS, 2)
        forms = drawn.drawn(len(_FORMS), 2)
        for size, form in zip(sizes, forms, strict=True):
            earned = drawn.earned(drawn.drawn(len(drawn.names), size + 1))
            if kind == "wording":
                other = writer.write(earned, reworded=True)
            elif kind == "order":
                other = writer.write(earned, layout=_turned(writer.layout, drawn.rng))
            else:
                other = writer.write(earned, form=_FORMS[form])
            yield Draft(condition="same_subset", variant=kind, first=writer.write(earned), second=other)


def _turned(layout: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """Another order: the sentences moved round by a drawn number of places, so that none stays where it was."""
    by = int(rng.integers(1, len(layout)))
    return layout[by:] + layout[:by]


def _different_subset(drawn: _Drawn) -> Iterator[Draft]:
    """Equally many other requirements: three pairs that share none, three that exchange one."""
    count = len(drawn.names)
    apart = drawn.drawn(count, count)
    for mine, theirs in (
        (apart[:1], apart[1:2]),
        (apart[2:3], apart[3:4]),
        (apart[:2], apart[2:4]),
    ):
        yield _exchange(drawn, "disjoint", mine, theirs)
    shared = drawn.drawn(count, count)
    for size in (2, 3, 4):
        yield _exchange(drawn, "overlapping", shared[:size], shared[1 : size + 1])


def _exchange(drawn: _Drawn, variant: str, mine: Collection[int], theirs: Collection[int]) -> Draft:
    """A pair that meets these requirements against those."""
    first, second = (drawn.writer.write(drawn.earned(met)) for met in (mine, theirs))
    return Draft(condition="different_subset", variant=variant, first=first, second=second)


def _filler(drawn: _Drawn) -> Iterator[Draft]:
    """The levels Q1 .. Q5 against themselves with sentences more that meet nothing. The longer text is always v."""
    for level in range(1, STEPS + 1):
        place = _PLACES[(level - 1) % len(_PLACES)]
        at = {"before": 0, "between": len(drawn.names) // 2, "after": len(drawn.names)}[place]
        longer = drawn.writer.write(
            drawn.earned(drawn.order[:level]), more=_fillers(drawn, drawn.chain[level].tokens), more_at=at
        )
        yield Draft(condition="filler", variant=place, first=drawn.chain[level], second=longer, fixed=True)


def _fillers(drawn: _Drawn, tokens: int) -> list[str]:
    """Filler sentences in a drawn order, repeated if need be, until they lengthen a text of so many tokens enough."""
    found: list[str] = []
    added = 0
    order = drawn.drawn(len(FILLERS), len(FILLERS))
    while added < FILLER_SHARE * tokens:
        found.append(FILLERS[order[len(found) % len(order)]])
        added += tokens_of(found[-1])
    return found


def _vacuum(drawn: _Drawn) -> Iterator[Draft]:
    """No difference at all: one empty pair, two of white space, three of one text with itself."""
    yield Draft(condition="vacuum", variant="empty", first=Stimulus(text=""), second=Stimulus(text=""))
    for first, second in _BLANKS:
        yield Draft(condition="vacuum", variant="whitespace", first=Stimulus(text=first), second=Stimulus(text=second))
    for level in drawn.drawn(STEPS + 1, 3):
        same = drawn.chain[level]
        yield Draft(condition="vacuum", variant="identical", first=same, second=same)


def _graded_vacuum(drawn: _Drawn) -> Iterator[Draft]:
    """Next to no difference: one typo, one unit written another way, one synonym.

    The level is drawn; where its text has nothing to change, the next higher one that has is taken. A task without any
    unit gives no unit pair.
    """
    for (variant, change), start in zip(CHANGES.items(), drawn.drawn(STEPS + 1, len(CHANGES)), strict=True):
        for level in (*range(start, STEPS + 1), *range(start)):
            text = drawn.chain[level]
            changed = change(text.text, drawn.names)
            if changed is not None:
                other = Stimulus(text=changed, met=text.met, partly=text.partly)
                yield Draft(condition="graded_vacuum", variant=variant, first=text, second=other)
                break


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
