"""One call to each model before anything is locked or spent: a wrong name, key or form costs no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from assaymark.agents.llm import date_call
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply, Text, first_line, run_calls
from assaymark.engine.providers.http_agent import is_outside
from assaymark.engine.providers.registry import check_ready
from assaymark.engine.rate_limits import KEPT, door_of
from assaymark.errors import ModelError
from assaymark.judging import eligible, plan_calls, rubric_of, user_messages
from assaymark.prompting import NotJson, Rejected, strict_reply
from assaymark.protocol import AgentSpec, EngineChoice, JudgeSpec, Study
from assaymark.records import Decision, Rationale, sha256_text
from assaymark.workflow.ask import purse_of, require_not_stopped, run_options
from assaymark.workflow.lock import cut
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.sharing import LockedPlan, hold_ledger
from assaymark.workflow.study_calls import decided, first_questions
from assaymark.workflow.tables import CYCLES, DECISIONS, Store
from assaymark.workflow.track import planned_decisions

STAND_IN: Final = "This text stands in for the reasons that an agent will give. " * 20
"""A text that is not written yet: about 300 tokens."""

_NOTHING: Final = "nothing is locked, and nothing was sent but one call a model"
_CHECK: Final = (
    "This only checks that you can be asked; nothing is decided or graded by it. Answer with one JSON object of this "
    "form, with any content:"
)


@dataclass(eq=False)
class Canaries:
    """The first planned call of each model, asked before a plan is locked, and kept under its key once it is."""

    models: Mapping[str, Model]
    engine: EngineChoice = field(default_factory=EngineChoice)
    progress: Progress = silent
    problems: list[str] = field(default_factory=list)
    kept: dict[str, tuple[CallSpec, Reply]] = field(default_factory=dict)
    _asked: set[tuple[str, ...]] = field(default_factory=set)
    _twice: bool = False

    def ask(
        self, calls: Iterable[CallSpec], *, ours: bool = False, further: Callable[[], Iterable[CallSpec]] = tuple
    ) -> None:
        """Ask the first of these calls of each model that was not asked yet; models of our own only with ``ours``."""
        wanted, given = [], list(calls)
        for call in given:
            place = _place(call)
            if place in self._asked or (call.model.startswith("reference/") and not ours):
                continue
            self._asked.add(place)
            try:
                check_ready(self.models[call.model], call.args)
            except ModelError as exc:
                self.problems.append(str(exc) if str(exc).startswith(call.model) else f"{call.model}: {exc}")
            else:
                wanted += [] if is_outside(call.model) else [call]
        turned_away = self._send(wanted) if wanted else []
        # The next call with another text of each model whose first one was refused as a request.
        second: dict[str, tuple[CallSpec, str]] = {}
        planned = [*given, *further()] if turned_away else []
        for call, why in turned_away:
            alike = (one for one in planned if _place(one) == _place(call) and one.messages != call.messages)
            if (found := next(alike, None)) is None:
                self.problems.append(f"{call.model}: {why}")
            else:
                second[found.key] = found, why
        self._twice = self._twice or bool(second)
        for call, why in self._send([call for call, _ in second.values()]) if second else []:
            self.problems.append(f"{call.model}: {second[call.key][1]}; its next call was refused too: {why}")

    def _send(self, calls: Sequence[CallSpec]) -> list[tuple[CallSpec, str]]:
        """Ask these calls; returns those that were refused as requests, with the reason."""
        purse = purse_of(self.models)
        with TemporaryDirectory() as path, Ledger.open(Path(path) / "ledger.db") as ledger:
            summary = run_calls(
                ledger, calls, self.models, purse=None if purse is None else purse.emptied(),
                progress=lambda done, total: self.progress("asking each model once", done, total),
                **run_options(self.engine),
            )  # fmt: skip
            replies = dict(ledger.replies([call.key for call in calls]))
        require_not_stopped(summary, "no folder, because nothing is locked yet")
        asked = {call.key: call for call in calls}
        # Without the provider in front, which the model's name says already.
        failed = [(one, one.reason.removeprefix(f"{one.model.partition('/')[0]}: ")) for one in summary.failed]
        self.problems += [f"{one.model}: {why}" for one, why in failed if not one.turned_away]
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
        return [(asked[one.key], why) for one, why in failed if one.turned_away]

    def require(self) -> None:
        """Raise `ModelError` with everything that is wrong, if anything is."""
        nothing = f"{_NOTHING}, and a second one where that was refused" if self._twice else _NOTHING
        if len(self.problems) == 1:
            raise ModelError(f"{self.problems[0]}; {nothing}", retryable=False)
        if self.problems:
            head = f"{len(self.problems)} models cannot be asked; {nothing}"
            raise ModelError("\n  ".join([head, *self.problems]), retryable=False)

    def keep(self, folder: RunFolder, locked: LockedPlan | None = None) -> None:
        """Write the replies into the ledger of the plan that was locked: they are not asked for again."""
        if self.kept:
            with Ledger.open(folder.ledger) as ledger:
                if locked is not None:
                    hold_ledger(folder, ledger, locked)
                calls = [call for call, _ in self.kept.values()]
                run_calls(ledger, calls, dict.fromkeys((call.model for call in calls), self))

    async def complete(self, call: CallSpec) -> Reply:
        """The reply that came before, for `keep`."""
        return self.kept[call.key][1]


def check_call(spec: AgentSpec | JudgeSpec, schema: str) -> CallSpec:
    """A call that stands in for the first of a model where that hangs on what is not there yet."""
    return CallSpec(
        model=spec.model, messages=(Message("user", (Text.of(_CHECK), Text.of(schema))),),
        template=sha256_text(_CHECK), seed=spec.seed, temperature=spec.temperature, effort=spec.effort,
        schema=Text.of(schema), args=dict(spec.args),
    )  # fmt: skip


def study_canaries(folder: RunFolder, study: Study, models: Mapping[str, Model], progress: Progress) -> Canaries:
    """The canaries of a study whose cycles or records are there: its agents, its date probe, then its judges."""
    found = Canaries(models, study.engine, progress)
    judges = [*study.model_judges, *([study.stability.probe] if study.stability.probe else [])]
    outside = [one for one in judges if not one.model.startswith("reference/")]
    store = Store(folder)
    if study.substrate is None:
        decisions: Sequence[Decision] = store.read(DECISIONS)
    else:
        # Judges are shown what one of the agents decides.
        questions = first_questions(study, store)
        next_ones = lambda: (one.call for one in first_questions(study, store, cycle=1))  # noqa: E731
        found.ask((one.call for one in questions), ours=bool(outside), further=next_ones)
        if (model := study.substrate.date_probe.model) is not None:
            found.ask([date_call(model, one.context) for one in cut(study.substrate, cycles=2)])
        made = {one.record_id: one for one in decided(questions, found.kept, models)}
        decisions = [made.get(one.record_id, one) for one in planned_decisions(study, store.read(CYCLES))]

    def judged(number: int) -> Iterable[CallSpec]:
        """The call of each judge about one decision, counted from 0: those that have reasons come first."""
        there = sorted(eligible(decisions, study.records), key=lambda one: not one.rationales) if outside else []
        if number >= len(there):
            return []
        first = there[number] if there[number].rationales else stand_in(there[number])
        whole = [first if one.record_id == first.record_id else one for one in decisions]
        shown = user_messages(whole, store.each_context(), study, only={first.record_id})
        planned = plan_calls(whole, {}, study, rubric_of(study.rubric), judges=outside, only=shown, shown=shown)
        return [one.call for one in planned]

    found.ask(judged(0), further=lambda: judged(1))
    found.require()
    return found


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


def _place(call: CallSpec) -> tuple[str, ...]:
    """Who is asked, and where."""
    return (call.model, *map(str, door_of(call)))
