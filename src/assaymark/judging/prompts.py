"""Decisions as judge calls: the prompt, what may not be in it, and the plan of all calls of a study."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.blinding import Blinding, blinding_names, compiled
from assaymark.judging.replies import MOST_EVIDENCE, reply_schema
from assaymark.judging.rubric import Rubric
from assaymark.prompting.context import Block, latest, lines_of, material_blocks, number_text, refuse_future
from assaymark.prompting.fences import PromptTemplate, Section, cells, fence, prompt_template, row
from assaymark.prompting.texts import JUDGED_KINDS, judged_rationales
from assaymark.protocol import JudgeSpec, Records, Study
from assaymark.records import JSON, Action, ActionKind, Context, Decision, Rationale

# A decision as the text that a judge reads. Nothing else of the record gets in.
#
# Left out on purpose: who decided, when, in which episode and record, and everything that happened afterwards.


ACTION_NUMBERS = (
    "weight",
    "quantity",
    "price",
    "leverage",
    "stop",
    "target",
    "confidence",
    "expected_return",
)
"""The numeric fields of an action, in the order of their columns; a column appears where any action has a value."""

STATED_WORDS = frozenset(("selected", "rejected", "held", "agent", "arena"))
"""Words of structured parts that are shown beside numbers and instruments."""


def decision_blocks(decision: Decision, known: Collection[str] = ()) -> list[Block]:
    """The sections of one decision: what it does, what it states in numbers, and each judged text.

    Of the structured parts only numbers are shown, and single words that are instruments (``known``) or belong to
    `STATED_WORDS`: anything else there may say who decided, or in which run.
    """
    texts = [(rationale.kind, rationale.text) for rationale in judged_rationales(decision)]
    return [("actions", _actions(decision.actions)), ("stated", _stated(decision, known)), *texts]


def _actions(actions: Sequence[Action]) -> str:
    """A table of the actions with the columns that any of them fills."""
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in actions)]
    rows = [
        (action.instrument, action.kind, *(number_text(getattr(action, name)) for name in filled)) for action in actions
    ]
    return "\n".join(row(cells) for cells in [("instrument", "action", *filled), *rows])


def _stated(decision: Decision, known: Collection[str]) -> str:
    """Confidence and the structured parts: single values first, then every list of alike entries as a table."""
    parts = _Parts(known)
    if decision.confidence is not None:
        parts.add("confidence", decision.confidence)
    for name in sorted(decision.stages):
        parts.add(name, decision.stages[name])
    return "\n".join([*parts.values, *parts.tables])


class _Parts:
    """The lines of structured parts as they are collected."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = known
        self.values: list[str] = []
        self.tables: list[str] = []

    def add(self, path: str, value: JSON) -> None:
        """One part: a value, an object of parts, a list of parts, or a list of alike entries."""
        if isinstance(value, Mapping):
            for key in sorted(value):
                self.add(f"{path}.{key}", value[key])
        elif isinstance(value, (list, tuple)):
            self._add_list(path, value)
        elif (cell := self._cell(value)) is not None:
            self.values.append(row(("value", path, cell)))

    def _add_list(self, path: str, items: Sequence[JSON]) -> None:
        """Entries become a table of their numbers and known words, other items are parts of their own."""
        entries = [item for item in items if isinstance(item, Mapping)]
        if len(entries) < len(items):
            for at, item in enumerate(items):
                self.add(f"{path}.{at}", item)
            return
        rows = [{key: cell for key in entry if (cell := self._cell(entry[key])) is not None} for entry in entries]
        columns = list(dict.fromkeys(key for found in rows for key in found))
        if columns:
            body = [row([found.get(key, "") for key in columns]) for found in rows]
            self.tables.append("\n".join([row(("table", str(len(body)), path)), row(columns), *body]))

    def _cell(self, value: JSON) -> str | None:
        """A number or a known word as a cell; None for what is not shown."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return number_text(value)
        return value if isinstance(value, str) and (value in self.known or value in STATED_WORDS) else None


TEMPLATE = "judge-v1.txt"
"""The prompt template in use."""

_TELLING = re.compile(r"\A(?=.*[^\W\d_])(?=.*\d).{8,}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One call to be made, and whose judgment of what its answer will be. ``trajectory`` is a record id."""

    call: CallSpec
    trajectory: str
    judge: str
    family: str
    trial: int


def judge_template() -> PromptTemplate:
    """The prompt template, whose text enters the plan hash."""
    return prompt_template("assaymark.judging", TEMPLATE)


def plan_texts(rubric: Rubric) -> dict[str, str]:
    """Every text that the judges' prompts are made from, by name: what a plan hash has to cover."""
    return {
        TEMPLATE: judge_template().text,
        f"rubric {rubric.version}": rubric.text,
        f"schema {rubric.version}": _schema_text(rubric),
    }


def _schema_text(rubric: Rubric) -> str:
    """The reply schema as it is shown and sent."""
    return json.dumps(reply_schema(rubric), indent=1)


def system_text(rubric: Rubric) -> str:
    """The system message: the task, the rubric with its anchors, and the form of the answer."""
    schema = _schema_text(rubric)
    return judge_template().filled("system", rubric=rubric.text, schema=schema, most_evidence=MOST_EVIDENCE)


def material_text(context: Context, hidden: Hidden) -> str:
    """The user block that all decisions of one context share."""
    return _block("material", material_blocks(context), hidden)


def decision_text(decision: Decision, hidden: Hidden) -> str:
    """The user block of one decision."""
    return _block("decision", decision_blocks(decision, hidden.kept), hidden)


def _block(name: str, blocks: Sequence[Block], hidden: Hidden) -> str:
    """A part of the template with its sections blinded and fenced."""
    blinded = hidden.apply([content for _, content in blocks])
    fenced = (fence(label, content) for (label, _), content in zip(blocks, blinded, strict=True))
    return judge_template().filled(name, blocks="\n\n".join(fenced))


@dataclass(frozen=True, slots=True)
class Hidden:
    """What is taken out of every text of one context: names, and identifiers of records and episodes; and what is not.

    ``kept`` holds the names in the universe as they are written in records.
    """

    blinding: Blinding
    kept: frozenset[str] = frozenset()
    identifiers: tuple[str, ...] = ()

    def apply(self, texts: Sequence[str]) -> list[str]:
        """The texts of one block without them.

        Tokens are lettered by first appearance in the block: letters that went through a study would tell its texts
        of one author by their letter, and letters by name would change the prompt with the names.
        """
        return [one.text for one in self.blinding.apply_all([self._without_identifiers(text) for text in texts])]

    def _without_identifiers(self, text: str) -> str:
        for identifier in self.identifiers:
            if identifier in text:
                text = text.replace(identifier, "[id]")
        return text


def hidden(decisions: Sequence[Decision], context: Context, names: Sequence[str], keep_names: Sequence[str]) -> Hidden:
    """What to take out of the texts of ``context``, of which ``decisions`` are all decisions."""
    kept = (*kept_names(context), *keep_names)
    return Hidden(compiled(names, kept), frozenset(kept), _identifiers(decisions))


def kept_names(context: Context) -> tuple[str, ...]:
    """What things in the universe are called: blinding must not touch it."""
    names: dict[str, None] = {}
    for item in context.instruments:
        names.update(dict.fromkeys((item.id, item.symbol or "", item.name, *item.aliases)))
    names.update(dict.fromkeys(fact.instrument for fact in context.facts))
    names.update(dict.fromkeys(series.instrument for series in context.series))
    names.update(dict.fromkeys(context.portfolio.positions if context.portfolio else ()))
    return tuple(name for name in names if name)


def _identifiers(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Ids long and mixed enough that replacing them cannot hit a word or a number of the text; longest first."""
    ids = {name for decision in decisions for name in (decision.record_id, decision.episode_id)}
    return tuple(sorted(filter(_TELLING.search, ids), key=lambda name: (-len(name), name)))


def left_out(decision: Decision, records: Records) -> str | None:
    """Why a study is not about this decision, in words; None if it is."""
    honest = decision.derivation.kind == "honest"
    if honest and records.agents is not None and decision.agent.id not in records.agents:
        return "agent not in the plan"
    if decision.derivation.kind not in records.derivations:
        return f"derivation {decision.derivation.kind}"
    return next((f"flag {flag}" for flag in decision.flags if flag in records.exclude_flags), None)


def eligible(decisions: Iterable[Decision], records: Records) -> list[Decision]:
    """The decisions that a study is about: its derivations and agents, without the flags it excludes."""
    return [decision for decision in decisions if left_out(decision, records) is None]


def plan_calls(
    decisions: Sequence[Decision],
    contexts: Mapping[str, Context],
    study: Study,
    rubric: Rubric,
    *,
    judges: Sequence[JudgeSpec] | None = None,
    only: Collection[str] | None = None,
    shown: Mapping[str, Message] | None = None,
) -> list[PlannedCall]:
    """Every judge call of a study, by decision, then judge, then trial.

    Names are blinded for all agents in ``decisions``, also those that the study leaves out; calls are planned for the
    decisions that it includes (`eligible`). Rubric, material and decision are rendered and hashed once each.

    Raises
    ------
    InputError
        A decision's context is missing, or holds anything from after the decision.
    """
    chosen = [one for one in eligible(decisions, study.records) if only is None or one.record_id in only]
    users = user_messages(decisions, contexts.items(), study) if shown is None else shown
    system = Text.of(system_text(rubric))
    schema = Text.of(_schema_text(rubric))
    return [
        _planned(decision, judge, trial, (Message("system", (system,)), users[decision.record_id]), schema)
        for decision in chosen
        for judge in (study.model_judges if judges is None else judges)
        for trial in range(1, judge.trials + 1)
    ]


def user_messages(
    decisions: Sequence[Decision],
    contexts: Iterable[tuple[str, Context]],
    study: Study,
    *,
    only: Collection[str] | None = None,
) -> dict[str, Message]:
    """What a judge is shown of every decision that the study includes, by record id; see `plan_calls`.

    The contexts may come one after the other: each is rendered once, and not kept. With ``only``, just these records
    are rendered, in the words that they have among all.

    Raises
    ------
    InputError
        A decision's context is missing, or holds anything from after the decision.
    """
    names = blinding_names(decision.agent for decision in decisions)
    waiting: dict[str, list[Decision]] = {}
    for decision in eligible(decisions, study.records):
        waiting.setdefault(decision.context_id, []).append(decision)
    if only is not None:
        waiting = {name: ones for name, ones in waiting.items() if any(one.record_id in only for one in ones)}
    messages = {}
    for context_id, context in contexts if waiting else ():
        members = waiting.pop(context_id, [])
        if not members:
            continue
        _refuse_future(members, context)
        out = hidden(members, context, names, study.records.keep_names)
        material = Text.of(material_text(context, out))
        for decision in members:
            if only is None or decision.record_id in only:
                messages[decision.record_id] = Message("user", (material, Text.of(decision_text(decision, out))))
        if only is not None and not waiting:
            break
    if waiting:
        lost = sorted((d.record_id, d.context_id) for members in waiting.values() for d in members)
        raise InputError(
            "contexts", [Problem(f"record {name}", f"its context {one[:12]} is not among them") for name, one in lost]
        )
    return messages


def _refuse_future(decisions: Sequence[Decision], context: Context) -> None:
    """Look at single facts only where the newest one is too new for a decision."""
    newest = latest(context)
    for decision in decisions:
        if newest is not None and newest > decision.decided_at:
            refuse_future(decision, context)


def _planned(
    decision: Decision, judge: JudgeSpec, trial: int, messages: tuple[Message, ...], schema: Text
) -> PlannedCall:
    """One call."""
    call = CallSpec(
        model=judge.model,
        messages=messages,
        template=judge_template().sha256,
        trial=trial,
        seed=judge.seed,
        temperature=judge.temperature,
        effort=judge.effort,
        schema=schema,
        args=dict(judge.args),
    )
    return PlannedCall(call=call, trajectory=decision.record_id, judge=judge.name, family=judge.family, trial=trial)


# A rendered decision read back: all that a reference judge knows of it.


Cell = float | str


@dataclass(frozen=True, slots=True)
class Shown:
    """A decision as a judge sees it. ``tables`` holds stated lists, a mapping of column to cell for each entry."""

    actions: tuple[Action, ...]
    values: Mapping[str, Cell]
    tables: Mapping[str, tuple[Mapping[str, Cell], ...]]
    texts: tuple[Rationale, ...]

    @property
    def confidence(self) -> float | None:
        """The confidence of the whole decision, 0..1; None where the venue set it and not the agent."""
        value = self.values.get("confidence")
        return value if isinstance(value, float) and self.values.get("confidence_by") != "arena" else None


def read_decision(found: Sequence[Section]) -> Shown:
    """The decision of a prompt."""
    content = {section.label: section.content for section in reversed(found)}
    values, tables = _read_stated(content.get("stated", ""))
    texts = tuple(
        Rationale(text=section.content, kind=section.label) for section in found if section.label in JUDGED_KINDS
    )
    return Shown(_read_actions(content.get("actions", "")), values, tables, texts)


def _read_actions(text: str) -> tuple[Action, ...]:
    """The actions, from their table."""
    lines = [cells(line) for line in lines_of(text)]
    return tuple(_read_action(lines[0], line) for line in lines[1:])


def _read_action(head: list[str], found: list[str]) -> Action:
    """One action; empty cells are absent values."""
    cells_by_name = dict(zip(head, found, strict=True))
    numbers: dict[str, Any] = {name: float(cell) for name, cell in list(cells_by_name.items())[2:] if cell}
    return Action(instrument=found[0], kind=cast(ActionKind, found[1]), **numbers)


def _read_stated(text: str) -> tuple[dict[str, Cell], dict[str, tuple[Mapping[str, Cell], ...]]]:
    """Stated single values and tables, by path."""
    values: dict[str, Cell] = {}
    tables: dict[str, tuple[Mapping[str, Cell], ...]] = {}
    lines = iter(lines_of(text))
    for line in lines:
        kind, second, third = cells(line)
        if kind == "value":
            values[second] = _cell(third)
        else:
            head = cells(next(lines))
            rows = [cells(next(lines)) for _ in range(int(second))]
            tables[third] = tuple({k: _cell(v) for k, v in zip(head, found, strict=True) if v} for found in rows)
    return values, tables


def _cell(text: str) -> Cell:
    """A number where the cell is one, else its word."""
    try:
        return float(text)
    except ValueError:
        return text
