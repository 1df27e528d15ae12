"""`assaymark bench`: the commands of the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from assaymark.cli.options import (
    WHOLE,
    AsJson,
    Budget,
    CommandGroup,
    DryRun,
    Ledger,
    PriceFile,
    Services,
    StrictAgents,
    examples,
    option,
    say,
    say_forecast,
    say_paid,
)
from assaymark.workflow import forecast as costs
from assaymark.workflow import verbs
from assaymark.workflow.ask import prices_of
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import VERDICTS, Store
from assaymark.workflow.tracks import benchmark as benching
from assaymark.workflow.tracks.benchmark import Wanted, default_folder, plan_text, write_set
from assaymark.workflow.tracks.benchmark_plan import expected

Strings: TypeAlias = list[str] | None
Text: TypeAlias = str | None
Number: TypeAlias = int | None
Plan = Annotated[Path | None, typer.Argument(help="Benchmark file (TOML), instead of options.", metavar="PLAN")]
Models = Annotated[Strings, option("Model; repeatable. Default: ten built-in models.", "PROVIDER/NAME", "--model")]
Out = Annotated[Path | None, option("Run folder; default: named after the model.", "RUN", "--out", "-o")]
Convention = Annotated[Text, option("paper (default) or reference.", "NAME", "--convention")]
Market = Annotated[Text, option("Snapshot; default: the built-in market.", "FOLDER", "--market")]
Instruments = Annotated[Number, option("Number of instruments; default: 81.", "N", "--instruments")]
Profiles = Annotated[Strings, option("Only this profile; repeatable.", "NAME", "--profile")]
Windows = Annotated[Strings, option("Only this window; repeatable.", "NAME", "--window")]
Pace = Annotated[Text, option("weekly, monthly (default) or quarterly.", "PACE", "--pace")]
Judges = Annotated[Strings, option("Judge of the rationales; repeatable.", "PROVIDER/NAME", "--judge")]
PerTemplate = Annotated[Number, option("Questions per template; default: 50.", "N", "--per-template")]
SplitChoice = Annotated[Text, option("train, val or test (default).", "SPLIT", "--split")]
QuestionFile = Annotated[Path | None, option("Question set (JSONL), not the built-in one.", "FILE", "--questions")]
Seed = Annotated[Number, option("Seed of the built-in market; default: 0.", "N", "--seed")]
Temperature = Annotated[float | None, option("Default: 0 if supported. Below 0: not sent.", "T", "--temperature")]
MaxTokens = Annotated[int, option("Maximum reply length.", "N", "--max-tokens", min=1, show_default=True)]
BaseUrl = Annotated[Text, option("Address of a compatible API.", "URL", "--base-url")]
KeyEnv = Annotated[Text, option("Variable that holds its key.", "NAME", "--key-env")]
_SHORT: Final[Mapping[str, str]] = {
    "qa": "ask models the static questions T1 to T7",
    "pipeline": "run models through the stages S1 to S5",
}
_HELP: Final[Mapping[str, str]] = {
    "qa": "Ask models the static questions T1 to T7, and report which models can be ranked.",
    "pipeline": "Run models through the stages S1 to S5 for every profile and window, with five baselines.",
}


def bench_app(tools: Services) -> typer.Typer:
    """The group of commands, to be added to the command line."""
    app = typer.Typer(
        help="Run PortBench: questions with exact answers, and a five-stage pipeline under stress.", cls=CommandGroup,
        rich_markup_mode=None, epilog=examples("assaymark bench qa --model openai/MODEL --per-template 5"),
    )  # fmt: skip

    for name, verb in (("qa", benching.bench_qa), ("pipeline", benching.bench_pipeline)):
        shown = examples(
            f"assaymark bench {name} --model openai/MODEL --dry-run",
            f"assaymark bench {name} bench.toml --out runs/bench",
        )
        app.command(name, help=_HELP[name], short_help=_SHORT[name], epilog=shown)(_asking(tools, verb))

    @app.command(
        "questions",
        short_help="write the questions as files, for use anywhere",
        epilog=examples("assaymark bench questions --out questions/"),
    )
    def questions(
        out: Annotated[Path, option("Folder to write.", "FOLDER", "--out", "-o")],
        market: Market = None,
        seed: Annotated[int, option("Seed of the questions and the built-in market.", "N", "--seed", min=0)] = 0,
        json: AsJson = False,
    ) -> None:
        """Write the whole set of questions as JSON lines, with its dataset card and manifest."""
        with tools.progress(WHOLE) as progress:
            size, digest = write_set(out, market, seed, progress)
        card = str(out / "card.md")
        value = {"questions": size, "sha256": digest, "card": card}
        say(tools, json, value, [f"{size:,} questions, sha256 {digest}", f"card: {card}"])

    return app


def _asking(tools: Services, verb: Callable[..., benching.Benched]) -> Callable[..., None]:
    """A command that asks models. Both take the same options, because both are about one plan."""

    def command(
        plan: Plan = None, model: Models = None, out: Out = None, profile: Profiles = None, window: Windows = None,
        pace: Pace = None, judge: Judges = None, convention: Convention = None, market: Market = None,
        seed: Seed = None, instruments: Instruments = None, per_template: PerTemplate = None,
        split: SplitChoice = None, questions: QuestionFile = None, temperature: Temperature = None,
        max_tokens: MaxTokens = 4096, base_url: BaseUrl = None, key_env: KeyEnv = None, ledger: Ledger = None,
        budget: Budget = None, prices: PriceFile = None, strict_agents: StrictAgents = False, dry_run: DryRun = False,
        json: AsJson = False,
    ) -> None:  # fmt: skip
        wanted = Wanted(
            models=model or (), judges=judge or (), convention=convention, market=market, market_seed=seed,
            instruments=instruments, profiles=profile or (), windows=window or (), pace=pace,
            per_template=per_template, split=split, question_file=questions,
            temperature=temperature, max_tokens=max_tokens, base_url=base_url,
            key_env=key_env,
        )  # fmt: skip
        who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
        folder = RunFolder(out or default_folder(wanted))
        text, source = plan_text(plan, wanted)
        if dry_run:
            say_forecast(tools, json, expected(folder, text, source, verb is benching.bench_qa, prices_of(who)))
            return
        if ledger is not None:
            verbs.name_ledger(folder, ledger)
        with tools.progress() as progress:
            done = verb(folder, text, source, who, now=datetime.now(UTC), progress=progress)
        value = {"page": str(done.page), "verdicts": Store(folder).read(VERDICTS) if json else ()}
        say_paid(tools, json, folder, who, value, done.lines, [f"page: {done.page}"])

    return command
