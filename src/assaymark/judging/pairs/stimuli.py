"""Stimuli: texts with a quality difference known by construction, deterministic for a seed.

Ten tasks make 450 pairs, shown in both orders: 900 calls for one judge with one prompt. `check` in
`assaymark.judging.pairs` validates them before any call. `point_stimuli` makes the same texts for pointwise judges.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

import numpy as np

import assaymark.records as rec
from assaymark.errors import InputError
from assaymark.judging.pairs import calls as c
from assaymark.judging.pairs.calls import Brief, Pair, Stimulus, Task
from assaymark.records import Context, Decision

_WORD = re.compile(r"(?<![\w-])[a-z]{6,}(?![\w-])")

Change = Callable[[str, Collection[str]], str | None]
"""A perturbation: takes a text and the names of its requirements, returns the changed text, or None if unchanged."""


def with_typo(text: str, names: Collection[str]) -> str | None:
    """Swap two letters in the first long word of ``text`` that is not part of a requirement's name."""
    words = {word for name in names for word in name.split()}
    for match in _WORD.finditer(text):
        word = match.group()
        at = next((i for i in range(2, len(word) - 1) if word[i] != word[i + 1]), None)
        if word not in words and at is not None:
            swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            return text[: match.start()] + swapped + text[match.end() :]
    return None


def with_other_unit(text: str, names: Collection[str]) -> str | None:  # noqa: ARG001 - all changes are called alike
    """Respell the first unit in ``text``; the value stays."""
    for pattern, written in c.UNITS:
        changed, count = pattern.subn(written, text, count=1)
        if count:
            return changed
    return None


def with_synonym(text: str, names: Collection[str]) -> str | None:
    """Replace one word of ``text`` by a synonym."""
    words = {word for name in names for word in name.split()}
    for word, other in c.SYNONYMS:
        changed, count = re.subn(rf"(?<![\w-]){word}(?![\w-])", other, text, count=1)
        if count and word not in words and other not in words:
            return changed
    return None


CHANGES: Mapping[str, Change] = {"typo": with_typo, "unit": with_other_unit, "synonym": with_synonym}
"""The perturbations of nearly identical pairs (graded vacuum), by name."""

STEPS = c.LEAST_REQUIREMENTS
"""The highest step of the ladder: Q5 meets five requirements more than Q0."""
FILLER_SHARE = 0.5
"""Target excess length of a filler text, as a share of the other text."""

_FORMS: tuple[Form, ...] = ("lines", "paragraphs", "bullets")
_BLANKS = (("", ""), ("   ", "   "), (" \n", "\n\n\t"))
_PLACES = ("before", "between", "after")

Draft = tuple[rec.PairCondition, str, Stimulus, Stimulus, float]
"""A pair before u and v are drawn: condition, variant, the better text (if any), the other text, the difference."""

Form = Literal["prose", "lines", "paragraphs", "bullets"]
"""The layout of the sentences of a text."""
_BETWEEN: dict[Form, str] = {"prose": " ", "lines": "\n", "paragraphs": "\n\n", "bullets": "\n"}
_LEAST_CLOSING = 3


@lru_cache(maxsize=65536)
def word_count(sentence: str) -> int:
    """Count the words of a sentence."""
    return len(sentence.split())


def neutral_ending(tokens: int) -> str:
    """Return a neutral ending of exactly ``tokens`` words."""
    sentences: list[str] = []
    while tokens > max(c.CLOSERS):
        sentences.append(c.BEFORE_CLOSERS[len(sentences) % len(c.BEFORE_CLOSERS)])
        tokens -= 8
    return " ".join([*sentences, *([c.CLOSERS[tokens]] if tokens > 0 else [])])


class _Drawn:
    """The random draws of one task and its texts, all of one length; they depend only on the seed and the task's name.

    Every text has one sentence per requirement, a neutral one if the requirement is not met, and a neutral ending that
    makes it ``tokens`` words long. ``order`` is the order of requirements in the prefix chain, ``chain`` is Q0 .. Q5.
    """

    def __init__(self, task: Task, seed: int) -> None:
        name = int.from_bytes(hashlib.sha256(task.name.encode()).digest()[:8], "big")
        self.rng = rng = np.random.default_rng([seed, name])
        self.requirements = task.requirements
        self.count = count = len(task.requirements)
        self.order: list[int] = rng.permutation(count).tolist()
        wordings = (rng.random(count) * [len(requirement.met) for requirement in task.requirements]).astype(int)
        self.wordings: list[int] = wordings.tolist()
        self.layout: list[int] = rng.permutation(count).tolist()
        # A length that every text of the task can reach, including texts with bullets.
        longest = sum(max(map(word_count, (*need.met, need.partly, need.neutral))) for need in task.requirements)
        self.tokens = longest + count + _LEAST_CLOSING
        self.chain = [self.write(self.order[:level]) for level in range(STEPS + 1)]

    def write(
        self, met: Collection[int], partly: int | None = None, *, reworded: bool = False,
        layout: Sequence[int] | None = None, form: Form = "prose", more: Sequence[str] = (), more_at: int = 0,
    ) -> Stimulus:  # fmt: skip
        """Compose the text that meets these requirements, and one in part; ``more`` is inserted before ``more_at``."""
        body, bullets = [], form == "bullets"
        for at in layout or self.layout:
            requirement = self.requirements[at]
            wording = requirement.met[(self.wordings[at] + reworded) % len(requirement.met)]
            body.append(requirement.partly if at == partly else wording if at in met else requirement.neutral)
        spare = self.tokens - sum(map(word_count, body)) - (len(body) if bullets else 0)
        if bullets:
            body = [f"- {sentence}" for sentence in body]
        body[more_at:more_at] = more
        met_names = tuple(need.name for at, need in enumerate(self.requirements) if at in met and at != partly)
        named = () if partly is None else (self.requirements[partly].name,)
        return Stimulus(_BETWEEN[form].join([*body, neutral_ending(spare)]), met_names, named)

    def drawn(self, choices: int, count: int) -> list[int]:
        """Draw ``count`` different numbers below ``choices``."""
        numbers: list[int] = self.rng.permutation(choices)[:count].tolist()
        return numbers


def brief_of(task: Task) -> Brief:
    """Return the description of a task for judges."""
    listed = tuple((requirement.name, requirement.must) for requirement in task.requirements)
    return Brief(task.name, task.question, listed)


def task_pairs(task: Task, seed: int) -> Iterator[Pair]:
    """Yield the pairs of one task: the ladder, texts of equal quality, fillers, and (nearly) identical pairs."""
    drawn, brief = _Drawn(task, seed), brief_of(task)
    pairs: list[Draft] = []
    # Every pair of levels in the chain, and half steps: met against partly and partly against missing, twice each.
    write, chain = drawn.write, drawn.chain
    for step in range(1, STEPS + 1):
        for low in range(STEPS + 1 - step):
            pairs.append(("ladder", f"Q{low + step} over Q{low}", chain[low + step], chain[low], float(step)))
    for number, level in enumerate(drawn.drawn(STEPS, 4)):
        part = write(drawn.order[:level], drawn.order[level])
        if number % 2 == 0:
            pairs.append(("ladder", "met over partly", chain[level + 1], part, 0.5))
        else:
            pairs.append(("ladder", "partly over missing", part, chain[level], 0.5))
    # The same requirements in other words, in another order, in another form, twice each.
    for kind in ("wording", "order", "formatting"):
        sizes, forms = drawn.drawn(STEPS, 2), drawn.drawn(len(_FORMS), 2)
        for size, form in zip(sizes, forms, strict=True):
            met = drawn.drawn(drawn.count, size + 1)
            if kind == "wording":
                other = write(met, reworded=True)
            elif kind == "order":
                by = int(drawn.rng.integers(1, len(drawn.layout)))  # rotated, so that every sentence moves
                other = write(met, layout=drawn.layout[by:] + drawn.layout[:by])
            else:
                other = write(met, form=_FORMS[form])
            pairs.append(("same_subset", kind, write(met), other, 0.0))
    # Equal numbers of different requirements: three pairs that share none, three that exchange one.
    apart, shared = drawn.drawn(drawn.count, drawn.count), drawn.drawn(drawn.count, drawn.count)
    for variant, met_first, met_second in (
        ("disjoint", apart[:1], apart[1:2]),
        ("disjoint", apart[2:3], apart[3:4]),
        ("disjoint", apart[:2], apart[2:4]),
        *(("overlapping", shared[:size], shared[1 : size + 1]) for size in (2, 3, 4)),
    ):
        pairs.append(("different_subset", variant, write(met_first), write(met_second), 0.0))
    # Fillers; the longer text is always v.
    for level in range(1, STEPS + 1):
        place = _PLACES[(level - 1) % len(_PLACES)]
        at = {"before": 0, "between": drawn.count // 2, "after": drawn.count}[place]
        more: list[str] = []
        order = drawn.drawn(len(c.FILLERS), len(c.FILLERS))
        while sum(map(word_count, more)) < FILLER_SHARE * chain[level].tokens:
            more.append(c.FILLERS[order[len(more) % len(order)]])
        longer = write(drawn.order[:level], more=more, more_at=at)
        pairs.append(("filler", place, chain[level], longer, 0.0))
    for blank, other_blank in _BLANKS:
        pairs.append(("vacuum", "whitespace" if blank else "empty", Stimulus(blank), Stimulus(other_blank), 0.0))
    for level in drawn.drawn(STEPS + 1, 3):
        pairs.append(("vacuum", "identical", chain[level], chain[level], 0.0))
    # The level of each perturbation is drawn; if it does not apply to that text, the next level is tried.
    for (variant, change), start in zip(CHANGES.items(), drawn.drawn(STEPS + 1, len(CHANGES)), strict=True):
        for level in (*range(start, STEPS + 1), *range(start)):
            text = chain[level]
            if (changed := change(text.text, task.names)) is not None:
                pairs.append(("graded_vacuum", variant, text, Stimulus(changed, text.met, text.partly), 0.0))
                break
    flips = (drawn.rng.random(len(pairs)) < 0.5).tolist()
    numbers: Counter[str] = Counter()
    for (condition, kind, first, second, delta), drawn_flip in zip(pairs, flips, strict=True):
        numbers[condition] += 1
        flip = drawn_flip and condition != "filler"
        better: Literal["u", "v"] = "v" if flip else "u"
        texts = (second, first) if flip else (first, second)
        name = f"{task.name}.{condition}.{numbers[condition]}"
        yield Pair(name, condition, kind, brief, *texts, delta, better if delta else None)


VERSION = "1"
"""Version of the stimuli, raised with any change to the stimuli made from the same tasks and seed."""


@rec.record
class StimuliManifest:
    """The manifest of a set of stimuli: its hash, and the number of pairs of each kind."""

    version: str
    seed: int
    tasks: int
    pairs: int
    calls: int
    counts: Mapping[str, int]
    variants: Mapping[str, int]
    sha256: str


def build_stimuli(tasks: Sequence[Task], seed: int) -> tuple[Pair, ...]:
    """Build every pair of a datasheet, task by task: ladder, equal-quality controls, fillers, null pairs."""
    if problems := c.task_problems(tasks):
        raise InputError("tasks", problems)
    return tuple(pair for task in tasks for pair in task_pairs(task, seed))


def manifest_of(pairs: Sequence[Pair], seed: int) -> StimuliManifest:
    """Compute the manifest of pairs that were built from ``seed``."""
    # Texts and situations enter by their hashes, each computed once.
    texts: dict[str, str] = {}
    briefs: dict[int, str] = {}
    lines = [f"stimuli {VERSION}"]
    for pair in pairs:
        for stimulus in (pair.u, pair.v):
            if stimulus.text not in texts:
                texts[stimulus.text] = rec.sha256_text(stimulus.text)
        if id(pair.brief) not in briefs:
            briefs[id(pair.brief)] = rec.content_id(pair.brief)
        fields = [pair.id, pair.condition, pair.variant, briefs[id(pair.brief)], repr(float(pair.delta))]
        fields += [pair.better or "", ",".join(pair.orders)]
        for stimulus in (pair.u, pair.v):
            fields += [texts[stimulus.text], ",".join(stimulus.met), ",".join(stimulus.partly)]
        lines.append("\t".join(fields))
    counts: Counter[str] = Counter(pair.condition for pair in pairs)
    variants = Counter(f"{pair.condition}.{pair.variant}" for pair in pairs)
    calls, digest = sum(len(pair.orders) for pair in pairs), rec.sha256_text("\n".join(lines))
    tasks = len({pair.task for pair in pairs})
    return StimuliManifest(VERSION, seed, tasks, len(pairs), calls, dict(counts), dict(variants), digest)


_SAME = ("id", "condition", "variant", "u", "v", "better", "orders")


def stimuli_json(pairs: Sequence[Pair], manifest: StimuliManifest) -> str:
    """Serialise pairs and their manifest as canonical JSON, for a run folder."""
    briefs = {pair.task: pair.brief for pair in pairs}
    stored = [
        {**{name: getattr(pair, name) for name in _SAME}, "task": pair.task, "delta": float(pair.delta)}
        for pair in pairs
    ]
    return rec.canonical_json({"manifest": manifest, "tasks": list(briefs.values()), "pairs": stored})


PointVariant = Literal["vacuum", "ladder", "filler"]

FILLED_LEVELS: Final = (1, 2, 3, 4)
"""The levels that are also shown with filler; at the floor and the ceiling a scale cannot show an effect."""

# A filler text has its parent's content at another length, which is the derivation ``length_matched``.
_KINDS: dict[PointVariant, rec.DerivationKind] = {"vacuum": "vacuum", "ladder": "ladder", "filler": "length_matched"}
_NOTHING: Final = ("", " \n\n\t")
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SOURCE: Final = "assaymark stimuli"


@rec.record
class PointStimulus:
    """One text for a rubric judge."""

    id: str
    brief: Brief
    level: int
    text: str
    variant: PointVariant
    parent: str | None = None

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.brief.task

    @property
    def tokens(self) -> int:
        """The length of the text in words."""
        return len(self.text.split())


def point_stimuli(tasks: Sequence[Task], seed: int) -> list[PointStimulus]:
    """Build two texts without content, the six levels Q0 .. Q5, and Q1 .. Q4 with filler, for each task."""
    if problems := c.task_problems(tasks):
        raise InputError("tasks", problems)
    stimuli = []
    for task in tasks:
        brief = brief_of(task)
        texts: list[tuple[PointVariant, int, int, str]] = []
        texts += [("vacuum", number, 0, text) for number, text in enumerate(_NOTHING, start=1)]
        texts += [("ladder", level, level, stimulus.text) for level, stimulus in enumerate(_Drawn(task, seed).chain)]
        for pair in task_pairs(task, seed):
            if pair.condition == "filler" and (level := len(pair.v.met)) in FILLED_LEVELS:
                texts.append(("filler", level, level, pair.v.text))
        for variant, number, level, text in texts:
            parent = f"{brief.task}.point.ladder.{level}" if variant == "filler" else None
            name = f"{brief.task}.point.{variant}.{number}"
            stimuli.append(PointStimulus(name, brief, level, text, variant, parent))
    return stimuli


def point_records(stimuli: Sequence[PointStimulus]) -> tuple[list[Decision], dict[str, Context]]:
    """Convert the stimuli to decisions with contexts, to be planned like any others (`judging.plan_calls`)."""
    contexts: dict[str, Context] = {}
    names: dict[str, str] = {}
    decisions = []
    for stimulus in stimuli:
        if stimulus.task not in names:
            listed = "\n".join(f"- {name}: {must}" for name, must in stimulus.brief.requirements)
            context = Context(
                completeness="partial", cutoff=_MOMENT, cutoff_source="constructed",
                prompt=f"{stimulus.brief.question}\n\nWhat a good answer does:\n{listed}",
            )  # fmt: skip
            names[stimulus.task] = rec.content_id(context)
            contexts[names[stimulus.task]] = context
        decisions.append(
            Decision(
                record_id=stimulus.id, episode_id=stimulus.task, step=0, cluster=stimulus.task, decided_at=_MOMENT,
                agent=rec.Agent(id=f"{stimulus.variant}-{stimulus.id.rpartition('.')[2]}", family=_SOURCE),
                context_id=names[stimulus.task], actions=(), rationales=(rec.Rationale(stimulus.text, kind="summary"),),
                format="stimulus", provenance=rec.Provenance(source=_SOURCE),
                derivation=rec.Derivation(_KINDS[stimulus.variant], stimulus.parent),
            ),
        )  # fmt: skip
    return decisions, contexts
