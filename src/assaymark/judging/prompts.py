"""Judge calls for decisions: the prompt, what is blinded in it, the plan of all calls, and the parsing of replies."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast, get_args

import assaymark.prompting as p
from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.blinding import Blinding, blinding_for, blinding_names
from assaymark.judging.rubric import Rubric
from assaymark.portfolio.broker import ORDER_RULES, SIDES, RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.prompting import Block, Parsed, PromptTemplate, Rejected, ReplyForm, Section, brief, cells, members, row
from assaymark.protocol import JudgeSpec, Records, Study
from assaymark.records import JSON, Action, ActionKind, Context, Decision, Judgment, Rationale, grouped

A = TypeVar("A")
About = TypeVar("About")
Lookahead = Literal["pass", "fail", "unsure"]

PARSER: Final = "2"
"""The version of this parser. Version 1 did not accept JSON in a code fence."""

MOST_CHARACTERS = 100_000
"""Maximum number of characters in a reply; a longer one is invalid and is not parsed."""
MOST_EVIDENCE = 12
"""Maximum number of quotations in a reply."""
MOST_QUOTED = 2_000
"""Maximum number of characters in a quotation or comment."""

shared_text = lru_cache(maxsize=64)(Text.of)
"""Hash a text that many calls share once."""


@dataclass(frozen=True, slots=True)
class PlannedCall(Generic[About, A]):
    """One call to a judge of any kind, with the subject of its answer and the form that its reply must have."""

    call: CallSpec
    judge: JudgeSpec
    about: About
    form: ReplyForm[A]

    @classmethod
    def of(
        cls, judge: JudgeSpec, trial: int, messages: tuple[Message, ...], template: PromptTemplate, about: About,
        form: ReplyForm[A], order: int = 0,
    ) -> PlannedCall[About, A]:  # fmt: skip
        """Plan the call that sends these messages to a judge."""
        call = CallSpec.to(judge, messages, template.sha256, shared_text(form.schema), trial, order)
        return cls(call, judge, about, form)

    def read(self, reply: Reply) -> Parsed[A]:
        """Parse a reply; a refused or truncated reply is reported as such, whatever its text."""
        if reply.finish == "refusal":
            return Parsed("refused", None, "the model refused to answer")
        if reply.finish == "length":
            return Parsed("truncated", None, "cut off at the length limit")
        if reply.finish == "failed" and self.form.failures:
            reason = f"the model gave no answer: {brief(reply.text)}" if reply.text else "no answer came"
            return Parsed("failed", None, reason)
        return self.form.parse(reply.text)

    def asks_again(self, reply: Reply) -> bool:
        """Return True if a reply contains no JSON at all, so that the call has to be repeated."""
        return reply.finish == "stop" and len(reply.text) <= self.form.most and p.is_not_json(reply.text)

    def again(self) -> PlannedCall[About, A]:
        """Plan the repetition of this call: trial 1b of trial 1."""
        return replace(self, call=replace(self.call, again=True))


@dataclass(frozen=True, slots=True)
class Graded:
    """The content of a valid reply by a rubric."""

    scores: Mapping[str, int]
    evidence: tuple[str, ...]
    lookahead_check: Lookahead
    comment: str | None = None


PlannedGrade = PlannedCall[str, Graded]
"""A call for the grades of one record; ``about`` is the record's id."""


def rubric_form(rubric: Rubric) -> ReplyForm[Graded]:
    """Build the reply form for a rubric: its JSON schema and its parser."""

    def check(raw: JSON) -> Graded:
        fields = members(raw, ("scores", "evidence", "lookahead_check"), optional=("comment",))
        refusal = f"scores must be an object (got {brief(fields['scores'])})"
        grades = members(fields["scores"], rubric.names, "dimensions", otherwise=refusal)
        scores = {name: p.whole_number(grades[name], name, *rubric.scale) for name in rubric.names}
        evidence, comment = fields["evidence"], fields.get("comment")
        if not isinstance(evidence, list):
            raise Rejected(f"evidence must be a list (got {brief(evidence)})")
        if len(evidence) > MOST_EVIDENCE:
            raise Rejected(f"evidence has {len(evidence)} entries, at most {MOST_EVIDENCE} are allowed")
        return Graded(
            scores,
            tuple(p.bounded_text(item, "evidence", MOST_QUOTED) for item in evidence),
            p.choice(fields["lookahead_check"], get_args(Lookahead), "lookahead_check must be pass, fail or unsure"),
            None if comment is None else p.bounded_text(comment, "comment", MOST_QUOTED),
        )

    schema = p.schema_text({
        "scores": p.object_schema(dict.fromkeys(rubric.names, rubric.points)),
        "evidence": {"type": "array", "items": {"type": "string"}},
        "lookahead_check": {"type": "string", "enum": list(get_args(Lookahead))},
        "comment": {"type": ["string", "null"]},
    })  # fmt: skip
    return ReplyForm(rubric.version, schema, check, MOST_CHARACTERS)


def judgment(planned: PlannedGrade, reply: Reply, *, second: Reply | None = None) -> Judgment:
    """Convert the reply to a planned call into a judgment; ``second`` is the reply to the repeated call."""
    if second is not None and planned.asks_again(reply):
        return replace(judgment(planned.again(), second), first_key=planned.call.key)
    read = planned.read(reply)
    fields: dict[str, Any] = {"scores": {}}
    if answer := read.answer:
        fields = {"evidence": answer.evidence, "lookahead_check": answer.lookahead_check}
        fields["scores"] = {name: float(score) for name, score in answer.scores.items()}
    return Judgment(
        planned.about, planned.judge.name, planned.judge.family, planned.form.version, planned.call.trial,
        status="ok" if answer else "refused" if read.state == "refused" else "invalid", call_key=planned.call.key,
        reason=read.reason, **fields,
    )  # fmt: skip


ACTION_NUMBERS = ("weight", "quantity", "price", "leverage", "stop", "target", "confidence", "expected_return")
"""The numeric fields of an action, in column order; a column appears if any action has a value for it."""

STATED_WORDS = frozenset(("selected", "rejected", "held", "agent", "arena"))
"""Words in structured parts that are shown in addition to numbers and instruments."""


def decision_blocks(decision: Decision, words: Collection[str] = ()) -> list[Block]:
    """Return the prompt sections of one decision: its actions, its stated numbers, and each judged text."""
    actions = decision.actions
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in actions)]
    rows = [
        (action.instrument, action.kind, *(p.number_text(getattr(action, name)) for name in filled))
        for action in actions
    ]
    # Single values of the structured parts come first, then each list of similar entries as a table.
    values: list[str] = []
    tables: list[str] = []

    def cell_of(value: JSON) -> str | None:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return p.number_text(value)
        return value if isinstance(value, str) and (value in words or value in STATED_WORDS) else None

    def add(path: str, value: JSON) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                add(f"{path}.{key}", value[key])
        elif isinstance(value, (list, tuple)):
            if not all(isinstance(item, Mapping) for item in value):
                for at, item in enumerate(value):
                    add(f"{path}.{at}", item)
                return
            entries = [{key: cell for key in entry if (cell := cell_of(entry[key])) is not None} for entry in value]
            if columns := list(dict.fromkeys(key for entry in entries for key in entry)):
                body = [[entry.get(key, "") for key in columns] for entry in entries]
                tables.append("\n".join(p.table_lines(path, columns, body)))
        elif (cell := cell_of(value)) is not None:
            values.append(row(("value", path, cell)))

    if decision.confidence is not None:
        add("confidence", decision.confidence)
    for name in sorted(decision.stages):
        add(name, decision.stages[name])
    return [
        ("actions", "\n".join(row(cells) for cells in [("instrument", "action", *filled), *rows])),
        ("stated", "\n".join([*values, *tables])),
        *((rationale.kind, rationale.text) for rationale in p.judged_rationales(decision)),
    ]


TEMPLATE = "judge-v1.txt"
"""The prompt template in use."""

_EACH = "the texts describe what each number means"
_SOME = "the texts describe what some numbers mean, and a number between two of them lies between their texts"
_TELLING = re.compile(r"\A(?=.*[^\W\d_])(?=.*\d).{8,}\Z", re.DOTALL)


def judge_template(rubric: Rubric | None = None) -> PromptTemplate:
    """Load the prompt template, whose text enters the plan hash, worded for a rubric's scale."""
    template = p.prompt_template("assaymark.judging", TEMPLATE)
    if rubric is None or rubric.scale == (1, 5):
        return template
    text = template.text.replace("from 1 to 5", "from {} to {}".format(*rubric.scale))
    if any(len(dimension.at) <= rubric.scale[1] - rubric.scale[0] for dimension in rubric.dimensions):
        text = text.replace(_EACH, _SOME)
    return PromptTemplate.of(TEMPLATE, text)


def plan_texts(rubric: Rubric) -> dict[str, str]:
    """Return every text used in the judges' prompts, by name, all of which the plan hash must cover."""
    return {
        TEMPLATE: judge_template(rubric).text,
        f"rubric {rubric.version}": rubric.text,
        f"schema {rubric.version}": rubric_form(rubric).schema,
    }


def system_text(rubric: Rubric) -> str:
    """Render the system message: the task, the rubric with its anchors, and the form of the answer."""
    schema = rubric_form(rubric).schema
    return judge_template(rubric).filled("system", rubric=rubric.text, schema=schema, most_evidence=MOST_EVIDENCE)


class Hidden(NamedTuple):
    """Text to remove from one context: names, except the ``kept`` ones, and the ids of records and episodes."""

    names: Blinding
    kept: frozenset[str]
    ids: tuple[str, ...]


def hidden(decisions: Sequence[Decision], context: Context, names: Sequence[str], keep_names: Sequence[str]) -> Hidden:
    """Collect the text to remove from ``context`` and from ``decisions``, which must be all its decisions."""
    spared = (*kept_names(context), *keep_names)
    ids = {name for decision in decisions for name in (decision.record_id, decision.episode_id)}
    telling = sorted(filter(_TELLING.search, ids), key=lambda name: (-len(name), name))
    return Hidden(blinding_for(names, spared), frozenset(spared), tuple(telling))


def _blind_blocks(out: Hidden, blocks: Sequence[Block]) -> list[Block]:
    """Return the sections with hidden names and ids removed."""
    texts = [content for _, content in blocks]
    for identifier in out.ids:
        texts = [text.replace(identifier, "[id]") for text in texts]
    blinded = out.names.apply_all(texts)
    return [(label, name.text) for (label, _), name in zip(blocks, blinded, strict=True)]


def kept_names(context: Context) -> tuple[str, ...]:
    """Return the names of the context's instruments, which blinding must keep."""
    names: dict[str, None] = {}
    for item in context.instruments:
        names.update(dict.fromkeys((item.id, item.symbol or "", item.name, *item.aliases)))
    names.update(dict.fromkeys(fact.instrument for fact in context.facts))
    names.update(dict.fromkeys(series.instrument for series in context.series))
    names.update(dict.fromkeys(context.portfolio.positions if context.portfolio else ()))
    return tuple(name for name in names if name)


def left_out(decision: Decision, records: Records) -> str | None:
    """Return the reason why a study excludes this decision; None if it is included."""
    honest = decision.derivation.kind == "honest"
    if honest and records.agents is not None and decision.agent.id not in records.agents:
        return "agent not in the plan"
    if decision.derivation.kind not in records.derivations:
        return f"derivation {decision.derivation.kind}"
    return next((f"flag {flag}" for flag in decision.flags if flag in records.exclude_flags), None)


def eligible(decisions: Iterable[Decision], records: Records) -> list[Decision]:
    """Return the decisions that a study includes: its derivations and agents, without the flags it excludes."""
    return [decision for decision in decisions if left_out(decision, records) is None]


def plan_calls(
    decisions: Sequence[Decision], contexts: Mapping[str, Context], study: Study, rubric: Rubric,
    judges: Sequence[JudgeSpec] | None = None, only: Collection[str] | None = None,
    shown: Mapping[str, Message] | None = None,
) -> list[PlannedGrade]:  # fmt: skip
    """Plan every judge call of a study, ordered by decision, then judge, then trial."""
    chosen = [decision for decision in eligible(decisions, study.records) if only is None or decision.record_id in only]
    users = user_messages(decisions, contexts.items(), study) if shown is None else shown
    template, form = judge_template(rubric), rubric_form(rubric)
    system = Message("system", (Text.of(system_text(rubric)),))
    return [
        PlannedCall.of(judge, trial, (system, users[decision.record_id]), template, decision.record_id, form)
        for decision in chosen
        for judge in (study.model_judges if judges is None else judges)
        for trial in range(1, judge.trials + 1)
    ]


def user_messages(
    decisions: Sequence[Decision], contexts: Iterable[tuple[str, Context]], study: Study, *,
    only: Collection[str] | None = None,
) -> dict[str, Message]:  # fmt: skip
    """Render the user message for every decision that the study includes, by record id; see `plan_calls`."""
    names = blinding_names(decision.agent for decision in decisions)
    waiting = grouped(eligible(decisions, study.records), lambda decision: decision.context_id)
    if only is not None:
        waiting = {
            name: group for name, group in waiting.items() if any(decision.record_id in only for decision in group)
        }
    messages: dict[str, Message] = {}
    for context_id, context in contexts if waiting else ():
        members = waiting.pop(context_id, [])
        if not members:
            continue
        newest = p.latest_time(context)
        for decision in members:
            # Single facts are checked only if the newest fact is later than the decision.
            if newest is not None and newest > decision.decided_at:
                p.refuse_future(decision, context)
        out = hidden(members, context, names, study.records.keep_names)
        wanted = [decision for decision in members if only is None or decision.record_id in only]
        sections = [p.material_blocks(context), *(decision_blocks(decision, out.kept) for decision in wanted)]
        shown = []
        for part, blocks in zip(["material", *["decision"] * len(wanted)], sections, strict=True):
            fenced = "\n\n".join(p.fence(label, content) for label, content in _blind_blocks(out, blocks))
            shown.append(Text.of(judge_template().filled(part, blocks=fenced)))
        messages |= {
            item.record_id: Message("user", (shown[0], text)) for item, text in zip(wanted, shown[1:], strict=True)
        }
        if only is not None and not waiting:
            break
    if waiting:
        lost = sorted((d.record_id, d.context_id) for members in waiting.values() for d in members)
        raise InputError(
            "contexts", [Problem(f"record {name}", f"its context {key[:12]} is not among them") for name, key in lost]
        )
    return messages


def people_blocks(
    decisions: Sequence[Decision], context: Context, names: Sequence[str], keep_names: Sequence[str]
) -> tuple[list[Block], dict[str, list[Block]]]:
    """Return the sections shown to human graders for a context and, by record id, its decisions, without fences."""
    out = hidden(decisions, context, names, keep_names)
    return [block for block in _blind_blocks(out, p.material_blocks(context)) if block[1]], {
        decision.record_id: [block for block in _blind_blocks(out, decision_blocks(decision, out.kept)) if block[1]]
        for decision in decisions
    }


Cell = float | str


@dataclass(frozen=True, slots=True)
class ParsedDecision:
    """A decision parsed from a prompt. ``tables`` holds stated lists, as a mapping of column to cell for each entry."""

    actions: tuple[Action, ...]
    values: Mapping[str, Cell]
    tables: Mapping[str, tuple[Mapping[str, Cell], ...]]
    texts: tuple[Rationale, ...]

    @property
    def confidence(self) -> float | None:
        """The confidence of the whole decision, 0..1; None if the venue set it rather than the agent."""
        value = self.values.get("confidence")
        return value if isinstance(value, float) and self.values.get("confidence_by") != "arena" else None


def read_decision(sections: Sequence[Section]) -> ParsedDecision:
    """Parse the decision back from the sections of a prompt, which are a built-in judge's only input."""
    content = {section.label: section.content for section in reversed(sections)}
    head, *lines = [cells(line) for line in p.lines_of(content.get("actions", ""))] or [[]]
    actions = []
    for line in lines:
        named = dict(zip(head, line, strict=True))
        numbers: dict[str, Any] = {name: float(cell) for name, cell in list(named.items())[2:] if cell}
        actions.append(Action(instrument=line[0], kind=cast(ActionKind, line[1]), **numbers))
    stated, others = p.read_tables(p.lines_of(content.get("stated", "")))
    values = {path: _cell(text) for _, path, text in others}
    tables = {
        path: tuple({column: _cell(text) for column, text in entry.items() if text} for entry in entries)
        for path, entries in stated.items()
    }
    texts = (Rationale(text=part.content, kind=part.label) for part in sections if part.label in p.JUDGED_KINDS)
    return ParsedDecision(tuple(actions), values, tables, tuple(texts))


def _cell(text: str) -> Cell:
    """Return the number in a cell, or its text if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return text


# The portfolio after a decision made of orders, computed from the prompt alone.

NAV_SLACK = 0.001
"""Maximum relative distance of the stated NAV from cash plus holdings at the prices; all three are printed rounded."""

_UNTRADED = ("hold", "no_trade", "close")


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """A portfolio after orders, with its rule checks. ``after`` is None if the orders cannot be executed."""

    after: Settlement | None
    checks: tuple[RuleCheck, ...]

    @property
    def kept(self) -> bool:
        """True if the orders can be executed and every rule is satisfied afterwards."""
        return self.after is not None and all(check.kept for check in self.checks)

    @property
    def holdings(self) -> dict[str, float]:
        """Absolute weight of each instrument held afterwards; equal weights if no equity is left."""
        if self.after is None:
            return {}
        if self.after.equity > 0:
            return {name: abs(weight) for name, weight in self.after.weights.items()}
        return dict.fromkeys(self.after.positions, 1.0 / max(len(self.after.positions), 1))


def order_outcome(context: Context, actions: Sequence[Action]) -> OrderOutcome | None:
    """Compute the portfolio after a decision's orders and check its rules; None if the prompt does not allow it."""
    portfolio = context.portfolio
    ruled = any(rule.kind in ORDER_RULES for rule in context.constraints)
    # A decision made of orders trades units: no weights, and a quantity for every trade.
    of_units = all(
        action.weight is None and (action.kind in _UNTRADED or (action.kind in SIDES and action.quantity is not None))
        for action in actions
    )
    if portfolio is None or not (of_units and (actions or ruled)):
        return None
    prices, fee = prices_of(context), fee_of(context.constraints)
    ids = {item.id for item in context.instruments}
    if any(action.kind in SIDES and action.instrument in ids - prices.keys() for action in actions):
        return None

    def settled(orders: Sequence[Action]) -> Settlement | None:
        try:
            after = settle(portfolio, prices, orders, fee_bps=fee)
        # Amounts beyond the range of a float make sums of infinities, which fsum refuses.
        except (InputError, ValueError, OverflowError):
            return None
        return after if math.isfinite(after.equity) and math.isfinite(after.exposure) else None

    before = settled(())
    if before is None or abs(before.equity - portfolio.nav) > NAV_SLACK * abs(portfolio.nav):
        return None
    after = settled(actions)
    return OrderOutcome(after, () if after is None else audit(after, context.constraints))
