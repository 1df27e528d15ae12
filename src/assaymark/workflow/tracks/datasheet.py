"""`assaymark datasheet`: measure a judge, by calls to it or from an existing log of verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import ValidationError

from assaymark.engine import CallSpec, Ledger, Model
from assaymark.engine.providers.registry import provider_argument_problems
from assaymark.errors import InputError, Problem
from assaymark.judging import PLANTED, PlannedGrade, Rubric, judgment, load_rubric, plan_calls, rubric_of
from assaymark.judging import pairs as texts
from assaymark.judging.pairs import STRICT, TIE_ALLOWED, PointStimulus, finance_tasks, pair_call
from assaymark.judging.reference.judges import dimension_problem
from assaymark.metrology import datasheet as sheets_of
from assaymark.metrology.datasheet import BASE, Datasheet
from assaymark.metrology.measure_people import compare_with_people
from assaymark.notebook import Part, Result
from assaymark.protocol import SCALE, JudgeSpec, Records, Scale, Study
from assaymark.records import (
    AGGREGATE,
    JSON,
    Judgment,
    Measurement,
    PairCall,
    canonical_json,
    parse,
    sha256_text,
    write_atomic,
)
from assaymark.report import Frame, judges_frame, render_comparison, render_datasheet
from assaymark.report.datasheet import datasheet_path
from assaymark.report.records.answers import AnswerIndex, answer_pages
from assaymark.report.records.calls import ReadCalls
from assaymark.report.records.judgments import Calls
from assaymark.report.translation import in_language
from assaymark.workflow import run_folder as runs
from assaymark.workflow.ask import Canaries, ask, calls_of, stored_answers, unusable_of
from assaymark.workflow.lock import unknown_model
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import MEASUREMENTS, PAIRS, POINTS, Store

if TYPE_CHECKING:
    from assaymark.importers.verdicts import VerdictMap


def tested_by(study: Study | None) -> Rubric:
    """Return the rubric for testing a panel: the study's if it defines its own text, else v1.0.

    Its dimensions have the study's weights, unless these leave out one of them.
    """
    if study is None:
        return load_rubric("v1.0")
    rubric = load_rubric("v1.0") if study.rubric.text is None else rubric_of(study.rubric)
    weights = study.rubric.weights or {}
    if not set(rubric.names) <= weights.keys() or not sum(weights[name] for name in rubric.names):
        return rubric
    weighted = tuple(each.model_copy(update={"weight": weights[each.name]}) for each in rubric.dimensions)
    return rubric.model_copy(update={"dimensions": weighted})


def point_calls(stimuli: Sequence[PointStimulus], judge: JudgeSpec, rubric: Rubric) -> list[PlannedGrade]:
    """Return all calls of a judge on single texts, with the ordinary judge prompt."""
    decisions, contexts = texts.point_records(stimuli)
    kinds = Records(derivations=("honest", "vacuum", "ladder", "length_matched"), exclude_flags=())
    return plan_calls(decisions, contexts, Study(name="datasheet", seed=0, judges=(judge,), records=kinds), rubric)


def point_measurements(
    stimuli: Sequence[PointStimulus], graded: Sequence[Judgment], dimensions: Sequence[str], judge: str, seed: int,
    scale: Scale = SCALE, weights: Mapping[str, float] | None = None,
) -> tuple[Measurement, ...]:  # fmt: skip
    """Compute measurements from grades of single texts: for the weighted mean of all dimensions, then for each."""
    scores: defaultdict[str, list[Mapping[str, float]]] = defaultdict(list)
    for grade in graded:
        if grade.status == "ok":
            of = dict.fromkeys(grade.scores, 1.0) if weights is None else weights
            mean = sum(of[name] * score for name, score in grade.scores.items()) / sum(of.values())
            scores[grade.trajectory].append({AGGREGATE: mean, **grade.scores})
    scored = [(stimulus, each) for stimulus in stimuli for each in scores.get(stimulus.id, ())]
    vacuum, ladder, filler = (
        [(text, each) for text, each in scored if text.variant == kind] for kind in ("vacuum", "ladder", "filler")
    )
    tokens = {stimulus.id: stimulus.tokens for stimulus in stimuli}
    rng = np.random.default_rng([seed, 9])
    measurements: list[Measurement] = []
    for name in (AGGREGATE, *dimensions):
        measurements += sheets_of.pointwise_measurements(
            [each[name] for _, each in ladder], [stimulus.task for stimulus, _ in ladder],
            [float(stimulus.level) for stimulus, _ in ladder], judge, dimension=name,
            vacuum_scores=[each[name] for _, each in vacuum], vacuum_tasks=[stimulus.task for stimulus, _ in vacuum],
            filler_scores=[each[name] for _, each in filler], filler_tasks=[stimulus.task for stimulus, _ in filler],
            filler_levels=[float(stimulus.level) for stimulus, _ in filler],
            filler_tokens=[text.tokens - tokens[text.parent or text.id] for text, _ in filler], rng=rng, scale=scale,
        )  # fmt: skip
    return tuple(measurements)


LOG_NON_CLAIMS: Final = (
    "That a preference in this log is an error: nothing here says which text is better.",
    "That another set of pairs, another prompt or another version of the judge would measure the same.",
    "That judges who agree are right.",
    "That a stable choice is a good one: it follows the text, whatever in it.",
)
"""Claims that a datasheet made from an existing log does not support."""

TRUTH_NON_CLAIM: Final = "That the column read as the truth is right: accuracy is agreement with it."
"""The replacement of the first of them if a log has a column with the truth."""


@dataclass(frozen=True, slots=True, repr=False)
class MadeSheets(Result):
    """The datasheets of a folder, the agreement between their judges, and the path of the first page."""

    sheets: tuple[Datasheet, ...]
    agreement: tuple[Measurement, ...]
    page: Path

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import judges_parts

        yield from judges_parts(self.sheets, self.agreement)
        yield f"page: {self.page}"


def measure_judges(
    folder: RunFolder, judges: Sequence[JudgeSpec], models: Mapping[str, Model], *, tasks: Path | None = None,
    seed: int = 7, strict: bool = True, pointwise: bool = False, rubric: Rubric | None = None, study: bool = False,
    comparator: str | None = None, old: Sequence[Path] = (), pages: bool = True,
) -> MadeSheets:  # fmt: skip
    """Measure each judge on texts of known difference, and write its datasheet; ``pages`` are left out on request."""
    criteria = tested_by(None) if rubric is None else rubric
    require_judges(judges, models, criteria)
    _require_own_folder(folder, seed, study)
    loaded = finance_tasks() if tasks is None else texts.load_tasks(runs.read_text(tasks, "task file"), str(tasks))
    pairs = texts.build_stimuli(loaded, seed)
    texts.check(pairs)
    manifest = texts.manifest_of(pairs, seed)
    earlier = _earlier_sheets(old, [judge.name for judge in judges])
    variants = (TIE_ALLOWED, STRICT) if strict else (TIE_ALLOWED,)

    def first(
        some: Sequence[texts.Pair],
    ) -> list[CallSpec]:  # the first call to each judge of pairs; some built-in judges only grade single texts
        first_calls = [
            texts.plan_pair_calls(some, judge, (TIE_ALLOWED,))[:1] for judge in judges if judge.model not in PLANTED
        ]
        return [planned.call for calls in first_calls for planned in calls]

    canaries = Canaries(models)
    if not folder.has_ledger:  # otherwise the run tries each new judge with one call
        canaries.ask(first(pairs[:1]), further=lambda: first(pairs[1:2]))
        canaries.require()
    with runs.new_folder(folder.path), Ledger.open(folder.ledger):
        pass  # from here on the folder stays: it holds replies that were paid for
    canaries.keep(folder)
    calls, points, sheets = dict[str, list[PairCall]](), list[Judgment](), list[Datasheet]()
    for at, judge in enumerate(judges):
        about: dict[str, Any] = {"model": judge.model, "family": judge.family, "manifest": manifest.sha256}
        sheet = Datasheet.of(judge.name, (), 0, 0, 0, source="run", **about)
        if judge.model not in PLANTED:  # the replies on pairs, and the model's fingerprints
            planned = texts.plan_pair_calls(pairs, judge, variants)
            specs = [item.call for item in planned]
            replies = ask(folder, specs, models, judge.name, "asking", unusable=unusable_of(planned))
            prints = {reply.fingerprint for reply in replies.values() if reply.fingerprint}
            calls[judge.name] = [pair_call(item, replies[item.call.key]) for item in planned]
            sheet = sheets_of.datasheet_of(
                calls[judge.name], rng=np.random.default_rng([seed, at]), **about,
                fingerprint=", ".join(sorted(prints)) or None, prompts=texts.pair_prompt_hashes(variants),
                planted=texts.planted_values(judge, variants) if judge.model in texts.PLANTED_PAIRS else None,
            )  # fmt: skip
        if judge.model in PLANTED or (pointwise and judge.model not in texts.PLANTED_PAIRS):
            # grades of single texts under a rubric, in addition to any pairs
            graded, more = _measure_pointwise(folder, judge, models, texts.point_stimuli(loaded, seed), criteria, seed)
            ok = [grade.status == "ok" for grade in graded]
            counts = {"all": len(ok), "ok": sum(ok), "invalid": len(ok) - sum(ok)}
            sheet = replace(
                sheet, measurements=(*sheet.measurements, *more),
                calls={name: sheet.calls[name] + count for name, count in counts.items()},
                tasks=sheet.tasks or len({grade.trajectory.partition(".point.")[0] for grade in graded}),
            )  # fmt: skip
            points += graded
        if study:
            beside = compare_with_people(Store(folder).stored(MEASUREMENTS), judge.name)
            sheet = replace(sheet, measurements=(*sheet.measurements, *beside))
        if comparator is not None:
            ceiling = f"That {comparator} is right: it is an upper estimate for the others, not the truth."
            sheet = replace(sheet, non_claims=(*sheet.non_claims, ceiling))
        sheets.append(sheet)
    basis: dict[str, str | None] = {"stimuli": manifest.sha256, "judges": sha256_text(canonical_json(list(calls)))}
    if calls:
        Store(folder).write(PAIRS, [call for each in calls.values() for call in each], basis)
    if points:
        Store(folder).write(POINTS, points, basis)
    write_atomic(folder.path / "stimuli.json", texts.stimuli_json(pairs, manifest))
    rng = np.random.default_rng([seed, len(sheets)])
    agreement = [
        sheets_of.between_kappa(calls[a], calls[b], rng, content)
        for a, b in combinations(sorted(calls), 2)
        for content in (True, False)
    ]
    return _write_sheets(folder, sheets, earlier, agreement, pages)


def require_judges(judges: Sequence[JudgeSpec], models: Mapping[str, Model], rubric: Rubric) -> None:
    """Raise `InputError` for every judge that cannot be asked about pairs, or by the rubric."""
    unknown = [(judge.name, dimension_problem(judge.model, rubric.names)) for judge in judges]
    if problems := [Problem(name, problem) for name, problem in unknown if problem is not None]:
        raise InputError(f"rubric {rubric.version}", problems)
    problems, built_in = [] if judges else [Problem("", "no judge is named")], sorted({*PLANTED, *texts.PLANTED_PAIRS})
    for judge in judges:
        unfit = f"{judge.model} cannot judge texts; built-in judges that can: {', '.join(built_in)}"
        other = unfit if judge.model.startswith("reference/") and judge.model not in built_in else None
        wrong = (unknown_model(judge.model, models) or other, *texts.pair_argument_problems(judge.model, judge.args))
        reasons = (*wrong, *provider_argument_problems(judge.model, judge.args))
        problems += [Problem(judge.name, reason) for reason in reasons if reason is not None]
    names = Counter(judge.name for judge in judges)
    problems += [Problem(name, "is named twice") for name in sorted(names) if names[name] > 1]
    if problems:
        raise InputError("--judge", problems)


def _measure_pointwise(
    folder: RunFolder, judge: JudgeSpec, models: Mapping[str, Model], stimuli: Sequence[PointStimulus],
    rubric: Rubric, seed: int,
) -> tuple[list[Judgment], tuple[Measurement, ...]]:  # fmt: skip
    """Grade single texts: empty ones, a ladder of met requirements, and filler; returns judgments and measurements."""
    planned = point_calls(stimuli, judge, rubric)
    request = [item.call for item in planned], models, judge.name, "asking for grades by"
    replies = ask(folder, *request, unusable=unusable_of(planned))
    graded = [judgment(item, replies[item.call.key]) for item in planned]
    return graded, point_measurements(stimuli, graded, rubric.names, judge.name, seed, rubric.scale, rubric.weights)


def judges_of(models: Sequence[str], trials: int, args: Mapping[str, JSON] | None = None) -> list[JudgeSpec]:
    """Return judges by the names of their models; each is named by the part after the first slash."""
    problems, judges = [], []
    for model in models:
        _, slash, name = model.partition("/")
        settings = {} if model.startswith("reference/") else dict(args or {})
        try:
            judges.append(JudgeSpec(name=name, model=model, family=name, trials=trials, args=settings))
        except ValidationError:
            problems.append(Problem(model, f"a model is named provider/name{'' if slash else ' (got no slash)'}"))
    if problems:
        raise InputError("--judge", problems)
    return judges


def measure_log(
    folder: RunFolder, log: Path, mapping: VerdictMap | None = None, *, seed: int = 7, old: Sequence[Path] = (),
    keep_going: bool = False,
) -> MadeSheets:  # fmt: skip
    """Write datasheets of the judges in an existing log of pairwise verdicts."""
    from assaymark.importers.verdicts import read_verdicts

    _require_own_folder(folder, seed)
    log = Path("/dev/stdin") if str(log) == "-" else log
    if not log.exists():
        raise runs.missing(log, "log of verdicts")
    found = read_verdicts(log.name, log, mapping, keep_going)
    earlier = _earlier_sheets(old, found.judges)
    rng = np.random.default_rng([seed, 0])
    claims = (TRUTH_NON_CLAIM, *LOG_NON_CLAIMS[1:]) if (found.pair_truth >= 0).any() else LOG_NON_CLAIMS
    sheets = []
    for place, judge in enumerate(found.judges):
        # One judge's calls as columns: natural pairs, with the truth if the log has it, and null pairs.
        rows, nulls = np.flatnonzero(found.judge == place), found.nulls[found.nulls[:, 0] == place]
        n, m = rows.size, len(nulls)
        if not n + m:  # none of this judge's rows could be read
            continue
        tasks, task = np.unique(np.concatenate([found.question[rows], nulls[:, 1]]), return_inverse=True)
        truth, order = found.pair_truth[found.pair[rows]], found.order[rows]
        of_null, pair, null_order, trial = nulls[:, 2:].T
        better = np.where((truth == 0) | (truth == 1), truth ^ order, truth)
        table = sheets_of.CallTable(
            judge, tasks=tuple(found.questions[at] for at in tasks.tolist()), task=task.astype(np.int64),
            pair=np.concatenate([found.pair[rows], pair + len(found.pair_question)]),
            order=np.concatenate([order, null_order]),
            trial=np.concatenate([found.trial[rows], trial]), verdict=np.concatenate([found.verdict[rows], of_null]),
            better=np.concatenate([better, np.full(m, -1)]), delta=np.zeros(n + m),
            condition=np.repeat(["different_subset", "vacuum"], [n, m]), variant=np.repeat(["", "identical"], [n, m]),
            prompt=np.full(n + m, BASE), digest=found.digest[:16],
        )  # fmt: skip
        invalid = int(np.count_nonzero(table.verdict == 4))
        sheets.append(Datasheet.of(judge, sheets_of.table_measurements(table, rng), table.verdict.size, invalid,
                                   len(table.tasks), source="log", non_claims=claims,
                                   log=found.provenance))  # fmt: skip
    agreement = []
    if len(found.judges) > 1:  # first by content with both orders averaged, then by call, clustered by question
        bootstrap, columns = sheets_of.TaskBootstrap(rng), (found.judge, found.call, found.verdict, found.question)
        arrays = sheets_of.agreement_arrays
        for both in zip(arrays(*columns, True), arrays(*columns), strict=True):
            for content, result in zip((True, False), both, strict=True):
                labels = {"a": found.judges[result.first], "b": found.judges[result.second]}
                if {*labels.values()} <= {sheet.judge for sheet in sheets}:
                    more = bootstrap, found.digest[:16], content
                    agreement.append(sheets_of.kappa_measurement(result.tables, labels, *more))
    with runs.new_folder(folder.path):
        return _write_sheets(folder, sheets, earlier, agreement)


def log_map(maps: Sequence[str], only: Sequence[str]) -> VerdictMap | None:
    """Return the column map of a log from map files and ``role=column`` options, with the filters for rows."""
    from assaymark.importers.verdicts import parse_verdict_map, verdict_map

    filters = dict(pair.partition("=")[::2] for pair in only)
    if wrong := [pair for pair in only if "=" not in pair]:
        raise InputError("--only", [Problem(pair, "must be COLUMN=VALUE") for pair in wrong])
    fields: dict[str, Any] = {}
    for word in maps:
        if "=" not in word or Path(word).is_file():
            path = Path(word)
            fields |= parse_verdict_map(runs.read_text(path, "column map"), source=word).model_dump(exclude_unset=True)
        elif word.startswith("labels."):
            label, _, verdict = word.removeprefix("labels.").rpartition("=")
            fields["labels"] = {**fields.get("labels", {}), label: verdict}
        else:
            role, _, column = word.partition("=")
            fields[role.strip()] = column.strip()
    if filters:
        fields["filter"] = {**fields.get("filter", {}), **filters}
    return verdict_map("--map", **fields) if fields else None


def read_datasheet(path: Path) -> Datasheet:
    """Read a datasheet from its JSON file."""
    return parse(Datasheet, runs.read_text(path, "datasheet"), source=str(path))


def _earlier_sheets(old: Sequence[Path], judges: Sequence[str]) -> dict[str, Datasheet]:
    """Return the earlier datasheets by judge; raises `InputError` if one matches no judge measured here."""
    sheets = [read_datasheet(path) for path in old]
    if len(sheets) == len(judges) == 1:
        return {judges[0]: replace(sheets[0], judge=judges[0])}
    by_judge: dict[str, Datasheet] = {}
    problems = []
    for path, sheet in zip(old, sheets, strict=True):
        if sheet.judge not in judges:
            problems.append(Problem(str(path), f"is of {sheet.judge!r}; measured here: {', '.join(judges)}"))
        elif sheet.judge in by_judge:
            problems.append(Problem(str(path), f"is a second datasheet of {sheet.judge!r}; needs one of each judge"))
        by_judge[sheet.judge] = sheet
    if problems:
        raise InputError("--compare", problems)
    return by_judge


def _require_own_folder(folder: RunFolder, seed: int, study: bool = False) -> None:
    """Raise `InputError` for the folder of a study unless ``study``: datasheet pages would overwrite its pages."""
    for path in () if study else (folder.plan, folder.lock, folder.verdicts):
        if path.exists():
            problem = Problem(path.name, "is there, so this is the folder of a study; datasheets need their own folder")
            raise InputError(f"--out {folder.path}", [problem])
    if seed < 0:
        raise InputError("--seed", [f"must be 0 or more (got {seed})"])


def datasheet_pages(
    sheets: Sequence[Datasheet], agreement: Sequence[Measurement] = (), frame: Frame | None = None,
    answers: AnswerIndex | None = None, read: ReadCalls | None = None,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Yield the pages of judges' answers, the page of each judge, and the page that compares them."""
    frame, index = frame or judges_frame(), answers or AnswerIndex.of({}, {})
    yield from answer_pages(index, frame, read)
    for sheet in sheets:
        others = [other for other in sheets if other.judge != sheet.judge]
        yield from render_datasheet(sheet, others, frame, index.lineage).items()
    yield from render_comparison(sheets, agreement, frame).items()


def stored_datasheets(folder: RunFolder) -> list[Datasheet]:
    """Read the datasheets of a run folder, sorted by judge."""
    if not folder.datasheets.is_dir():
        return []
    return sorted((read_datasheet(path) for path in folder.datasheets.glob("*.json")), key=lambda sheet: sheet.judge)


def datasheet_name(judge: str) -> str:
    """Return the file name of a judge's datasheet without suffix, as in the name of its page."""
    return Path(datasheet_path(judge)).stem


def _write_sheets(
    folder: RunFolder, sheets: Sequence[Datasheet], earlier: Mapping[str, Datasheet],
    agreement: Sequence[Measurement], pages: bool = True,
) -> MadeSheets:  # fmt: skip
    """Write datasheets, with drift since earlier ones, as JSON and as pages."""
    drift = [sheets_of.compare(earlier[sheet.judge], sheet) if sheet.judge in earlier else () for sheet in sheets]
    sheets = [replace(one, measurements=(*one.measurements, *more)) for one, more in zip(sheets, drift, strict=True)]
    for sheet in sheets:
        write_atomic(folder.datasheets / f"{datasheet_name(sheet.judge)}.json", canonical_json(sheet) + "\n")
    if not folder.lock.is_file():  # a study's folder has measurements of its own
        Store(folder).write(MEASUREMENTS, agreement, {})
    runs.write_sums(folder)
    if pages:
        files = datasheet_pages(sheets, agreement, answers=stored_answers(folder), read=calls_of(folder))
        for name, text in files:
            write_atomic(folder.report / name, text)
    return MadeSheets(tuple(sheets), tuple(agreement), folder.report / "datasheets.html")


def datasheet_report(folder: RunFolder, calls: Calls = "all", language: str = "") -> MadeSheets:
    """Write the pages of a folder of datasheets again from its stored results."""
    sheets, agreement = stored_datasheets(folder), Store(folder).stored(MEASUREMENTS)
    read = None if calls == "none" else calls_of(folder)
    pages = datasheet_pages(sheets, agreement, None, stored_answers(folder), read)
    runs.replace_files(folder.report, in_language(pages, language))
    return MadeSheets(tuple(sheets), tuple(agreement), folder.report / "datasheets.html")
