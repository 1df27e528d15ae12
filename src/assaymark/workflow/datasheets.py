"""`assaymark datasheet`: a judge as an instrument, from calls of our own or from somebody's log of verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from assaymark.engine import Ledger, Model, run_calls
from assaymark.errors import InputError, ModelError, Problem, UnknownNameError
from assaymark.importers.verdicts import VerdictLog, VerdictMap, parse_verdict_map, read_verdicts, verdict_map
from assaymark.judging.pairs import (
    PLANTED_PAIRS,
    STRICT,
    TIE_ALLOWED,
    Manifest,
    Pair,
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
    stimuli_json,
)
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
    sketch,
    table_measurements,
)
from assaymark.protocol import JudgeSpec
from assaymark.records import Measurement, PairCall, canonical_json, parse, sha256_text
from assaymark.report import render_comparison, render_datasheet
from assaymark.workflow.folder import RunFolder, new_folder, read_text, replace_files, write_atomic
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.tables import PAIRS, Store

CONCURRENCY: Final = 64

LOG_NON_CLAIMS: Final = (
    "That a preference in this log is an error: nothing here says which text is better.",
    "That another set of pairs, another prompt or another version of the judge would measure the same.",
    "That judges who agree are right.",
    "That a stable choice is a good one: it follows the text, whatever in it.",
)
"""What a datasheet made from somebody's log does not say."""


@dataclass(frozen=True, slots=True)
class Made:
    """Datasheets that were made, how judges agree with each other, and where the pages lie."""

    sheets: tuple[Datasheet, ...]
    agreement: tuple[Measurement, ...]
    page: Path
    calls: int


# --- from calls of our own ------------------------------------------------------------------------------------------


def measure_judges(
    folder: RunFolder,
    judges: Sequence[JudgeSpec],
    models: Mapping[str, Model],
    *,
    tasks: Path | None = None,
    seed: int = 7,
    strict: bool = True,
    old: Sequence[Path] = (),
    progress: Progress = silent,
) -> Made:
    """Put pairs of texts with known differences before each judge, and write its datasheet.

    Everything goes through the ledger of ``folder``: a call that has a reply there is never made again. The stimuli
    pass their gates before any call.

    Raises
    ------
    InputError
        Tasks that are wrong, stimuli that fail a gate, judges that nobody provides; every problem at once.
    ModelError
        Calls failed for good; what was answered is kept, and the same command goes on.
    """
    earlier = [read_datasheet(path) for path in old]
    pairs, manifest = stimuli(tasks, seed)
    _require_judges(judges, models)
    variants = (TIE_ALLOWED, STRICT) if strict else (TIE_ALLOWED,)
    with new_folder(folder.path):
        calls = {judge.name: _ask(folder, judge, pairs, variants, models, progress) for judge in judges}
        store = Store(folder)
        basis: dict[str, str | None] = {"stimuli": manifest.sha256, "judges": sha256_text(canonical_json(list(calls)))}
        store.write(PAIRS, [one for found in calls.values() for one in found[0]], basis)
        write_atomic(folder.path / "stimuli.json", stimuli_json(pairs, manifest))
        sheets = [
            datasheet_of(
                calls[judge.name][0],
                rng=np.random.default_rng([seed, at]),
                model=judge.model,
                family=judge.family,
                fingerprint=calls[judge.name][1],
                manifest=manifest.sha256,
                prompts=pair_prompt_hashes(variants),
                planted=planted_values(judge, variants) if judge.model in PLANTED_PAIRS else None,
            )
            for at, judge in enumerate(judges)
        ]
        made = [_against(sheet, earlier, alone=len(sheets) == 1) for sheet in sheets]
        rng = np.random.default_rng([seed, len(sheets)])
        agreement = [between_kappa(calls[a][0], calls[b][0], rng=rng) for a, b in combinations(sorted(calls), 2)]
        return _written(folder, made, agreement)


def judges_of(models: Sequence[str], trials: int) -> list[JudgeSpec]:
    """Judges by the names of their models; each is called by what follows the first slash.

    Raises
    ------
    InputError
        A name is not of the form ``provider/name``.
    """
    problems, found = [], []
    for model in models:
        _, slash, name = model.partition("/")
        try:
            found.append(JudgeSpec(name=name, model=model, family=name, trials=trials))
        except ValidationError:
            problems.append(Problem(model, f"a model is named provider/name{'' if slash else ' (got no slash)'}"))
    if problems:
        raise InputError("--judge", problems)
    return found


def stimuli(tasks: Path | None, seed: int) -> tuple[tuple[Pair, ...], Manifest]:
    """The pairs for a file of tasks (default: the finance tasks), through their gates."""
    given = finance_tasks() if tasks is None else load_tasks(read_text(tasks, "task file"), str(tasks))
    pairs = build_stimuli(given, seed)
    check(pairs)
    return pairs, manifest_of(pairs, seed)


def _require_judges(judges: Sequence[JudgeSpec], models: Mapping[str, Model]) -> None:
    problems = []
    names = [judge.name for judge in judges]
    for judge in judges:
        if judge.model not in models:
            problems.append(Problem(judge.name, str(UnknownNameError("model", judge.model, tuple(models)))))
        problems += [Problem(judge.name, what) for what in pair_argument_problems(judge.model, judge.args)]
    problems += [Problem(name, "is named twice") for name in sorted({name for name in names if names.count(name) > 1})]
    if not judges:
        problems.append(Problem("", "no judge is named"))
    if problems:
        raise InputError("--judge", problems)


def _ask(
    folder: RunFolder,
    judge: JudgeSpec,
    pairs: Sequence[Pair],
    variants: Sequence[str],
    models: Mapping[str, Model],
    progress: Progress,
) -> tuple[list[PairCall], str | None]:
    """One judge's answers, and what it calls itself."""
    planned = plan_pair_calls(pairs, judge, variants)
    keys = [item.call.key for item in planned]
    with Ledger.open(folder.ledger) as ledger:
        ledger.plan(item.call for item in planned)
        summary = run_calls(
            ledger,
            [item.call for item in planned],
            models,
            concurrency=CONCURRENCY,
            progress=lambda done, total: progress(f"asking {judge.name}", done, total),
        )
        if summary.failed or summary.interrupted:
            raise ModelError(
                f"{len(summary.failed)} of {summary.planned} calls of {judge.name} failed or were stopped; every reply "
                "so far is kept, and the same command goes on",
                retryable=True,
            )
        replies = dict(ledger.replies(keys))
    prints = {reply.fingerprint for reply in replies.values() if reply.fingerprint}
    calls = [pair_call(item, replies[key]) for item, key in zip(planned, keys, strict=True)]
    return calls, ", ".join(sorted(prints)) or None


# --- from somebody's log --------------------------------------------------------------------------------------------


def measure_log(
    folder: RunFolder, log: Path, mapping: VerdictMap | None = None, *, seed: int = 7, old: Sequence[Path] = ()
) -> Made:
    """Datasheets of the judges in a log of pairwise verdicts that assaymark did not make.

    A log says nothing about which text is better, so there is no dark current, no sensitivity and no threshold in it:
    what there is, is the decomposition over all its pairs, agreement between judges, and stability over repetitions.

    Raises
    ------
    InputError
        The log is wrong: every problem with its row.
    """
    earlier = [read_datasheet(path) for path in old]
    found = read_verdicts(log.name, log, mapping)
    rng = np.random.default_rng([seed, 0])
    sheets = []
    for judge in found.judges:
        table = _table(found, judge)
        measurements = table_measurements(table, rng=rng)
        invalid = int(np.count_nonzero(table.verdict == 4))
        sheets.append(
            Datasheet(
                judge=judge,
                measurements=measurements,
                sketch=tuple(chip.text for chip in sketch(measurements)),
                calls={"all": table.verdict.size, "ok": table.verdict.size - invalid, "invalid": invalid},
                tasks=len(table.tasks),
                source="log",
                arms=(BASE,),
                non_claims=LOG_NON_CLAIMS,
            )
        )
    agreement = _log_agreement(found, rng)
    with new_folder(folder.path):
        alone = len(sheets) == 1
        return _written(folder, [_against(sheet, earlier, alone=alone) for sheet in sheets], agreement)


def _table(log: VerdictLog, judge: str) -> CallTable:
    """One judge's calls of a log as columns; its pairs are natural ones, of which nothing is known."""
    rows = np.flatnonzero(log.judge == log.judges.index(judge))
    tasks, task = np.unique(log.question[rows], return_inverse=True)
    n = rows.size
    return CallTable(
        judge=judge,
        tasks=tuple(log.questions[one] for one in tasks.tolist()),
        task=task.astype(np.int64),
        pair=log.pair[rows],
        order=log.order[rows],
        trial=log.trial[rows],
        verdict=log.verdict[rows],
        better=np.full(n, -1, dtype=np.int64),
        delta=np.zeros(n),
        condition=np.full(n, "different_subset"),
        variant=np.full(n, ""),
        prompt=np.full(n, BASE),
        digest=log.digest[:16],
    )


def _log_agreement(log: VerdictLog, rng: np.random.Generator) -> list[Measurement]:
    """Kappa of every two judges on the calls that both answered, clustered by question."""
    if len(log.judges) < 2:
        return []
    bootstrap = TaskBootstrap(rng)
    return [
        kappa_measurement(
            one.tables,
            {"a": log.judges[one.first], "b": log.judges[one.second]},
            bootstrap,
            inputs=log.digest[:16],
        )
        for one in agreement_arrays(log.judge, log.call, log.verdict, log.question)
    ]


def log_map(path: Path | None, only: Sequence[str]) -> VerdictMap | None:
    """The column map of a log: from its file, with the rows to read.

    Raises
    ------
    InputError
        The file is no such map, or a filter is not of the form ``COLUMN=VALUE``.
    """
    wanted = dict(pair.partition("=")[::2] for pair in only)
    wrong = [pair for pair in only if "=" not in pair]
    if wrong:
        raise InputError("--only", [Problem(pair, "must be COLUMN=VALUE") for pair in wrong])
    if path is None:
        return verdict_map(filter=wanted) if wanted else None
    found = parse_verdict_map(read_text(path, "column map"), source=str(path))
    return found.model_copy(update={"filter": {**found.filter, **wanted}}) if wanted else found


# --- both -----------------------------------------------------------------------------------------------------------


def read_datasheet(path: Path) -> Datasheet:
    """A datasheet from its JSON file.

    Raises
    ------
    InputError
        It is missing, or no datasheet; every problem at once.
    """
    return parse(Datasheet, read_text(path, "datasheet"), source=str(path))


def _against(sheet: Datasheet, earlier: Sequence[Datasheet], *, alone: bool) -> Datasheet:
    """The sheet with the drift since an earlier one of its judge; of a single judge, under whatever name it had."""
    old = next((one for one in earlier if one.judge == sheet.judge), None)
    if old is None and alone and len(earlier) == 1:
        old = replace(earlier[0], judge=sheet.judge)
    if old is None:
        return sheet
    return replace(sheet, measurements=(*sheet.measurements, *compare(old, sheet)))


def datasheet_name(judge: str) -> str:
    """A file name for a judge's datasheet: readable, and unique by its digest where characters had to go.

    >>> datasheet_name("slot-biased"), datasheet_name("a/b") != datasheet_name("a-b")
    ('slot-biased', True)
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in judge).strip(".-")[:80]
    return plain if plain == judge else f"{plain}-{sha256_text(judge)[:8]}"


def _written(folder: RunFolder, sheets: Sequence[Datasheet], agreement: Sequence[Measurement]) -> Made:
    """Write every datasheet as JSON and as a page, and the page that holds them side by side."""
    for sheet in sheets:
        write_atomic(folder.datasheets / f"{datasheet_name(sheet.judge)}.json", canonical_json(sheet) + "\n")
    pages: dict[str, Any] = {}
    for sheet in sheets:
        pages.update(render_datasheet(sheet, peers=[one for one in sheets if one.judge != sheet.judge]))
    pages.update(render_comparison(sheets, agreement=agreement))
    replace_files(folder.report, pages)
    calls = sum(sheet.calls["all"] for sheet in sheets)
    return Made(tuple(sheets), tuple(agreement), folder.report / "datasheets.html", calls)
