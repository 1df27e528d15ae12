"""`assaymark datasheet`: measure judges that are asked, or read a log of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli_tools import Budget, DryRun, PriceFile, Tools
from assaymark.report.datasheet_terminal import datasheet_summary
from assaymark.workflow import costs, verbs
from assaymark.workflow.asking import prices_of
from assaymark.workflow.datasheets import Made
from assaymark.workflow.folder import RunFolder

Judges = Annotated[
    list[str] | None, typer.Option("--judge", help="Model to measure, as provider/name; can be repeated.")
]
Log = Annotated[Path | None, typer.Option("--from", help="Somebody's log of pairwise verdicts (CSV).")]
LogMap = Annotated[Path | None, typer.Option("--map", help="For --from: which column is what (TOML).")]
Only = Annotated[
    list[str] | None, typer.Option("--only", help="For --from: COLUMN=VALUE, the rows to read; can be repeated.")
]
Compare = Annotated[
    list[Path] | None, typer.Option("--compare", help="An earlier datasheet (JSON): same instrument, or shifted?")
]
Comparator = Annotated[
    str | None, typer.Option("--comparator", help="A further judge beside the others: a ceiling, not the truth.")
]
Tasks = Annotated[Path | None, typer.Option("--tasks", help="Tasks of your own (TOML); default: finance.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the stimuli and of the resampling.")]
Trials = Annotated[int, typer.Option("--trials", min=1, max=50, help="How often each question is asked.")]
Strict = Annotated[bool, typer.Option(help="Also ask under the strict instruction.")]
Pointwise = Annotated[bool, typer.Option("--pointwise", help="Also show single texts, to be graded by a rubric.")]
Panel = Annotated[
    Path | None, typer.Option("--run", help="Measure every judge of the plan locked in this run folder, into it.")
]
Out = Annotated[Path, typer.Option("--out", help="Folder to work in.", metavar="RUN")]


@dataclass(frozen=True, slots=True)
class _Asking:
    """What judges are asked, and into which folder; ``panel`` says that they are those of its locked plan."""

    folder: RunFolder
    panel: bool
    judges: Sequence[str]
    comparator: str | None
    tasks: Path | None
    seed: int
    trials: int
    strict: bool
    pointwise: bool
    compare: Sequence[Path]


def datasheet_command(tools: Tools) -> Callable[..., None]:
    """The command, to be added to the command line."""

    def datasheet(
        judge: Judges = None, log: Log = None, log_map: LogMap = None, only: Only = None, compare: Compare = None,
        comparator: Comparator = None, tasks: Tasks = None, seed: Seed = 7, trials: Trials = 1, strict: Strict = True,
        pointwise: Pointwise = False, run: Panel = None, out: Out = Path("assaymark-datasheets"),
        budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False,
    ) -> None:  # fmt: skip
        """Measure a judge as an instrument: what it does with nothing, with equal texts, with a known difference."""
        if sum((bool(judge), log is not None, run is not None)) != 1:
            raise typer.BadParameter("give --judge MODEL, --run RUN, or --from LOG")
        if log is None:
            if log_map is not None or only:
                raise typer.BadParameter("--map and --only are for --from")
            wanted = _Asking(
                folder=RunFolder(out if run is None else run), panel=run is not None, judges=judge or (),
                comparator=comparator, tasks=tasks, seed=seed, trials=trials, strict=strict,
                pointwise=pointwise or run is not None, compare=compare or (),
            )  # fmt: skip
            _ask(tools, wanted, budget, prices, dry_run)
            return
        if tasks is not None or trials != 1 or pointwise or comparator:
            raise typer.BadParameter("--tasks, --trials, --pointwise and --comparator are for judges that are asked")
        if budget is not None or prices is not None or dry_run:
            raise typer.BadParameter("--budget, --prices and --dry-run are for judges that are asked")
        mapping = verbs.log_map(log_map, only or ())
        _show(tools, verbs.measure_log(RunFolder(out), log, mapping, seed=seed, old=compare or ()))

    return datasheet


def _ask(tools: Tools, wanted: _Asking, budget: float | None, prices: Path | None, dry_run: bool) -> None:
    """Measure the judges, or say what that would cost."""
    who, folder, comparator = costs.paid_models(tools.models(), budget, prices), wanted.folder, wanted.comparator
    names = [*wanted.judges, *([comparator] if comparator else ())]
    judges = [*(verbs.panel_of(folder) if wanted.panel else ()), *verbs.judges_of(names, wanted.trials)]
    if dry_run:
        tools.say_all(
            costs.expect_datasheets(
                folder, judges, prices_of(who),
                tasks=wanted.tasks, seed=wanted.seed, strict=wanted.strict, pointwise=wanted.pointwise,
            )
        )  # fmt: skip
        return
    with tools.progress() as progress:
        made = verbs.measure_judges(
            folder, judges, who, tasks=wanted.tasks, seed=wanted.seed, strict=wanted.strict,
            pointwise=wanted.pointwise, study=wanted.panel,
            comparator=comparator.partition("/")[2] if comparator else None, old=wanted.compare, progress=progress,
        )  # fmt: skip
    _show(tools, made)
    tools.say_all(costs.paid_lines(folder, prices_of(who)))


def _show(tools: Tools, made: Made) -> None:
    tools.show(datasheet_summary(made.sheets, made.agreement))
    tools.say_all([f"page: {made.page}"])
