"""The pages of rules, made from the locked season file and its scoring plan, and of what changed between plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assaymark.judging.season.plans import PROCESS, ScoringPlan, SubComponent, load_scoring, scoring_names
from assaymark.report.formats import clean
from assaymark.report.portbench.texts import block
from assaymark.report.season.leaderboard import formula
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.words import Words

_PROMPTS: Final = 600_000
"""Characters of all prompts on the page, which stays below a megabyte."""


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Parts of something with their weights in percent; ``note`` marks parts that count twice."""

    title: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Fields of one part of the season file as (name, value, meaning)."""

    title: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class RulesView:
    """The rules page."""

    facts: tuple[tuple[str, str], ...]
    plan_hash: str
    groups: tuple[RuleGroup, ...]
    formulas: tuple[str, ...]
    weights: tuple[WeightTable, ...]
    bands: tuple[tuple[str, str], ...]
    prompts: tuple[tuple[str, str], ...]


def rules_view(book: SeasonLookup, words: Words) -> RulesView:
    """Nothing here is typed: fields and values are those of the locked file, weights those of its scoring plan."""
    run, plan = book.run, book.run.scoring
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for rule in run.rules:
        line = clean(rule.name, 80), clean(rule.value, 400) or words("rules.empty"), words.text(rule.meaning)
        groups.setdefault(rule.group, []).append(line)
    return RulesView(
        facts=(
            (words("rules.season"), clean(run.name, 80)),
            (words("rules.locked"), words.day(run.locked_at)),
            (words("rules.scoring"), words("rules.plan", version=plan.version, grader=clean(plan.grader, 80))),
            (words("rules.software"), f"assaymark {clean(run.software, 40)}"),
        ),
        plan_hash=clean(run.plan_hash, 80),
        groups=tuple(RuleGroup(words.term("rules.group", name), tuple(rows)) for name, rows in groups.items()),
        formulas=(*formulas(plan, words), *(() if run.source else (words("formula.returns"),))),
        weights=weight_tables(plan, words),
        bands=band_rows(plan, words),
        prompts=_prompts(book),
    )


def _prompts(book: SeasonLookup) -> tuple[tuple[str, str], ...]:
    """What all agents were told, under an empty name; or what each was told alone."""
    told = [(one.name, one.strategy) for one in book.agents.values() if one.strategy]
    if book.run.prompt:
        told = [("", book.run.prompt)]
    return tuple((clean(name, 60), block(text, _PROMPTS // len(told))) for name, text in told)


def formulas(plan: ScoringPlan, words: Words) -> tuple[str, ...]:
    """How grades become a total, sentence by sentence."""
    parts = {part.name: part for part in plan.reasoning}
    process = words.catalogue.names([part_title(parts[name], words) for name in PROCESS])
    without = {
        name: words.catalogue.number(share, ".4g") for name, share in plan.composite.shares(outcome=False).items()
    }
    lines = [
        words("formula.axis"),
        words("formula.process", parts=process),
        words("formula.composite", **_percents(plan, words)),
        words(
            "formula.without",
            reasoning=without["reasoning"],
            evidence=without["evidence"],
            process=without["process"],
        ),
        formula(plan, words),
    ]
    if plan.efficiency.weight:
        lines.append(_quick(plan, words))
    return (*lines, words("formula.ties", level=words.percent(plan.ties.level, 0)), words("formula.reliability"))


def _quick(plan: ScoringPlan, words: Words) -> str:
    """What efficiency is, on the plan's scale."""
    rule, number = plan.efficiency, words.catalogue.number
    least = number(rule.least_seconds, "g")
    if rule.scale == "relative":
        return words("formula.quick_relative", least=least)
    return words("formula.quick", least=least, reference=number(rule.reference_s, "g"))


def _percents(plan: ScoringPlan, words: Words) -> dict[str, str]:
    return {name: words.catalogue.number(share, "g") for name, share in plan.composite.shares(outcome=True).items()}


def part_title(part: SubComponent, words: Words) -> str:
    """What a part is called; one that the language does not know keeps the title of its plan."""
    return words(f"part.{part.name}") if words.has(f"part.{part.name}") else clean(part.title, 80)


def weight_tables(plan: ScoringPlan, words: Words) -> tuple[WeightTable, ...]:
    """The weights of the components and of all parts of both axes, in percent."""
    shares = plan.composite.shares(outcome=True)
    whole = tuple((words(f"axis.{name}"), words.catalogue.number(share, "g"), "") for name, share in shares.items())
    axes = [
        WeightTable(
            words(f"weights.{axis}", n=words.few(len(parts))), (*_weights(parts, words), *_left_out(left, words))
        )
        for axis, parts, left in (("reasoning", plan.reasoning, ()), ("evidence", plan.evidence, plan.not_applicable))
    ]
    return (WeightTable(words("weights.composite"), whole), *axes)


def _weights(parts: Sequence[SubComponent], words: Words) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        note = words("weights.twice") if part.name in PROCESS else ""
        yield part_title(part, words), words.catalogue.number(part.weight, ".4g"), note


def _left_out(parts: Sequence[SubComponent], words: Words) -> Iterator[tuple[str, str, str]]:
    """Parts for which the season has no field, with the weight that went to the others."""
    for part in parts:
        weight = words.catalogue.number(part.weight, "g")
        yield part_title(part, words), "0", words("weights.not_applicable", weight=weight)


def band_rows(plan: ScoringPlan, words: Words) -> tuple[tuple[str, str], ...]:
    """The bands with their whole points."""
    ends = (("strong", plan.bands.strong, 100), ("mixed", plan.bands.mixed, plan.bands.strong - 1))
    rows = (*ends, ("weak", 0, plan.bands.mixed - 1))
    return tuple(
        (words.term("claim.band", name), words("places.range", first=low, last=high)) for name, low, high in rows
    )


# --- what changed -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VersionView:
    """One scoring plan, and how it differs from the one before: (field, before, now); none for the first."""

    version: str
    title: str
    facts: tuple[tuple[str, str], ...]
    before: str
    changes: tuple[tuple[str, str, str], ...]
    same: str
    here: bool


def version_views(book: SeasonLookup, words: Words) -> tuple[VersionView, ...]:
    """The plans that come with the package and the season's own, newest first, each against the one before it."""
    plans = [load_scoring(name) for name in scoring_names()]
    own = book.run.scoring
    if own.version not in {plan.version for plan in plans}:
        plans.append(own)
    found: list[VersionView] = []
    for at, plan in enumerate(plans):
        earlier = plans[at - 1] if at else None
        found.append(_version(plan, earlier, words, here=plan.version == own.version))
    return tuple(reversed(found))


def _version(plan: ScoringPlan, before: ScoringPlan | None, words: Words, *, here: bool) -> VersionView:
    key = f"scoring.{plan.version}"
    changes, same = ([], []) if before is None else differences(before, plan)
    facts = (
        (words("changelog.grader"), clean(plan.grader, 80)),
        (words("changelog.total"), formula(plan, words)),
        (words("changelog.digest"), plan.digest),
    )
    return VersionView(
        version=clean(plan.version, 40),
        title=words(key) if words.has(key) else clean(plan.title, 120),
        facts=facts,
        before="" if before is None else clean(before.version, 40),
        changes=tuple((field_words(name, words), _shown(old, words), _shown(new, words)) for name, old, new in changes),
        same=words("changelog.same", fields=words.catalogue.names([words.term("scoring.whole", name) for name in same]))
        if same
        else "",
        here=here,
    )


def differences(before: ScoringPlan, after: ScoringPlan) -> tuple[list[tuple[str, Any, Any]], list[str]]:
    """The fields in which two plans differ, and the parts of the plan in which they are equal.

    Version and title are left out, which are names and no rules.

    >>> changed, same = differences(load_scoring("v0.3"), load_scoring("v0.4"))
    >>> [name for name, _, _ in changed]
    ['grader', 'panel', 'efficiency.weight']
    >>> same
    ['composite', 'bands', 'ties', 'reasoning', 'evidence']
    """
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    kept = [name for name in new if name not in ("version", "title")]
    changed = [
        (name, one.get(name), two.get(name))
        for top in kept
        for one, two in [(_flat(top, old[top]), _flat(top, new[top]))]
        for name in dict.fromkeys((*one, *two))
        if one.get(name) != two.get(name)
    ]
    return changed, [name for name in kept if old[name] == new[name]]


def _flat(name: str, value: Any) -> dict[str, Any]:
    """The values of a part of a plan by their full names; parts of an axis by their own."""
    if isinstance(value, Mapping):
        return {f"{name}.{key}": one for key, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return {f"{name}.{one['name']}": one["weight"] for one in value}
    return {name: value}


def field_words(name: str, words: Words) -> str:
    """A field of a scoring plan in words, with its name."""
    key = f"scoring.field.{name}"
    return f"{words(key)} ({name})" if words.has(key) else name


def _shown(value: Any, words: Words) -> str:
    if value is None:
        return words("changelog.absent")
    if isinstance(value, list):
        return words.catalogue.names([words.term("axis", str(one)) for one in value])
    if isinstance(value, (int, float)):
        return words.catalogue.number(value, "g")
    return words.term("scoring.value", str(value))
