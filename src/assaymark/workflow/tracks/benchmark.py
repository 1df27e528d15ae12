"""`assaymark bench`: run models through questions and pipeline, then measure, decide claims and write pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, Final

from assaymark.benchmark.episode import BaselineResult, EpisodeState, run_baselines
from assaymark.benchmark.plan import BenchPlan, parse_plan, profile_named
from assaymark.benchmark.questions import published
from assaymark.benchmark.questions.payloads import Split, Template
from assaymark.benchmark.reference import PREFIX, reference_benchmark_models
from assaymark.claims import boards
from assaymark.claims.boards import MISSING, PIPELINE, Board, missing_replies
from assaymark.claims.certification import Panel, build_file, count_levels
from assaymark.claims.messages import built_in_text, english, listing
from assaymark.engine import CallSpec, Model
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import InputError, Problem
from assaymark.judging import find_rubric, plan_texts
from assaymark.market import open_history, synthetic_history
from assaymark.metrology.measure_orders import level_measurements
from assaymark.notebook import Part, Result
from assaymark.plan import toml_text
from assaymark.records import Measurement, Score, write_atomic
from assaymark.report import portbench as pages
from assaymark.report.portbench.index import ALL, QUESTIONS
from assaymark.report.records.judgments import Calls
from assaymark.report.text import TAGS, tally_words
from assaymark.report.translation import in_language
from assaymark.workflow.ask import Canaries, Forecast, calls_of, check_call, prices_of, print_raised
from assaymark.workflow.lock import bench_text, unknown_model
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import RunFolder, replace_files, write_json, write_sums
from assaymark.workflow.tables import MEASUREMENTS, SCORES, VERDICTS, Store
from assaymark.workflow.tracks import benchmark_measure as measure
from assaymark.workflow.tracks import benchmark_plan as plans
from assaymark.workflow.tracks.benchmark_plan import Answers, Episode, LockedBench


def write_set(folder: Path, market: str | None, seed: int) -> tuple[int, str]:
    """Write a question set with its dataset card and manifest; returns the number of questions and the file's hash."""
    note("making questions", 0, 1)
    history = synthetic_history(seed) if market is None else open_history(Path(market))
    questions = published.generate_questions(history, seed)
    folder.mkdir(parents=True, exist_ok=True)
    digest = published.write_questions(folder / "questions.jsonl", questions.questions)
    write_atomic(folder / "card.md", published.dataset_card(questions))
    write_json(folder / "manifest.json", published.manifest(questions))
    note("making questions", 1, 1)
    return len(questions.questions), digest


ALIASES: Final[Mapping[str, str]] = {"solver": "literal", "guesser": "prior", "equal-weight": "stubborn"}
"""Other names of built-in models."""

TAKES_NONE: Final = ("openai/", "anthropic/")
"""Providers whose newest models accept no temperature: none is sent to them by default."""

_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_TABLES: Final = {
    "": {"convention": "convention"},
    "market": {"market": "source", "seed": "seed", "instruments": "instruments"},
    "pipeline": {"profile": "profiles", "window": "windows", "pace": "frequency"},
    "questions": {"per_template": "per_template", "split": "split", "questions": "file"},
}
"""The options of the command line that set fields of a plan: by table, option name to field name."""


def plan_text(path: Path | None, options: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text and the source of a plan: a file, or a plan built from the options of the command line."""
    if path is not None:
        return bench_text(path), str(path)
    models = [resolve(name) for name in options.get("model") or ()] or list(reference_benchmark_models())
    judges = list(options.get("judge") or ())
    if wrong := [name for name in (*models, *judges) if not re.fullmatch(r"[a-z0-9_.-]+/.+", name)]:
        raise InputError("--model", [Problem(name, "a model is named provider/name") for name in wrong])
    plan: dict[str, Any] = {"version": "2"}
    for table, names in _TABLES.items():
        values = {field: options[name] for name, field in names.items() if options.get(name) not in (None, [], ())}
        fields = {field: str(value) if isinstance(value, Path) else value for field, value in values.items()}
        plan |= {table: fields} if table else fields
    of_model = {"max_tokens": "max_tokens", "base_url": "base_url", "api_key_env": "key_env"}
    args = {field: options[name] for field, name in of_model.items() if options.get(name) is not None}
    for kind, chosen in (("models", models), ("judges", judges)):
        entries, counts = list[dict[str, Any]](), Counter[str]()
        for model in chosen:
            called = model_name(model)
            counts[called] += 1
            name = called if counts[called] == 1 else f"{called}-{counts[called]}"
            # its family: the provider or, on a server of the user's own, the name of the model
            provider, _, rest = model.partition("/")
            hosted = provider in ("openai-chat", "http", "python", "inspect", "reference")
            entry = {"name": name, "model": model, "family": model_name(rest) if hosted else provider}
            if kind == "models" and provider == "reference":
                entry["family"] = name.lower()
            elif kind == "models" and not is_outside(model):
                # 0 as in the protocol, unless the provider's newest models accept none
                usual = None if model.startswith(TAKES_NONE) else 0.0
                temperature = usual if options.get("temperature") is None else options["temperature"]
                entry |= {} if temperature is None or temperature < 0 else {"temperature": temperature}
                entry |= {"args": args} if args else {}
            entries.append(entry)
        plan |= {kind: entries} if entries else {}
    return toml_text(plan), "the command line"


def default_folder(options: Mapping[str, Any]) -> Path:
    """Return the default run folder: named after a single model, so that its questions and pipeline share it."""
    models = [*(options.get("model") or ())]
    return Path(f"assaymark-bench-{model_name(resolve(models[0])).lower()}" if len(models) == 1 else "assaymark-bench")


def resolve(model: str) -> str:
    """Return the full name of a model: ``reference/momentum`` is the benchmark's model, not the agent of that name."""
    provider, _, word = model.partition("/")
    reference = PREFIX + ALIASES.get(word, word)
    return reference if provider == "reference" and reference in reference_benchmark_models() else model


def model_name(model: str) -> str:
    """Return the display name of a model: the last part of its name; built-in ones are capitalised."""
    if model.startswith(PREFIX):
        return model.removeprefix(PREFIX).capitalize()
    return _NAME.sub("-", model.rpartition("/")[2]).strip("-") or "model"


@dataclass(frozen=True, slots=True, repr=False)
class Benched(Result):
    """A written benchmark: its first page, lines for the terminal, and the run to display in a notebook."""

    page: Path
    lines: tuple[str, ...]
    run: pages.BenchRun

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import bench_parts

        yield from bench_parts(self.run)
        yield f"page: {self.page}"


def bench_pipeline(folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime) -> Benched:
    """Lock a plan, play every episode to its end, and write tables and pages. Called again, it resumes."""

    def opening(bench: LockedBench) -> Iterator[CallSpec]:  # the first call to each model, window by window
        plan, profile = bench.plan, profile_named(bench.plan.pipeline.profiles[0])
        for window, agent in product(bench.windows, plan.models):
            state = EpisodeState(agent, profile, window, plan.pipeline, plan.convention)
            if (call := state.next_call()) is not None:
                yield call

    locked = _lock_plan(folder, text, source, models, opening, now)
    episodes = plans.episodes_of(folder, locked, models)
    print_raised(models)
    if locked.plan.judges:
        measure.grade_rationales(folder, locked, episodes or (), models, now)
    return _publish(folder, locked, episodes, plans.answers_of(folder, locked))


def bench_qa(folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime) -> Benched:
    """Lock a plan, have every question answered, and write tables and pages. Called again, it resumes."""
    first = lambda bench: [call for *_, call in plans.plan_questions(bench)]  # noqa: E731
    locked = _lock_plan(folder, text, source, models, first, now)
    answers = plans.answers_of(folder, locked, models)
    print_raised(models)
    return _publish(folder, locked, plans.episodes_of(folder, locked), answers)


def bench_report(folder: RunFolder, calls: Calls = "all", language: str = "") -> Benched:
    """Write the pages of a benchmark again from the replies in its ledger; ``calls`` as for the report of a study."""
    locked = plans.open_bench(folder)
    results = plans.episodes_of(folder, locked), plans.answers_of(folder, locked)
    return _publish(folder, locked, *results, calls, language)


def decide_bench(folder: RunFolder) -> pages.BenchRun:
    """Decide a benchmark from the replies in its ledger, write its tables, and return the contents of its pages."""
    locked = plans.open_bench(folder)
    results = plans.episodes_of(folder, locked), plans.answers_of(folder, locked)
    return _decide_run(folder, locked, *results)


def _lock_plan(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model],
    calls: Callable[[LockedBench], Iterable[CallSpec]], now: datetime,
) -> LockedBench:  # fmt: skip
    """Lock a plan after one trial call to each of its models, the first of ``calls``, and one to each judge."""

    def ask(bench: LockedBench) -> Canaries:
        plan, canaries = bench.plan, Canaries(models, bench.plan.engine)
        require_models(plan, source, models)
        asked = *(agent.model for agent in plan.models), *(judge.model for judge in plan.judges)
        if not all(model.startswith("reference/") for model in asked):
            rubric = find_rubric(plan.rubric)
            schema = plan_texts(rubric)[f"schema {rubric.version}"]
            canaries.ask([*calls(bench), *(check_call(judge, schema) for judge in plan.judges)])
            canaries.require()
        return canaries

    return plans.lock_bench(folder, text, source, now, first=ask)


def require_models(plan: BenchPlan, source: str, models: Mapping[str, Model]) -> None:
    """Raise `InputError` for every model or judge of a plan that no provider has, or that answers no benchmark."""
    built_in, asked, wrong = reference_benchmark_models(), {one.model for one in plan.models}, dict[str, None]()
    for model in (*(agent.model for agent in plan.models), *(judge.model for judge in plan.judges)):
        problem = unknown_model(model, models)
        if model.startswith("reference/") and model not in built_in and model in asked:
            # built in, but an agent or judge of studies, which cannot answer a benchmark
            words = (*ALIASES, *(name.removeprefix(PREFIX) for name in built_in))
            similar = get_close_matches(model.partition("/")[2], words, 1)
            hint = f"; did you mean {resolve(f'reference/{similar[0]}')}?" if similar else ""
            choices = f"built-in models that do: {', '.join(sorted(built_in))}{hint}"
            problem = f"{model} answers nothing of a benchmark; {choices}"
        if problem:
            wrong[problem] = None
    if wrong:
        raise InputError(source, wrong)


def expect_bench(folder: RunFolder, text: str, source: str, questions: bool, models: Mapping[str, Model]) -> Forecast:
    """Estimate the calls and the cost of a plan's questions, or of its pipeline. Nothing is sent or written."""
    require_models(parse_plan(text, source), source, models)
    return plans.forecast_bench(folder, text, source, questions, prices_of(models))


def _publish(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode] | None, answers: Answers | None,
    calls: Calls = "all", language: str = "",
) -> Benched:  # fmt: skip
    """Write tables, verdicts and pages; ``episodes`` or ``answers`` are None if they were not run yet."""
    run = _decide_run(folder, locked, episodes, answers)
    read = None if calls == "none" else calls_of(folder)
    replace_files(folder.report, in_language(pages.each_benchmark_page(run, read=read), language))
    overall = {board.board.family: board for board in reversed(run.leaderboards)}.values()
    shown = [board for board in run.leaderboards if len(board.models) == 1 or board in overall]
    lines = []
    # possible ranks and score intervals by tier: point estimates would rank models that cannot be ranked
    for board in shown:
        models = len(board.models)
        lines.append(f"{board.board.words[:1].upper()}{board.board.words[1:]}, {locked.plan.level:.0%} intervals:")
        for name in (name for tier in board.tiers for name in tier):
            item, (first, last) = board.levels[name], board.ranks[name]
            ends = "no interval" if item.low is None or item.high is None else f"{item.low:.2f} to {item.high:.2f}"
            rank = f"{first if first == last else f'{first}-{last}'} of {models}"
            lines.append(f"  {name:<20} {f'{item.value:.2f} ({ends})' if models == 1 else f'{ends}   rank {rank}'}")
        lines += [f"  {name:<20} no score" for name in board.unscored]
    lines += [*run.notes, f"claims: {tally_words(count_levels(run.verdicts))}"]
    claimed = [verdict for verdict in run.verdicts if verdict.publication_level != "no-claim"]
    sentences = [verdict for verdict in claimed if not verdict.claim.id.startswith(("above", "within"))]  # not pairs
    for verdict in sentences[:12]:
        built_in = built_in_text(english(), {}, run.built_in, verdict.claim.subjects, made_by="models")
        words = [f"{TAGS[verdict.publication_level]}: {verdict.claim.statement}", built_in, verdict.condition or ""]
        lines.append(" ".join(filter(None, words)))
    if len(sentences) > 12:
        lines.append(f"and {len(sentences) - 12} more on the page")
    if episodes is None:
        lines.append("the pipeline was not run yet: assaymark bench pipeline, with the same plan and --out")
    if answers is None:
        lines.append("the questions were not asked yet: assaymark bench qa, with the same plan and --out")
    return Benched(folder.report / "index.html", tuple(lines), run)


def _decide_run(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode] | None, answers: Answers | None
) -> pages.BenchRun:
    plan, chosen = locked.plan, locked.plan.pipeline
    baselines: tuple[BaselineResult, ...] = ()
    measurements: list[Measurement] = []
    scores: list[Score] = []
    ranked: list[Board] = []
    if episodes is not None:
        baselines = run_baselines(locked.windows, chosen.cash_baselines, chosen.cost_bps, plan.convention)
        measurements += measure.pipeline_measurements(locked, episodes, baselines)
        measurements += measure.ceiling_measurements(locked)
        scores += measure.pipeline_scores(locked, episodes)
        windows = len(locked.windows)
        scope = "in this window" if windows == 1 else f"in these {windows} windows"
        for name in measure.boards_of(locked):
            over = "over all profiles" if name == ALL else f"under the {name} profile"
            ranked.append(Board(name, f"CEPS {over} {scope}", PIPELINE))
    if answers is not None:
        measurements += measure.question_measurements(locked, answers)
        scores += measure.question_scores(locked, answers)
        ranked.append(Board(QUESTIONS, "the questions with full information", QUESTIONS))
    if episodes is not None and answers is not None:
        measurements += measure.rank_measurements(locked, episodes, answers)
    verdicts, leaderboards = boards.decide_benchmark(
        measurements, ranked, locked.plan_hash, plan.inference, agreed=plan.agreed, convention=plan.convention,
        preregistered=locked.preregistered, families=locked.families,
    )  # fmt: skip
    store, basis = Store(folder), {"plan": locked.plan_hash}
    store.write(SCORES, scores, basis)
    store.write(MEASUREMENTS, measurements, basis)
    store.write(VERDICTS, verdicts, basis)
    lacking, missing = [item for item in measurements if item.name == MISSING], dict[str, float]()
    for item in lacking:
        if item.value:
            missing[item.labels["model"]] = max(missing.get(item.labels["model"], 0.0), item.value)
    file = build_file(
        plan, locked.plan_hash, verdicts, measurements, [model.name for model in plan.models],
        rubric="none", made_by=plan.models,
        panel=Panel({}, any(agent.model.startswith("reference/") for agent in plan.models)),
        amendments=[change.stated for change in locked.amendments], preregistered=locked.preregistered, missing=missing,
        unranked={leaderboard.board.name: frozenset(leaderboard.unscored) for leaderboard in leaderboards},
    )  # fmt: skip
    write_json(folder.verdicts, file)
    write_sums(folder)
    # notes for readers on how models were called and scored; models left out lack replies of the pipeline
    pipeline = [item for item in lacking if item.labels["part"] == PIPELINE]
    excluded = {item.labels["model"] for item in pipeline if item.detail["left_out"]}
    notes = list(map(missing_replies, lacking))
    for part, replies in ((PIPELINE, measure.pipeline_replies(episodes or ())),
                          (QUESTIONS, measure.question_replies(answers or {}))):  # fmt: skip
        notes += measure.unusable_notes(part, replies, plan.missing.per_agent)
    if narrow := sorted(measure.without_choice(episodes or (), plan.convention).keys() - excluded):
        verb, no = ("names", "this model gets") if len(narrow) == 1 else ("name", "these models get")
        notes.append(
            f"No score: on most dates {listing(narrow)} {verb} at most one instrument to buy. By "
            f"{boards.FORMULAS['paper']} S3 to S5 then have one possible answer and measure nothing, so {no} no CEPS."
        )
    external = [agent for agent in plan.models if not (agent.model.startswith("reference/") or is_outside(agent.model))]
    if free := ", ".join(agent.name for agent in external if agent.temperature is None):
        notes.append(f"No temperature was sent to {free}: the provider's own holds, where the protocol says 0.")
    unscored = measure.unscored_models(locked, episodes, plan.convention) if episodes else {}
    other_items = measure.ceps_items([other for _, other in episodes or ()], unscored)
    others = level_measurements("bench.level", other_items, {"board": measure.boards_of(locked)[0]}, plan.level)
    splits: Mapping[tuple[Template, Split], int] = {}
    if answers:
        path = plan.questions.file
        pairs = () if path is None else ((item.template, item.split) for item in published.read_questions(Path(path)))
        splits = published.split_counts(published.COUNTS) if path is None else Counter(pairs)
    return pages.BenchRun(
        plan, locked.plan_hash, locked.locked_at, locked.market, locked.windows, leaderboards, verdicts, measurements,
        [result for result, _ in episodes or ()], baselines, answers or {}, notes,
        "../rationales/report/index.html" if (folder.rationales.report / "index.html").is_file() else None,
        locked.pool if answers else (), splits, {measurement.labels["model"]: measurement for measurement in others},
    )  # fmt: skip
