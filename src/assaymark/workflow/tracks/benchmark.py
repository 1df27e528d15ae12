"""`assaymark bench`: models through the questions and the pipeline, then measurements, verdicts and pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Final

from assaymark.benchmark.episode import EpisodeState, run_baselines
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.questions.published import dataset_card, generate_questions, manifest, write_questions
from assaymark.benchmark.reference import PREFIX, reference_benchmark_models
from assaymark.benchmark.scores import STAGES
from assaymark.claims.boards import (
    FORMULAS,
    MISSING,
    PIPELINE,
    BenchRules,
    BenchVerdicts,
    Board,
    Leaderboard,
    decide_benchmark,
    missing_replies,
)
from assaymark.claims.messages import english, listing, stand_ins
from assaymark.encoding import write_atomic
from assaymark.engine import CallSpec, Model
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import InputError, Problem
from assaymark.judging import find_rubric, plan_texts
from assaymark.market import open_history, synthetic_history
from assaymark.notebook import Note, Part, Result
from assaymark.plan import toml_value
from assaymark.records import Measurement, Score
from assaymark.report.portbench import BenchRun, each_benchmark_page
from assaymark.report.portbench.book import ALL, QUESTIONS
from assaymark.report.records.judgments import Calls
from assaymark.report.translation import in_language
from assaymark.workflow.ask import Canaries, calls_of, check_call, say_raised
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder, replace_files, write_json, write_sums
from assaymark.workflow.tables import MEASUREMENTS, SCORES, VERDICTS, Store
from assaymark.workflow.track import bench_text, unknown_model
from assaymark.workflow.tracks.benchmark_measure import (
    NO_CHOICE,
    boards_of,
    ceiling_measurements,
    grade_rationales,
    pipeline_measurements,
    question_measurements,
    question_scores,
    rank_measurements,
    without_choice,
)
from assaymark.workflow.tracks.benchmark_plan import (
    Answers,
    Episode,
    LockedBench,
    ask_questions,
    lock_bench,
    open_bench,
    planned_questions,
    rules_of,
    run_episodes,
    stored_answers,
    stored_episodes,
    true_episodes,
)
from assaymark.workflow.tracks.benchmark_view import bench_run
from assaymark.workflow.verdict_file import Panel, decided_file, tally_of


def write_set(folder: Path, market: str | None, seed: int, progress: Progress = silent) -> tuple[int, str]:
    """Write a set, its card and its manifest: how many questions, and the hash of the file that they are in."""
    progress("making questions", 0, 1)
    history = synthetic_history(seed) if market is None else open_history(Path(market))
    made = generate_questions(history, seed)
    folder.mkdir(parents=True, exist_ok=True)
    digest = write_questions(folder / "questions.jsonl", made.questions)
    write_atomic(folder / "card.md", dataset_card(made))
    write_json(folder / "manifest.json", manifest(made))
    progress("making questions", 1, 1)
    return len(made.questions), digest


ALIASES: Final[Mapping[str, str]] = {"solver": "literal", "guesser": "prior", "equal-weight": "stubborn"}
"""Other words for reference models: what they are known as elsewhere."""

TAKES_NONE: Final = ("openai/", "anthropic/")
"""Providers whose newest models take no temperature: none is sent, unless one is asked for."""

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a command line asks for; None and empty are the defaults of the plan."""

    models: Sequence[str] = ()
    judges: Sequence[str] = ()
    convention: str | None = None
    market: str | None = None
    market_seed: int | None = None
    instruments: int | None = None
    profiles: Sequence[str] = ()
    windows: Sequence[str] = ()
    pace: str | None = None
    per_template: int | None = None
    split: str | None = None
    conditions: Sequence[str] = ()
    question_file: Path | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int = 4096
    base_url: str | None = None
    key_env: str | None = None
    concurrency: int | None = None


def plan_text(path: Path | None, wanted: Wanted) -> tuple[str, str]:
    """The text of a plan and where it is from: the file, or one written from what is wanted."""
    if path is not None:
        return bench_text(path), str(path)
    models = [resolved(one) for one in wanted.models] or list(reference_benchmark_models())
    if wrong := [one for one in (*models, *wanted.judges) if not re.fullmatch(r"[a-z0-9_.-]+/.+", one)]:
        raise InputError("--model", [Problem(one, "a model is named provider/name") for one in wrong])
    lines = [
        'version = "2"',
        *_given(convention=wanted.convention, seed=wanted.seed),
        *_table("market", source=wanted.market, seed=wanted.market_seed, instruments=wanted.instruments),
        *_table(
            "pipeline", profiles=list(wanted.profiles) or None, windows=list(wanted.windows) or None,
            frequency=wanted.pace,
        ),
        *_table(
            "questions", per_template=wanted.per_template, split=wanted.split,
            conditions=list(wanted.conditions) or None,
            file=None if wanted.question_file is None else str(wanted.question_file),
        ),
        *_table("engine", concurrency=wanted.concurrency),
    ]  # fmt: skip
    for name, model in zip(_unique([model_name(one) for one in models]), models, strict=True):
        lines += ["", "[[models]]", *_model(name, model, wanted)]
    for name, judge in zip(_unique([model_name(one) for one in wanted.judges]), wanted.judges, strict=True):
        lines += ["", "[[judges]]", *_given(name=name, model=judge, family=_family(judge))]
    return "\n".join(lines) + "\n", "the command line"


def default_folder(wanted: Wanted) -> Path:
    """Where a run goes that names no folder: one a model, so that questions and pipeline of one model come together."""
    if len(wanted.models) != 1:
        return Path("assaymark-bench")
    return Path(f"assaymark-bench-{model_name(resolved(wanted.models[0])).lower()}")


def resolved(model: str) -> str:
    """A model by its full name: ``reference/momentum`` is the benchmark's own, not the agent of that name."""
    provider, _, word = model.partition("/")
    own = PREFIX + ALIASES.get(word, word)
    return own if provider == "reference" and own in reference_benchmark_models() else model


def model_name(model: str) -> str:
    """What a model is called on the pages: the last part of its name; a built-in one is written as a name."""
    if model.startswith(PREFIX):
        return model.removeprefix(PREFIX).capitalize()
    last = model.rpartition("/")[2]
    return _NAME.sub("-", last).strip("-") or "model"


def _model(name: str, model: str, wanted: Wanted) -> list[str]:
    if is_outside(model):
        return _given(name=name, model=model, family=_family(model))
    if model.startswith("reference/"):
        return _given(name=name, model=model, family=name.lower())
    given = {"max_tokens": wanted.max_tokens, "base_url": wanted.base_url, "api_key_env": wanted.key_env}
    args = {key: value for key, value in given.items() if value is not None}
    temperature = wanted.temperature
    if temperature is None:  # the protocol's 0, unless the provider's newest models take none
        temperature = None if model.startswith(TAKES_NONE) else 0.0
    elif temperature < 0:
        temperature = None
    return _given(name=name, model=model, family=_family(model), temperature=temperature, args=args or None)


def _family(model: str) -> str:
    """For whom a model counts: its provider, and for one name on a server of one's own that name."""
    provider, _, rest = model.partition("/")
    return model_name(rest) if provider in ("openai-chat", "http", "python", "inspect", "reference") else provider


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


def _table(name: str, **values: object) -> list[str]:
    given = _given(**values)
    return ["", f"[{name}]", *given] if given else []


def _given(**values: object) -> list[str]:
    return [f"{name} = {toml_value(value)}" for name, value in values.items() if value is not None]


@dataclass(frozen=True, slots=True, repr=False)
class Benched(Result):
    """Where the page of a benchmark lies, what to say of it in a terminal, and the run that a notebook shows."""

    page: Path
    lines: tuple[str, ...]
    run: BenchRun

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import bench_parts

        yield from bench_parts(self.run)
        yield Note(f"page: {self.page}")


def bench_pipeline(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime,
    progress: Progress = silent,
) -> Benched:  # fmt: skip
    """Lock a plan, take every episode to its end, and write what came of it. Run again, it goes on where it was."""
    locked = _lock(folder, text, source, models, _opening, now, progress=progress)
    episodes = run_episodes(folder, locked, models, progress)
    say_raised(models, progress)
    if locked.plan.judges:
        grade_rationales(folder, locked, episodes, models, now, progress)
    return _publish(folder, locked, episodes, stored_answers(folder, locked))


def bench_qa(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime,
    progress: Progress = silent,
) -> Benched:  # fmt: skip
    """Lock a plan, have every question answered, and write what came of it; see `bench_pipeline`."""
    first = lambda bench: [call for *_, call in planned_questions(bench)]  # noqa: E731
    locked = _lock(folder, text, source, models, first, now, progress=progress)
    answers = ask_questions(folder, locked, models, progress)
    say_raised(models, progress)
    return _publish(folder, locked, stored_episodes(folder, locked, progress), answers)


def bench_report(folder: RunFolder, calls: Calls = "all", progress: Progress = silent, language: str = "") -> Benched:
    """Write the pages of a benchmark again, from the replies in its ledger; ``calls`` as for the report of a study."""
    locked = open_bench(folder)
    episodes, answers = stored_episodes(folder, locked, progress), stored_answers(folder, locked)
    return _publish(folder, locked, episodes, answers, calls, language)


def bench_shown(folder: RunFolder, *, progress: Progress = silent) -> BenchRun:
    """What the pages of a benchmark show, from the replies in its ledger; its tables and verdicts are written."""
    locked = open_bench(folder)
    return _decided(folder, locked, stored_episodes(folder, locked, progress), stored_answers(folder, locked))[0]


def _lock(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model],
    calls: Callable[[LockedBench], Iterable[CallSpec]], now: datetime, *, progress: Progress,
) -> LockedBench:  # fmt: skip
    """Lock a plan after one call to each of its models, the first of ``calls``, and one to each judge."""
    sent: list[Canaries] = []

    def ask(bench: LockedBench) -> None:
        plan, found = bench.plan, Canaries(models, bench.plan.engine, progress)
        named = [*(one.model for one in plan.models), *(judge.model for judge in plan.judges)]
        wrong = [_no_model(one.model) or unknown_model(one.model, models) for one in plan.models]
        wrong += [unknown_model(judge.model, models) for judge in plan.judges]
        if problems := dict.fromkeys(filter(None, wrong)):
            raise InputError(source, problems)
        if not all(name.startswith("reference/") for name in named):
            rubric = find_rubric(plan.rubric)
            schema = plan_texts(rubric)[f"schema {rubric.version}"]
            found.ask([*calls(bench), *(check_call(judge, schema) for judge in plan.judges)])
            found.require()
        sent.append(found)

    locked = lock_bench(folder, text, source, now, first=ask)
    for one in sent:
        one.keep(folder, locked)
    return locked


def _no_model(name: str) -> str | None:
    """Why a built-in model answers nothing of a benchmark, as agents and judges of studies do not; None if it does."""
    known = reference_benchmark_models()
    if not name.startswith("reference/") or name in known:
        return None
    meant = f"did you mean {resolved(name)}? " if resolved(name) in known else ""
    return f"{name} answers nothing of a benchmark; {meant}Built-in models that do: {', '.join(sorted(known))}"


def _opening(bench: LockedBench) -> Iterator[CallSpec]:
    """The first call of the pipeline to each model, window by window."""
    plan, profile = bench.plan, profile_named(bench.plan.pipeline.profiles[0])
    for window, agent in product(bench.windows, plan.models):
        if (call := EpisodeState(agent, profile, window, rules_of(plan)).next_call()) is not None:
            yield call


def _publish(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode] | None, answers: Answers | None,
    calls: Calls = "all", language: str = "",
) -> Benched:  # fmt: skip
    """Write tables, verdicts and pages; an `Episode` or an answer that was never asked for is None."""
    run, decided = _decided(folder, locked, episodes, answers)
    read = None if calls == "none" else calls_of(folder)
    replace_files(folder.report, in_language(each_benchmark_page(run, read=read), language))
    tally = tally_of(decided.verdicts)
    pairs = ("above", "within")
    said = [
        verdict
        for verdict in decided.verdicts
        if verdict.publication_level != "no-claim" and not verdict.claim.id.startswith(pairs)
    ]
    overall = {leaderboard.board.family: leaderboard for leaderboard in reversed(decided.leaderboards)}.values()
    shown = [
        leaderboard for leaderboard in decided.leaderboards if len(leaderboard.models) == 1 or leaderboard in overall
    ]
    lines = [line for board in shown for line in _board_lines(board, locked.plan.level)]
    narrow = [name for name, why in shown[0].unscored.items() if why.endswith(NO_CHOICE)] if shown else []
    lines += [_no_score(narrow)] if narrow else []
    lines += [missing_replies(item) for item in run.measurements if item.name == MISSING]
    lines.append("claims: " + ", ".join(f"{count} {level}" for level, count in tally.items()))
    for one in said[:12]:
        built_in = stand_ins(english(), {}, run.built_in, one.claim.subjects, made_by="models")
        words = [f"{one.publication_level}: {one.claim.statement}", built_in, one.condition or ""]
        lines.append(" ".join(filter(None, words)))
    if len(said) > 12:
        lines.append(f"and {len(said) - 12} more on the page")
    if episodes is None:
        lines.append("the pipeline was not run yet: assaymark bench pipeline, with the same plan and --out")
    if answers is None:
        lines.append("the questions were not asked yet: assaymark bench qa, with the same plan and --out")
    return Benched(folder.report / "index.html", tuple(lines), run)


def pipeline_scores(locked: LockedBench, episodes: Sequence[Episode]) -> Iterator[Score]:
    """S1 to S5, CEPS and PAS of every date, by the plan's convention and by the other one."""
    for result, convention in (
        pair
        for episode in episodes
        for pair in ((episode.result, locked.plan.convention), (episode.other, locked.other))
    ):
        labels = {"profile": result.profile, "window": result.window}
        for date in result.dates:
            states = {str(stage): state.state for stage, state in date.answers.states.items()}
            values = {**{str(stage): date.scores[stage] for stage in STAGES}, "CEPS": date.ceps, "PAS": date.pas}
            for name, value in values.items():
                yield Score(
                    about=f"{result.model}/{result.profile}/{result.window}/{date.day}", agent=result.model,
                    cluster=f"{result.window}/{date.day}", name=name, value=float(value), convention=convention,
                    state=states.get(name, "ok"), labels=labels,
                )  # fmt: skip


def _decided(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode] | None, answers: Answers | None
) -> tuple[BenchRun, BenchVerdicts]:
    plan, chosen = locked.plan, locked.plan.pipeline
    baselines = (
        ()
        if episodes is None
        else run_baselines(
            locked.windows, cash=chosen.cash_baselines, cost_bps=chosen.cost_bps, convention=plan.convention
        )
    )
    measurements: list[Measurement] = []
    scores: list[Score] = []
    boards: list[Board] = []
    if episodes is not None:
        measurements += pipeline_measurements(locked, episodes, baselines)
        measurements += ceiling_measurements(locked, true_episodes(locked))
        scores += pipeline_scores(locked, episodes)
        windows = len(locked.windows)
        where = "in this window" if windows == 1 else f"in these {windows} windows"
        for name in boards_of(locked):
            of = "over all profiles" if name == ALL else f"under the {name} profile"
            boards.append(Board(name, f"CEPS {of} {where}", PIPELINE))
    if answers is not None:
        measurements += question_measurements(locked, answers)
        scores += question_scores(locked, answers)
        boards.append(Board(QUESTIONS, "the questions with full information", QUESTIONS))
    if episodes is not None and answers is not None:
        measurements += rank_measurements(locked, episodes, answers)
    rules = BenchRules(plan.inference, plan.agreed, locked.preregistered, locked.families, plan.convention)
    decided = decide_benchmark(measurements, boards, rules, locked.plan_hash)
    store, basis = Store(folder), {"plan": locked.plan_hash}
    store.write(SCORES, scores, basis)
    store.write(MEASUREMENTS, measurements, basis)
    store.write(VERDICTS, decided.verdicts, basis)
    missing: dict[str, float] = {}
    for item in measurements:
        if item.name == MISSING and item.value:
            missing[item.labels["model"]] = max(missing.get(item.labels["model"], 0.0), item.value)
    file = decided_file(
        decided.verdicts, measurements, [model.name for model in plan.models], study=plan.name, title=plan.title,
        plan_hash=locked.plan_hash, rubric="none", made_by=plan.models,
        panel=Panel(judges={}, reference=any(one.model.startswith("reference/") for one in plan.models)),
        amendments=locked.amendments, preregistered=locked.preregistered, missing=missing,
        unranked={leaderboard.board.name: frozenset(leaderboard.unscored) for leaderboard in decided.leaderboards},
    )  # fmt: skip
    write_json(folder.verdicts, file)
    write_sums(folder)
    notes = _notes(plan, episodes or (), measurements)
    found = episodes or (), baselines, answers or {}
    return bench_run(folder, locked, *found, measurements, decided, notes, _left_out(measurements)), decided


def _board_lines(board: Leaderboard, level: float) -> Iterator[str]:
    """Possible ranks and intervals of scores, tier by tier: a point would rank models that cannot be ranked."""
    models = len(board.models)
    yield f"{board.board.words[:1].upper()}{board.board.words[1:]}, {level:.0%} intervals:"
    for name in (name for tier in board.tiers for name in tier):
        item, (first, last) = board.levels[name], board.ranks[name]
        ends = "no interval" if item.low is None or item.high is None else f"{item.low:.2f} to {item.high:.2f}"
        rank = f"{first if first == last else f'{first}-{last}'} of {models}"
        yield f"  {name:<20} {f'{item.value:.2f} ({ends})' if models == 1 else f'{ends}   rank {rank}'}"
    for name in board.unscored:
        yield f"  {name:<20} no score"


def _notes(plan: BenchPlan, episodes: Sequence[Episode], measurements: Sequence[Measurement]) -> Iterator[str]:
    """What a reader has to know of how models were asked and scored."""
    lacking = [item for item in measurements if item.name == MISSING]
    yield from map(missing_replies, lacking)
    if narrow := sorted(without_choice(episodes, plan.convention).keys() - _left_out(lacking)):
        yield _no_score(narrow)
    free = [
        one.name
        for one in plan.models
        if one.temperature is None and not (one.model.startswith("reference/") or is_outside(one.model))
    ]
    if free:
        yield f"No temperature was sent to {', '.join(free)}: the provider's own holds, where the protocol says 0."


def _left_out(measurements: Sequence[Measurement]) -> set[str]:
    """The models that lack so many replies of the pipeline that nothing of it is shown as theirs."""
    mine = (item for item in measurements if item.name == MISSING and item.labels["part"] == PIPELINE)
    return {item.labels["model"] for item in mine if item.detail["left_out"]}


def _no_score(models: Sequence[str]) -> str:
    verb, no = ("names", "this model gets") if len(models) == 1 else ("name", "these models get")
    return (
        f"No score: on most dates {listing(models)} {verb} at most one instrument to buy. By {FORMULAS['paper']} S3 to "
        f"S5 then have one possible answer and measure nothing, so {no} no CEPS."
    )
