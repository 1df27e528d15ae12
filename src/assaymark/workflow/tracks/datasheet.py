"""`assaymark datasheet`: a judge as an instrument, from calls of our own or from somebody's log of verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from assaymark.encoding import write_atomic
from assaymark.engine import CallSpec, Ledger, Model
from assaymark.engine.providers.registry import provider_argument_problems
from assaymark.errors import InputError, Problem
from assaymark.importers.verdicts import VerdictMap, parse_verdict_map, read_verdicts, verdict_map
from assaymark.judging import PLANTED, PlannedCall, Rubric, judgment, load_rubric, plan_calls, rubric_of
from assaymark.judging.pairs import (
    PLANTED_PAIRS,
    STRICT,
    TIE_ALLOWED,
    Pair,
    PointStimulus,
    Task,
    build_stimuli,
    check,
    finance_tasks,
    load_tasks,
    manifest_of,
    pair_argument_problems,
    pair_call,
    pair_prompt_hashes,
    plan_pair_calls,
    planted_values,
    point_records,
    point_stimuli,
    stimuli_json,
)
from assaymark.judging.reference.judges import dimension_problem
from assaymark.metrology.datasheet import (
    BASE,
    CallTable,
    Datasheet,
    TaskBootstrap,
    agreement_arrays,
    between_kappa,
    compare,
    datasheet_of,
    kappa_measurement,
    pointwise_measurements,
    sketch,
    table_measurements,
)
from assaymark.metrology.measure_people import beside_people
from assaymark.notebook import Note, Part, Result
from assaymark.protocol import SCALE, JudgeSpec, Records, Scale, Study
from assaymark.records import AGGREGATE, JSON, Judgment, Measurement, PairCall, canonical_json, parse, sha256_text
from assaymark.report import Frame, judges_frame, render_comparison, render_datasheet
from assaymark.report.datasheet import datasheet_path
from assaymark.report.records.answers import Answers, Booklet, answer_pages
from assaymark.report.records.calls import ReadCalls
from assaymark.report.records.judgments import Calls
from assaymark.report.translation import in_language
from assaymark.workflow.ask import Canaries, ask, calls_of, stored_answers, unusable_of
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder, missing, new_folder, read_text, replace_files, write_sums
from assaymark.workflow.tables import MEASUREMENTS, PAIRS, POINTS, Store
from assaymark.workflow.track import unknown_model


def measure_pointwise(
    folder: RunFolder, judge: JudgeSpec, models: Mapping[str, Model], tasks: Sequence[Task], rubric: Rubric,
    seed: int, *, progress: Progress,
) -> tuple[tuple[Measurement, ...], list[Judgment]]:  # fmt: skip
    """What a rubric judge gives to nothing, for each requirement met and for length, by dimension and on their mean."""
    stimuli = point_stimuli(tasks, seed)
    planned = point_calls(stimuli, judge, rubric)
    unusable = unusable_of(planned, lambda one, reply: judgment(one, reply, rubric).reason)
    replies = ask(
        folder, [item.call for item in planned], models, judge=judge.name, what="asking for grades by",
        progress=progress, unusable=unusable,
    )  # fmt: skip
    graded = [judgment(item, replies[item.call.key], rubric) for item in planned]
    found = point_measurements(stimuli, graded, rubric.names, judge.name, seed, rubric.scale)
    return found, graded


def tested_by(study: Study | None) -> Rubric:
    """The rubric that a panel's own tests are graded by: the study's where it is one of its own, else v1.0."""
    return load_rubric("v1.0") if study is None or study.rubric.text is None else rubric_of(study.rubric)


def point_calls(stimuli: Sequence[PointStimulus], judge: JudgeSpec, rubric: Rubric) -> list[PlannedCall]:
    """Every call of a judge on single texts, through the ordinary judge prompt; calls are seeded by the judge."""
    decisions, contexts = point_records(stimuli)
    records = Records(derivations=("honest", "vacuum", "ladder", "length_matched"), exclude_flags=())
    study = Study(name="datasheet", seed=0, judges=(judge,), records=records)
    return plan_calls(decisions, contexts, study, rubric)


def point_measurements(
    stimuli: Sequence[PointStimulus],
    graded: Sequence[Judgment],
    dimensions: Sequence[str],
    judge: str,
    seed: int,
    scale: Scale = SCALE,
) -> tuple[Measurement, ...]:
    """The grades of single texts as measurements: of the mean of all dimensions, then of each."""
    scores: defaultdict[str, list[Mapping[str, float]]] = defaultdict(list)
    for one in graded:
        if one.status == "ok":
            mean = sum(one.scores.values()) / len(one.scores)
            scores[one.trajectory].append({AGGREGATE: mean, **one.scores})
    given = [(one, each) for one in stimuli for each in scores.get(one.id, ())]
    vacuum, ladder, filler = (
        [(one, each) for one, each in given if one.variant == kind] for kind in ("vacuum", "ladder", "filler")
    )
    tokens = {one.id: one.tokens for one in stimuli}
    rng = np.random.default_rng([seed, 9])
    found: list[Measurement] = []
    for name in (AGGREGATE, *dimensions):
        found += pointwise_measurements(
            [each[name] for _, each in ladder], [one.task for one, _ in ladder],
            [float(one.level) for one, _ in ladder], judge, dimension=name,
            vacuum_scores=[each[name] for _, each in vacuum], vacuum_tasks=[one.task for one, _ in vacuum],
            filler_scores=[each[name] for _, each in filler], filler_tasks=[one.task for one, _ in filler],
            filler_levels=[float(one.level) for one, _ in filler],
            filler_tokens=[one.tokens - tokens[one.parent or one.id] for one, _ in filler], rng=rng, scale=scale,
        )  # fmt: skip
    return tuple(found)


LOG_NON_CLAIMS: Final = (
    "That a preference in this log is an error: nothing here says which text is better.",
    "That another set of pairs, another prompt or another version of the judge would measure the same.",
    "That judges who agree are right.",
    "That a stable choice is a good one: it follows the text, whatever in it.",
)
"""What a datasheet made from somebody's log does not say."""

TRUTH_NON_CLAIM: Final = "That the column read as the truth is right: accuracy is agreement with it."
"""What stands in place of the first where a log has a column for the truth."""


@dataclass(frozen=True, slots=True, repr=False)
class Made(Result):
    """Datasheets that were made, how judges agree with each other, and where the pages lie."""

    sheets: tuple[Datasheet, ...]
    agreement: tuple[Measurement, ...]
    page: Path
    calls: int

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import judges_parts

        yield from judges_parts(self.sheets, self.agreement)
        yield Note(f"page: {self.page}")


def measure_judges(
    folder: RunFolder, judges: Sequence[JudgeSpec], models: Mapping[str, Model], *, tasks: Path | None = None,
    seed: int = 7, strict: bool = True, pointwise: bool = False, rubric: Rubric | None = None, study: bool = False,
    comparator: str | None = None, old: Sequence[Path] = (), pages: bool = True, progress: Progress = silent,
) -> Made:  # fmt: skip
    """Show each judge texts with known differences, and write its datasheet, with ``pages`` unless they follow."""
    wanted = tested_by(None) if rubric is None else rubric
    unknown = [(one.name, dimension_problem(one.model, wanted.names)) for one in judges]
    if problems := [Problem(name, what) for name, what in unknown if what is not None]:
        raise InputError(f"rubric {wanted.version}", problems)
    if not study:
        _require_own_folder(folder)
    _require_seed(seed)
    given = finance_tasks() if tasks is None else load_tasks(read_text(tasks, "task file"), str(tasks))
    pairs = build_stimuli(given, seed)
    check(pairs)
    manifest = manifest_of(pairs, seed)
    _require_judges(judges, models)
    earlier = _earlier(old, [judge.name for judge in judges])
    variants = (TIE_ALLOWED, STRICT) if strict else (TIE_ALLOWED,)
    canaries = Canaries(models, progress=progress)
    if not folder.has_ledger:  # else whoever has not answered yet is asked one call by the run
        canaries.ask(_first_calls(judges, pairs[:1]), further=lambda: _first_calls(judges, pairs[1:2]))
        canaries.require()
    with new_folder(folder.path), Ledger.open(folder.ledger):
        pass  # from here on the folder stays, whatever happens: it holds replies that were paid for
    canaries.keep(folder)
    calls: dict[str, list[PairCall]] = {}
    points: list[Judgment] = []
    sheets = []
    for at, judge in enumerate(judges):
        sheet = Datasheet(
            judge=judge.name, measurements=(), sketch=(), calls={"all": 0, "ok": 0, "invalid": 0}, tasks=0,
            source="run", model=judge.model, family=judge.family, manifest=manifest.sha256,
        )  # fmt: skip
        if judge.model not in PLANTED:
            calls[judge.name], prints = _ask(folder, judge, pairs, variants, models, progress)
            sheet = datasheet_of(
                calls[judge.name], rng=np.random.default_rng([seed, at]), model=judge.model, family=judge.family,
                fingerprint=prints, manifest=manifest.sha256, prompts=pair_prompt_hashes(variants),
                planted=planted_values(judge, variants) if judge.model in PLANTED_PAIRS else None,
            )  # fmt: skip
        if judge.model in PLANTED or (pointwise and judge.model not in PLANTED_PAIRS):
            # What single texts under a rubric show, beside the pairs if there are any.
            found, graded = measure_pointwise(folder, judge, models, given, wanted, seed, progress=progress)
            ok = sum(one.status == "ok" for one in graded)
            counts = {"all": len(graded), "ok": ok, "invalid": len(graded) - ok}
            sheet = replace(
                sheet, measurements=(*sheet.measurements, *found),
                calls={name: sheet.calls[name] + count for name, count in counts.items()},
                tasks=sheet.tasks or len({one.trajectory.partition(".point.")[0] for one in graded}),
            )  # fmt: skip
            points += graded
        if study and Store(folder).digest(MEASUREMENTS) is not None:
            beside = beside_people(Store(folder).read(MEASUREMENTS), judge.name)
            sheet = replace(sheet, measurements=(*sheet.measurements, *beside))
        if comparator is not None:
            said = f"That {comparator} is right: it stands beside the others as a ceiling, not as the truth."
            sheet = replace(sheet, non_claims=(*sheet.non_claims, said))
        sheets.append(sheet)
    basis: dict[str, str | None] = {"stimuli": manifest.sha256, "judges": sha256_text(canonical_json(list(calls)))}
    if calls:
        Store(folder).write(PAIRS, [one for each in calls.values() for one in each], basis)
    if points:
        Store(folder).write(POINTS, points, basis)
    write_atomic(folder.path / "stimuli.json", stimuli_json(pairs, manifest))
    rng = np.random.default_rng([seed, len(sheets)])
    agreement = [
        between_kappa(calls[a], calls[b], rng=rng, content=content)
        for a, b in combinations(sorted(calls), 2)
        for content in (True, False)
    ]
    return _written(folder, _against(sheets, earlier), agreement, pages)


def judges_of(models: Sequence[str], trials: int, args: Mapping[str, JSON] | None = None) -> list[JudgeSpec]:
    """Judges by the names of their models; each is called by what follows the first slash."""
    problems, found = [], []
    for model in models:
        _, slash, name = model.partition("/")
        own = {} if model.startswith("reference/") else dict(args or {})
        try:
            found.append(JudgeSpec(name=name, model=model, family=name, trials=trials, args=own))
        except ValidationError:
            problems.append(Problem(model, f"a model is named provider/name{'' if slash else ' (got no slash)'}"))
    if problems:
        raise InputError("--judge", problems)
    return found


def _require_judges(judges: Sequence[JudgeSpec], models: Mapping[str, Model]) -> None:
    problems = [] if judges else [Problem("", "no judge is named")]
    for judge in judges:
        if (problem := unknown_model(judge.model, models)) is not None:
            problems.append(Problem(judge.name, problem))
        found = (*pair_argument_problems(judge.model, judge.args), *provider_argument_problems(judge.model, judge.args))
        problems += [Problem(judge.name, what) for what in found]
    names = Counter(judge.name for judge in judges)
    problems += [Problem(name, "is named twice") for name in sorted(names) if names[name] > 1]
    if problems:
        raise InputError("--judge", problems)


def _first_calls(judges: Sequence[JudgeSpec], pairs: Sequence[Pair]) -> Iterator[CallSpec]:
    """The first call of each judge that is asked over a wire: of our own, some read single texts alone."""
    for judge in judges:
        if judge.model not in PLANTED:
            yield from (one.call for one in plan_pair_calls(pairs, judge, (TIE_ALLOWED,))[:1])


def _ask(
    folder: RunFolder, judge: JudgeSpec, pairs: Sequence[Pair], variants: Sequence[str], models: Mapping[str, Model],
    progress: Progress,
) -> tuple[list[PairCall], str | None]:  # fmt: skip
    """One judge's answers, and what it calls itself."""
    planned = plan_pair_calls(pairs, judge, variants)
    unusable = unusable_of(planned, lambda one, reply: pair_call(one, reply).reason)
    replies = ask(
        folder, [item.call for item in planned], models, judge=judge.name, what="asking", progress=progress,
        unusable=unusable,
    )  # fmt: skip
    prints = {reply.fingerprint for reply in replies.values() if reply.fingerprint}
    return [pair_call(item, replies[item.call.key]) for item in planned], ", ".join(sorted(prints)) or None


def measure_log(
    folder: RunFolder, log: Path, mapping: VerdictMap | None = None, *, seed: int = 7, old: Sequence[Path] = (),
    keep_going: bool = False,
) -> Made:  # fmt: skip
    """Datasheets of the judges in a log of pairwise verdicts that assaymark did not make."""
    _require_own_folder(folder)
    _require_seed(seed)
    if not log.exists():
        raise missing(log, "log of verdicts")
    found = read_verdicts(log.name, log, mapping, keep_going)
    earlier = _earlier(old, found.judges)
    rng = np.random.default_rng([seed, 0])
    claims = (TRUTH_NON_CLAIM, *LOG_NON_CLAIMS[1:]) if (found.pair_truth >= 0).any() else LOG_NON_CLAIMS
    sheets = []
    for judge in found.judges:
        # One judge's calls of a log as columns: natural pairs, of which at most a truth is known, and null pairs.
        place = found.judges.index(judge)
        rows, nulls = np.flatnonzero(found.judge == place), found.nulls[found.nulls[:, 0] == place]
        n, m = rows.size, len(nulls)
        tasks, task = np.unique(np.concatenate([found.question[rows], nulls[:, 1]]), return_inverse=True)
        truth, order = found.pair_truth[found.pair[rows]], found.order[rows]
        none, own = np.zeros(m, dtype=np.int64), np.arange(m) + len(found.pair_question)
        better = np.where((truth == 0) | (truth == 1), truth ^ order, truth)
        table = CallTable(
            judge, tasks=tuple(found.questions[one] for one in tasks.tolist()), task=task.astype(np.int64),
            pair=np.concatenate([found.pair[rows], own]), order=np.concatenate([order, none]),
            trial=np.concatenate([found.trial[rows], none]), verdict=np.concatenate([found.verdict[rows], nulls[:, 2]]),
            better=np.concatenate([better, none - 1]), delta=np.zeros(n + m),
            condition=np.repeat(["different_subset", "vacuum"], [n, m]), variant=np.repeat(["", "identical"], [n, m]),
            prompt=np.full(n + m, BASE), digest=found.digest[:16],
        )  # fmt: skip
        measurements = table_measurements(table, rng=rng)
        size, invalid = table.verdict.size, int(np.count_nonzero(table.verdict == 4))
        sheet = Datasheet(
            judge=judge, measurements=measurements, sketch=tuple(chip.text for chip in sketch(measurements)),
            calls={"all": size, "ok": size - invalid, "invalid": invalid}, tasks=len(table.tasks), source="log",
            arms=(BASE,), non_claims=claims, log=found.provenance,
        )  # fmt: skip
        sheets.append(sheet)
    agreement = []
    if len(found.judges) > 1:  # by content after averaging orders, then call by call, clustered by question
        bootstrap, inputs = TaskBootstrap(rng), found.digest[:16]
        columns = (found.judge, found.call, found.verdict, found.question)
        for both in zip(agreement_arrays(*columns, content=True), agreement_arrays(*columns), strict=True):
            for content, one in zip((True, False), both, strict=True):
                labels = {"a": found.judges[one.first], "b": found.judges[one.second]}
                agreement.append(kappa_measurement(one.tables, labels, bootstrap, inputs=inputs, content=content))
    with new_folder(folder.path):
        return _written(folder, _against(sheets, earlier), agreement)


def log_map(maps: Sequence[str], only: Sequence[str]) -> VerdictMap | None:
    """The column map of a log: from its file, and from ``role=column`` words, with the rows to read."""
    wanted = dict(pair.partition("=")[::2] for pair in only)
    if wrong := [pair for pair in only if "=" not in pair]:
        raise InputError("--only", [Problem(pair, "must be COLUMN=VALUE") for pair in wrong])
    fields: dict[str, Any] = {}
    for word in maps:
        if "=" not in word or Path(word).is_file():
            path = Path(word)
            fields |= parse_verdict_map(read_text(path, "column map"), source=word).model_dump(exclude_unset=True)
        elif word.startswith("labels."):
            label, _, verdict = word.removeprefix("labels.").rpartition("=")
            fields["labels"] = {**fields.get("labels", {}), label: verdict}
        else:
            role, _, column = word.partition("=")
            fields[role.strip()] = column.strip()
    if wanted:
        fields["filter"] = {**fields.get("filter", {}), **wanted}
    return verdict_map("--map", **fields) if fields else None


def read_datasheet(path: Path) -> Datasheet:
    """A datasheet from its JSON file."""
    return parse(Datasheet, read_text(path, "datasheet"), source=str(path))


def _earlier(old: Sequence[Path], judges: Sequence[str]) -> dict[str, Datasheet]:
    """The earlier datasheets by the judge that each is compared with; none is left out without a word."""
    sheets = [read_datasheet(path) for path in old]
    if len(sheets) == len(judges) == 1:
        return {judges[0]: replace(sheets[0], judge=judges[0])}
    found: dict[str, Datasheet] = {}
    problems = []
    for path, sheet in zip(old, sheets, strict=True):
        if sheet.judge not in judges:
            problems.append(Problem(str(path), f"is of {sheet.judge!r}; measured here: {', '.join(judges)}"))
        elif sheet.judge in found:
            problems.append(Problem(str(path), f"is a second datasheet of {sheet.judge!r}; needs one of each judge"))
        found[sheet.judge] = sheet
    if problems:
        raise InputError("--compare", problems)
    return found


def _against(sheets: Sequence[Datasheet], earlier: Mapping[str, Datasheet]) -> list[Datasheet]:
    """The sheets, each with the drift since the earlier one of its judge, where there is one."""
    drift = [compare(earlier[sheet.judge], sheet) if sheet.judge in earlier else () for sheet in sheets]
    return [replace(one, measurements=(*one.measurements, *found)) for one, found in zip(sheets, drift, strict=True)]


def _require_own_folder(folder: RunFolder) -> None:
    """Refuse the folder of a study: the pages of datasheets would take the place of its own."""
    for path in (folder.plan, folder.lock, folder.verdicts):
        if path.exists():
            problem = Problem(path.name, "is there, so this is the folder of a study; datasheets need one of their own")
            raise InputError(f"--out {folder.path}", [problem])


def _require_seed(seed: int) -> None:
    if seed < 0:
        raise InputError("--seed", [f"must be 0 or more (got {seed})"])


def datasheet_pages(
    sheets: Sequence[Datasheet], agreement: Sequence[Measurement] = (), frame: Frame | None = None,
    answers: Answers | None = None, read: ReadCalls | None = None,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """The page of each judge, and the page that holds them side by side, in the frame of their run."""
    frame = frame or judges_frame()
    book = Booklet.of(answers or Answers())
    yield from answer_pages(book, frame, read)
    for sheet in sheets:
        others = [one for one in sheets if one.judge != sheet.judge]
        yield from render_datasheet(sheet, others, frame, book.rests).items()
    yield from render_comparison(sheets, agreement, frame).items()


def stored_datasheets(folder: RunFolder) -> list[Datasheet]:
    """The datasheets that lie in a run folder, by judge."""
    if not folder.datasheets.is_dir():
        return []
    return sorted((read_datasheet(path) for path in folder.datasheets.glob("*.json")), key=lambda one: one.judge)


def stored_agreement(folder: RunFolder) -> list[Measurement]:
    """How far the judges of a folder of datasheets agree, pair by pair, as it was measured with them."""
    store = Store(folder)
    return store.read(MEASUREMENTS) if store.rows(MEASUREMENTS) else []


def datasheet_name(judge: str) -> str:
    """The file name of a judge's datasheet, without its ending: that of its page."""
    return Path(datasheet_path(judge)).stem


def _written(
    folder: RunFolder, sheets: Sequence[Datasheet], agreement: Sequence[Measurement], pages: bool = True
) -> Made:
    """Write every datasheet as JSON and as a page, and the page that holds them side by side."""
    for sheet in sheets:
        write_atomic(folder.datasheets / f"{datasheet_name(sheet.judge)}.json", canonical_json(sheet) + "\n")
    if not folder.lock.is_file():  # a run has measurements of its own there
        Store(folder).write(MEASUREMENTS, agreement, {})
    write_sums(folder)
    for name, text in _pages(folder, sheets, agreement) if pages else ():
        write_atomic(folder.report / name, text)
    return _made(folder, sheets, agreement)


def datasheet_report(folder: RunFolder, calls: Calls = "all", language: str = "") -> Made:
    """Write the pages of judges that were measured by themselves again, from what lies in their folder."""
    sheets, agreement = stored_datasheets(folder), stored_agreement(folder)
    replace_files(folder.report, in_language(_pages(folder, sheets, agreement, calls), language))
    return _made(folder, sheets, agreement)


def _pages(
    folder: RunFolder, sheets: Sequence[Datasheet], agreement: Sequence[Measurement], calls: Calls = "all"
) -> Iterator[tuple[str, str]]:
    read = None if calls == "none" else calls_of(folder)
    return datasheet_pages(sheets, agreement, answers=stored_answers(folder), read=read)


def _made(folder: RunFolder, sheets: Sequence[Datasheet], agreement: Sequence[Measurement]) -> Made:
    calls = sum(sheet.calls["all"] for sheet in sheets)
    return Made(tuple(sheets), tuple(agreement), folder.report / "datasheets.html", calls)
