"""One call to each model before anything is locked or spent: a wrong name, key or form costs no more than that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from assaymark.agents.date_probe import date_call
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply, Text, first_line, run_calls
from assaymark.engine.breaker import KEPT, door_of
from assaymark.engine.models import check_ready, is_outside
from assaymark.errors import ModelError
from assaymark.judging import eligible, load_rubric, plan_calls, user_messages
from assaymark.prompting.strict_json import NotJson, Rejected, strict_reply
from assaymark.protocol import AgentSpec, EngineChoice, JudgeSpec, Study
from assaymark.records import Decision, Rationale, sha256_text
from assaymark.workflow.asking import manner, purse_of, require_not_stopped
from assaymark.workflow.deciding import decided, first_questions
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.planned import planned_decisions
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.sharing import LockedPlan, hold_ledger
from assaymark.workflow.substrates import cut
from assaymark.workflow.tables import CYCLES, DECISIONS, Store

STAND_IN: Final = "This text stands in for the reasons that an agent will give. " * 20
"""A text that is not written yet: about 300 tokens."""

_NOTHING: Final = "nothing is locked, and nothing was sent but one call a model"
_CHECK: Final = (
    "This only checks that you can be asked; nothing is decided or graded by it. Answer with one JSON object of this "
    "form, with any content:"
)


@dataclass(eq=False)
class Canaries:
    """The first planned call of each model, asked before a plan is locked, and kept under its key once it is.

    Models of our own are not asked, and agents of somebody's own only whether they are there. What is wrong is
    collected, so that one message has the problems of all models.
    """

    models: Mapping[str, Model]
    engine: EngineChoice = field(default_factory=EngineChoice)
    progress: Progress = silent
    problems: list[str] = field(default_factory=list)
    kept: dict[str, tuple[CallSpec, Reply]] = field(default_factory=dict)
    _asked: set[tuple[str, ...]] = field(default_factory=set)

    def ask(self, calls: Iterable[CallSpec], *, ours: bool = False) -> None:
        """Ask the first of these calls of each model that was not asked yet; models of our own only with ``ours``."""
        wanted = []
        for call in calls:
            place = (call.model, *map(str, door_of(call)))
            if place in self._asked or (call.model.startswith("reference/") and not ours):
                continue
            self._asked.add(place)
            try:
                check_ready(self.models[call.model], call.args)
            except ModelError as exc:
                self.problems.append(str(exc) if str(exc).startswith(call.model) else f"{call.model}: {exc}")
            else:
                wanted += [] if is_outside(call.model) else [call]
        if wanted:
            self._send(wanted)

    def _send(self, calls: Sequence[CallSpec]) -> None:
        purse = purse_of(self.models)
        with TemporaryDirectory() as path, Ledger.open(Path(path) / "ledger.db") as ledger:
            summary = run_calls(
                ledger,
                calls,
                self.models,
                purse=None if purse is None else purse.emptied(),
                progress=lambda done, total: self.progress("asking each model once", done, total),
                **manner(self.engine),
            )
            replies = dict(ledger.replies([call.key for call in calls]))
        require_not_stopped(summary, "no folder, because nothing is locked yet")
        asked = {call.key: call for call in calls}
        self.problems += [f"{one.model}: {_without(one.reason, one.model)}" for one in summary.failed]
        ended = {*replies, *(one.key for one in summary.failed)}
        for call in (one for one in calls if one.key not in ended):
            ours = (call.model.partition("/")[0], "budget")
            why = "; ".join(line.removesuffix(f"; {KEPT}") for line in summary.stopped if line.startswith(ours))
            self.problems.append(f"{call.model}: not asked to the end ({why})")
        for key, reply in replies.items():
            if _form_missed(asked[key], reply):
                what = f"wrote no JSON object where one is asked for; its reply begins {first_line(reply.text)}"
                self.problems.append(f"{asked[key].model}: {what}")
            else:
                self.kept[key] = asked[key], reply

    def require(self) -> None:
        """Raise `ModelError` with everything that is wrong, if anything is."""
        if len(self.problems) == 1:
            raise ModelError(f"{self.problems[0]}; {_NOTHING}", retryable=False)
        if self.problems:
            head = f"{len(self.problems)} models cannot be asked; {_NOTHING}"
            raise ModelError("\n  ".join([head, *self.problems]), retryable=False)

    def keep(self, folder: RunFolder, locked: LockedPlan | None = None) -> None:
        """Write the replies into the ledger of the plan that was locked: they are not asked for again."""
        if self.kept:
            with Ledger.open(folder.ledger) as ledger:
                if locked is not None:
                    hold_ledger(folder, ledger, locked)
                calls = [call for call, _ in self.kept.values()]
                run_calls(ledger, calls, dict.fromkeys({call.model for call in calls}, _Given(self.kept)))


@dataclass(frozen=True)
class _Given:
    """Answers calls with the replies that came before."""

    kept: Mapping[str, tuple[CallSpec, Reply]]

    async def complete(self, call: CallSpec) -> Reply:
        return self.kept[call.key][1]


def check_call(spec: AgentSpec | JudgeSpec, schema: str) -> CallSpec:
    """A call that stands in for the first of a model where that hangs on what is not there yet."""
    shown = (Message("user", (Text.of(_CHECK), Text.of(schema))),)
    return CallSpec(
        model=spec.model,
        messages=shown,
        template=sha256_text(_CHECK),
        seed=spec.seed,
        temperature=spec.temperature,
        effort=spec.effort,
        schema=Text.of(schema),
        args=dict(spec.args),
    )


def study_canaries(folder: RunFolder, study: Study, models: Mapping[str, Model], progress: Progress) -> Canaries:
    """The canaries of a study whose cycles or records are there: its agents, its date probe, then its judges.

    Judges are shown what the first agent decided in its canary. Where none did, a text stands in for it.

    Raises
    ------
    ModelError
        A model cannot be asked; says of each why.
    """
    found = Canaries(models, study.engine, progress)
    judges = [*study.model_judges, *([study.stability.probe] if study.stability.probe else [])]
    store = Store(folder)
    if study.substrate is None:
        decisions: Sequence[Decision] = store.read(DECISIONS)
    else:
        questions, ours = first_questions(study, store), all(one.model.startswith("reference/") for one in judges)
        found.ask((one.call for one in questions), ours=not ours)  # judges are shown what one of them decides
        if (model := study.substrate.date_probe.model) is not None:
            found.ask([date_call(model, cut(study.substrate, cycles=1)[0].context)])
        made = {one.record_id: one for one in decided(questions, found.kept, models)}
        decisions = [made.get(one.record_id, one) for one in planned_decisions(study, store.read(CYCLES))]
    found.ask(_judged(study, store, decisions, judges))
    found.require()
    return found


def _judged(
    study: Study, store: Store, decisions: Sequence[Decision], judges: Sequence[JudgeSpec]
) -> Iterable[CallSpec]:
    """The call of each judge about the first decision that has reasons."""
    outside = [one for one in judges if not one.model.startswith("reference/")]
    there = eligible(decisions, study.records)
    if not outside or not there:
        return []
    first = next((one for one in there if one.rationales), None)
    if first is None:
        first = stand_in(there[0])
        decisions = [first if one.record_id == first.record_id else one for one in decisions]
    shown = user_messages(decisions, store.each_context(), study, only={first.record_id})
    rubric = load_rubric(study.rubric.name)
    return [one.call for one in plan_calls(decisions, {}, study, rubric, judges=outside, only=shown, shown=shown)]


def stand_in(planned: Decision) -> Decision:
    """A planned decision with a text of its own: equal texts would be asked about once."""
    text = STAND_IN + sha256_text(planned.record_id)[:12]
    return replace(planned, rationales=(Rationale(text=text, kind="summary"),))


def _form_missed(call: CallSpec, reply: Reply) -> bool:
    """Whether a reply is no JSON where some was asked for; one code fence around it is no matter."""
    if call.schema is None or reply.finish != "stop":
        return False
    try:
        return not isinstance(strict_reply(reply.text), dict)
    except Rejected as exc:
        return isinstance(exc, NotJson)


def _without(reason: str, model: str) -> str:
    """A reason without the provider in front, which the model's name says already."""
    return reason.removeprefix(f"{model.partition('/')[0]}: ")
