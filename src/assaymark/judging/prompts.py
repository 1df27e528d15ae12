"""Decisions as judge calls: the prompt, what may not be in it, and the plan of all calls of a study."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeVar, cast, get_args

from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.blinding import Blinding, blinding_names, compiled
from assaymark.judging.rubric import Rubric
from assaymark.portfolio.orders import ORDER_RULES, SIDES, RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.prompting import (
    JUDGED_KINDS,
    Block,
    PromptTemplate,
    Rejected,
    Section,
    cells,
    fence,
    judged_rationales,
    latest,
    lines_of,
    material_blocks,
    members,
    no_json,
    number_text,
    object_schema,
    prompt_template,
    refuse_future,
    row,
    shown,
    strict_reply,
)
from assaymark.protocol import JudgeSpec, Records, Study
from assaymark.records import JSON, Action, ActionKind, Context, Decision, Judgment, Rationale

# Judges' replies: parsed strictly, recorded whatever they are, never guessed at

A = TypeVar("A")
W = TypeVar("W", bound=str)
Lookahead = Literal["pass", "fail", "unsure"]

PARSER: Final = "2"
"""The version of this parser. Version 1 took a reply in a code fence for no JSON."""

MOST_CHARACTERS = 100_000
"""A longer reply is invalid unread."""
MOST_EVIDENCE = 12
"""Maximum number of quotations in a reply."""
MOST_QUOTED = 2_000
"""Maximum number of characters in a quotation or comment."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply in exactly the form that was asked for."""

    scores: Mapping[str, int]
    evidence: tuple[str, ...]
    lookahead_check: Lookahead
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoned(Generic[A]):
    """A valid reply of one value and a reason: the better of a pair, points of an outcome, a guess at an author."""

    value: A
    reason: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reply in another form, and why: a short line with at most a few printable characters of the reply."""

    reason: str


ReplyState = Literal["ok", "invalid", "refused", "truncated", "failed"]


@dataclass(frozen=True, slots=True)
class Read(Generic[A]):
    """What became of a reply: its answer where ``state`` is ok, else the reason in words."""

    state: ReplyState
    answer: A | None = None
    reason: str | None = None


def read_end(reply: Reply, parsed: A | Invalid) -> Read[A]:
    """A reply with what its text was parsed as: a refusal or a cut reply is that, whatever text came with it."""
    if reply.finish == "refusal":
        return Read("refused", None, "the model refused to answer")
    if reply.finish == "length":
        return Read("truncated", None, "cut off at the length limit")
    return Read("invalid", None, parsed.reason) if isinstance(parsed, Invalid) else Read("ok", parsed)


def parsed_by(text: str, check: Callable[[JSON], A], most: int) -> A | Invalid:
    """A reply as strict JSON, alone or in one code fence, through a check that raises `Rejected`; never raises."""
    if len(text) > most:
        return Invalid(f"longer than {most} characters (got {len(text)})")
    try:
        return check(strict_reply(text))
    except Rejected as exc:
        return Invalid(str(exc))


def whole(raw: JSON, what: str, low: int, high: int) -> int:
    """A whole number in a range."""
    # bool is an int to Python, and 4.0 is equal to 4: neither is a whole number that somebody wrote.
    if type(raw) is not int or not low <= raw <= high:
        raise Rejected(f"{what} must be a whole number from {low} to {high} (got {shown(raw)})")
    return raw


def text_of(raw: JSON, what: str, most: int) -> str:
    """Text of bounded length that UTF-8 can carry."""
    if not isinstance(raw, str):
        raise Rejected(f"{what} must be text (got {shown(raw)})")
    if len(raw) > most:
        raise Rejected(f"{what} has {len(raw)} characters, at most {most} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected(f"{what} holds half of a surrogate pair")
    return raw


def word_of(raw: JSON, words: Sequence[W], what: str) -> W:
    """One of the words; ``what`` says in words what it must be."""
    for word in words:
        if raw == word:
            return word
    raise Rejected(f"{what} (got {shown(raw)})")


def reply_schema(rubric: Rubric) -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept."""
    return object_schema({
        "scores": object_schema(dict.fromkeys(rubric.names, rubric.points)),
        "evidence": {"type": "array", "items": {"type": "string"}},
        "lookahead_check": {"type": "string", "enum": list(get_args(Lookahead))},
        "comment": {"type": ["string", "null"]},
    })  # fmt: skip


def parse_reply(text: str, rubric: Rubric) -> Parsed | Invalid:
    """A judge's reply, or why it is invalid. The whole reply must be one JSON object, alone or in one code fence."""

    def check(raw: JSON) -> Parsed:
        found = members(raw, ("scores", "evidence", "lookahead_check"), optional=("comment",))
        refusal = f"scores must be an object (got {shown(found['scores'])})"
        given = members(found["scores"], rubric.names, "dimensions", otherwise=refusal)
        scores = {name: whole(given[name], name, *rubric.scale) for name in rubric.names}
        evidence, comment = found["evidence"], found.get("comment")
        if not isinstance(evidence, list):
            raise Rejected(f"evidence must be a list (got {shown(evidence)})")
        if len(evidence) > MOST_EVIDENCE:
            raise Rejected(f"evidence has {len(evidence)} entries, at most {MOST_EVIDENCE} are allowed")
        return Parsed(
            scores,
            tuple(text_of(item, "evidence", MOST_QUOTED) for item in evidence),
            word_of(found["lookahead_check"], get_args(Lookahead), "lookahead_check must be pass, fail or unsure"),
            None if comment is None else text_of(comment, "comment", MOST_QUOTED),
        )

    return parsed_by(text, check, MOST_CHARACTERS)


def asks_again(reply: Reply, *, most: int = MOST_CHARACTERS) -> bool:
    """Whether a reply of up to ``most`` characters is no JSON at all, so that the call is made once more."""
    return reply.finish == "stop" and len(reply.text) <= most and no_json(reply.text)


def second_call(call: CallSpec) -> CallSpec:
    """The same question once more: trial 1b of trial 1."""
    return replace(call, again=True)


def judgment(planned: PlannedCall, reply: Reply, rubric: Rubric, *, second: Reply | None = None) -> Judgment:
    """The judgment that a reply to a planned call amounts to."""
    if second is not None and asks_again(reply):
        made = judgment(replace(planned, call=second_call(planned.call)), second, rubric)
        return replace(made, first_key=planned.call.key)
    read = read_end(reply, parse_reply(reply.text, rubric))
    given: dict[str, Any] = {}
    if answer := read.answer:
        given = {"evidence": answer.evidence, "lookahead_check": answer.lookahead_check}
        given["scores"] = {name: float(score) for name, score in answer.scores.items()}
    return Judgment(
        trajectory=planned.trajectory, judge=planned.judge, family=planned.family, rubric=rubric.version,
        trial=planned.trial, status="ok" if answer else "refused" if read.state == "refused" else "invalid",
        call_key=planned.call.key, reason=read.reason, **{"scores": {}, **given},
    )  # fmt: skip


ACTION_NUMBERS = ("weight", "quantity", "price", "leverage", "stop", "target", "confidence", "expected_return")
"""The numeric fields of an action, in the order of their columns; a column appears where any action has a value."""

STATED_WORDS = frozenset(("selected", "rejected", "held", "agent", "arena"))
"""Words of structured parts that are shown beside numbers and instruments."""


def decision_blocks(decision: Decision, known: Collection[str] = ()) -> list[Block]:
    """The sections of one decision: what it does, what it states in numbers, and each judged text."""
    actions = decision.actions
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in actions)]
    rows = [
        (action.instrument, action.kind, *(number_text(getattr(action, name)) for name in filled)) for action in actions
    ]
    # Single values of the structured parts come first, then every list of alike entries as a table.
    values: list[str] = []
    tables: list[str] = []

    def cell_of(value: JSON) -> str | None:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return number_text(value)
        return value if isinstance(value, str) and (value in known or value in STATED_WORDS) else None

    def add(path: str, value: JSON) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                add(f"{path}.{key}", value[key])
        elif isinstance(value, (list, tuple)):
            if not all(isinstance(item, Mapping) for item in value):
                for at, item in enumerate(value):
                    add(f"{path}.{at}", item)
                return
            entries = [{key: cell for key in one if (cell := cell_of(one[key])) is not None} for one in value]
            if columns := list(dict.fromkeys(key for found in entries for key in found)):
                body = [row([found.get(key, "") for key in columns]) for found in entries]
                tables.append("\n".join([row(("table", str(len(body)), path)), row(columns), *body]))
        elif (cell := cell_of(value)) is not None:
            values.append(row(("value", path, cell)))

    if decision.confidence is not None:
        add("confidence", decision.confidence)
    for name in sorted(decision.stages):
        add(name, decision.stages[name])
    return [
        ("actions", "\n".join(row(cells) for cells in [("instrument", "action", *filled), *rows])),
        ("stated", "\n".join([*values, *tables])),
        *((rationale.kind, rationale.text) for rationale in judged_rationales(decision)),
    ]


TEMPLATE = "judge-v1.txt"
"""The prompt template in use."""

_EACH = "the texts describe what each number means"
_SOME = "the texts describe what some numbers mean, and a number between two of them lies between their texts"
_TELLING = re.compile(r"\A(?=.*[^\W\d_])(?=.*\d).{8,}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call to be made, and whose judgment of what its answer will be. ``trajectory`` is a record id."""

    call: CallSpec
    trajectory: str
    judge: str
    family: str
    trial: int


def judge_template(rubric: Rubric | None = None) -> PromptTemplate:
    """The prompt template, whose text enters the plan hash, with the words of a rubric's scale."""
    template = prompt_template("assaymark.judging", TEMPLATE)
    if rubric is None or rubric.scale == (1, 5):
        return template
    text = template.text.replace("from 1 to 5", "from {} to {}".format(*rubric.scale))
    if any(len(dimension.at) <= rubric.scale[1] - rubric.scale[0] for dimension in rubric.dimensions):
        text = text.replace(_EACH, _SOME)
    return PromptTemplate.of(TEMPLATE, text)


def plan_texts(rubric: Rubric) -> dict[str, str]:
    """Every text that the judges' prompts are made from, by name: what a plan hash has to cover."""
    return {
        TEMPLATE: judge_template(rubric).text,
        f"rubric {rubric.version}": rubric.text,
        f"schema {rubric.version}": _schema_text(rubric),
    }


def _schema_text(rubric: Rubric) -> str:
    """The reply schema as it is shown and sent."""
    return json.dumps(reply_schema(rubric), indent=1)


def system_text(rubric: Rubric) -> str:
    """The system message: the task, the rubric with its anchors, and the form of the answer."""
    schema = _schema_text(rubric)
    return judge_template(rubric).filled("system", rubric=rubric.text, schema=schema, most_evidence=MOST_EVIDENCE)


Hidden = tuple[Blinding, frozenset[str], tuple[str, ...]]
"""What is taken out of every text of one context: names, apart from those kept, and ids of records and episodes."""


def hidden(decisions: Sequence[Decision], context: Context, names: Sequence[str], keep_names: Sequence[str]) -> Hidden:
    """What to take out of the texts of ``context``, of which ``decisions`` are all decisions."""
    kept = (*kept_names(context), *keep_names)
    ids = {name for decision in decisions for name in (decision.record_id, decision.episode_id)}
    telling = sorted(filter(_TELLING.search, ids), key=lambda name: (-len(name), name))
    return compiled(names, kept), frozenset(kept), tuple(telling)


def _blinded(out: Hidden, blocks: Sequence[Block]) -> list[Block]:
    """The sections of one block without what is hidden."""
    texts = [content for _, content in blocks]
    for identifier in out[2]:
        texts = [text.replace(identifier, "[id]") for text in texts]
    blinded = out[0].apply_all(texts)
    return [(label, one.text) for (label, _), one in zip(blocks, blinded, strict=True)]


def kept_names(context: Context) -> tuple[str, ...]:
    """What things in the universe are called: blinding must not touch it."""
    names: dict[str, None] = {}
    for item in context.instruments:
        names.update(dict.fromkeys((item.id, item.symbol or "", item.name, *item.aliases)))
    names.update(dict.fromkeys(fact.instrument for fact in context.facts))
    names.update(dict.fromkeys(series.instrument for series in context.series))
    names.update(dict.fromkeys(context.portfolio.positions if context.portfolio else ()))
    return tuple(name for name in names if name)


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
    decisions: Sequence[Decision], contexts: Mapping[str, Context], study: Study, rubric: Rubric,
    judges: Sequence[JudgeSpec] | None = None, only: Collection[str] | None = None,
    shown: Mapping[str, Message] | None = None,
) -> list[PlannedCall]:  # fmt: skip
    """Every judge call of a study, by decision, then judge, then trial."""
    chosen = [one for one in eligible(decisions, study.records) if only is None or one.record_id in only]
    users = user_messages(decisions, contexts.items(), study) if shown is None else shown
    system = Message("system", (Text.of(system_text(rubric)),))
    schema, template = Text.of(_schema_text(rubric)), judge_template(rubric)
    planned = []
    for decision in chosen:
        for judge in study.model_judges if judges is None else judges:
            for trial in range(1, judge.trials + 1):
                call = CallSpec.of(judge, (system, users[decision.record_id]), template.sha256, schema, trial)
                planned.append(PlannedCall(call, decision.record_id, judge.name, judge.family, trial))
    return planned


def user_messages(
    decisions: Sequence[Decision],
    contexts: Iterable[tuple[str, Context]],
    study: Study,
    *,
    only: Collection[str] | None = None,
) -> dict[str, Message]:
    """What a judge is shown of every decision that the study includes, by record id; see `plan_calls`."""
    names = blinding_names(decision.agent for decision in decisions)
    waiting: dict[str, list[Decision]] = {}
    for decision in eligible(decisions, study.records):
        waiting.setdefault(decision.context_id, []).append(decision)
    if only is not None:
        waiting = {name: ones for name, ones in waiting.items() if any(one.record_id in only for one in ones)}
    messages: dict[str, Message] = {}
    for context_id, context in contexts if waiting else ():
        members = waiting.pop(context_id, [])
        if not members:
            continue
        newest = latest(context)
        for decision in members:
            # Single facts are looked at only where the newest one is too new for a decision.
            if newest is not None and newest > decision.decided_at:
                refuse_future(decision, context)
        out = hidden(members, context, names, study.records.keep_names)
        wanted = [decision for decision in members if only is None or decision.record_id in only]
        sections = [material_blocks(context), *(decision_blocks(decision, out[1]) for decision in wanted)]
        shown = []
        for part, blocks in zip(["material", *["decision"] * len(wanted)], sections, strict=True):
            fenced = "\n\n".join(fence(label, content) for label, content in _blinded(out, blocks))
            shown.append(Text.of(judge_template().filled(part, blocks=fenced)))
        messages |= {
            one.record_id: Message("user", (shown[0], said)) for one, said in zip(wanted, shown[1:], strict=True)
        }
        if only is not None and not waiting:
            break
    if waiting:
        lost = sorted((d.record_id, d.context_id) for members in waiting.values() for d in members)
        raise InputError(
            "contexts", [Problem(f"record {name}", f"its context {one[:12]} is not among them") for name, one in lost]
        )
    return messages


def people_blocks(
    decisions: Sequence[Decision], context: Context, names: Sequence[str], keep_names: Sequence[str]
) -> tuple[list[Block], dict[str, list[Block]]]:
    """What a person is shown of a context and, by record id, of its decisions: a judge's sections without fences."""
    out = hidden(decisions, context, names, keep_names)
    return [one for one in _blinded(out, material_blocks(context)) if one[1]], {
        decision.record_id: [one for one in _blinded(out, decision_blocks(decision, out[1])) if one[1]]
        for decision in decisions
    }


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
    """The decision of a prompt, read back: all that a built-in judge knows of it."""
    content = {section.label: section.content for section in reversed(found)}
    head, *lines = [cells(line) for line in lines_of(content.get("actions", ""))] or [[]]
    actions = []
    for line in lines:
        named = dict(zip(head, line, strict=True))
        numbers: dict[str, Any] = {name: float(cell) for name, cell in list(named.items())[2:] if cell}
        actions.append(Action(instrument=line[0], kind=cast(ActionKind, line[1]), **numbers))
    values: dict[str, Cell] = {}
    tables: dict[str, tuple[Mapping[str, Cell], ...]] = {}
    stated = iter(lines_of(content.get("stated", "")))
    for text in stated:
        kind, second, third = cells(text)
        if kind == "value":
            values[second] = _cell(third)
        else:
            columns = cells(next(stated))
            rows = [cells(next(stated)) for _ in range(int(second))]
            tables[third] = tuple({k: _cell(v) for k, v in zip(columns, row, strict=True) if v} for row in rows)
    texts = (Rationale(text=one.content, kind=one.label) for one in found if one.label in JUDGED_KINDS)
    return Shown(tuple(actions), values, tables, tuple(texts))


def _cell(text: str) -> Cell:
    """A number where the cell is one, else its word."""
    try:
        return float(text)
    except ValueError:
        return text


# The book that a decision made of orders leaves behind, worked out from the prompt alone.

NAV_SLACK = 0.001
"""Maximum relative distance of the stated NAV from cash and holdings at the prices: all three are printed rounded."""

_UNTRADED = ("hold", "no_trade", "close")


@dataclass(frozen=True, slots=True)
class Book:
    """A portfolio after orders. ``after`` is None where the orders cannot be carried out."""

    after: Settlement | None
    checks: tuple[RuleCheck, ...]

    @property
    def legality(self) -> float | None:
        """The share of the rules that are kept: 0 for orders that cannot be carried out, None without any rule."""
        if self.after is None:
            return 0.0
        return sum(check.kept for check in self.checks) / len(self.checks) if self.checks else None

    @property
    def kept(self) -> bool:
        """Whether the orders can be carried out and every rule holds afterwards."""
        return self.after is not None and all(check.kept for check in self.checks)

    @property
    def holdings(self) -> dict[str, float]:
        """Absolute weights of what is held afterwards, by instrument; of all exposure where no equity is left."""
        if self.after is None:
            return {}
        if self.after.equity > 0:
            return {name: abs(weight) for name, weight in self.after.weights.items()}
        return dict.fromkeys(self.after.positions, 1.0 / max(len(self.after.positions), 1))


def book_of(context: Context, actions: Sequence[Action]) -> Book | None:
    """The book after the orders of a decision, worked out from the prompt alone, and the rules held against it."""
    portfolio = context.portfolio
    ruled = any(rule.kind in ORDER_RULES for rule in context.constraints)
    # A decision of orders trades units: no weight, and a quantity wherever it buys or sells.
    of_units = all(
        action.weight is None and (action.kind in _UNTRADED or (action.kind in SIDES and action.quantity is not None))
        for action in actions
    )
    if portfolio is None or not (of_units and (actions or ruled)):
        return None
    prices, fee = prices_of(context), fee_of(context.constraints)
    known = {item.id for item in context.instruments}
    if any(action.kind in SIDES and action.instrument in known - prices.keys() for action in actions):
        return None

    def settled(orders: Sequence[Action]) -> Settlement | None:
        try:
            after = settle(portfolio, prices, orders, fee_bps=fee)
        # Amounts beyond what a float holds make sums of infinities, which fsum refuses.
        except (InputError, ValueError, OverflowError):
            return None
        return after if math.isfinite(after.equity) and math.isfinite(after.exposure) else None

    before = settled(())
    if before is None or abs(before.equity - portfolio.nav) > NAV_SLACK * abs(portfolio.nav):
        return None
    after = settled(actions)
    return Book(after, () if after is None else audit(after, context.constraints))
