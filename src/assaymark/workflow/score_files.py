"""A table of scores made elsewhere: its measurements and verdicts, its run folder, and partitions that are summed."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType

from assaymark import __version__
from assaymark.claims import certificate_name, certificates, decide_claims, index
from assaymark.claims.certification import VerdictFile, verdict_file
from assaymark.errors import InputError, PlanError, Problem
from assaymark.importers.roles import abridge
from assaymark.metrology.analysis import analyse
from assaymark.metrology.columns import ScoreColumns, numeric_columns, score_table_of
from assaymark.metrology.kappa import averaging, gated
from assaymark.metrology.measure_panel import missing_measurements
from assaymark.metrology.measure_people import Labels
from assaymark.metrology.scores import ScoreTable, is_parquet
from assaymark.metrology.streaming import score_sums
from assaymark.metrology.sums import NotStreamableError, ScoreSums
from assaymark.notebook import Part, Result
from assaymark.plan import toml_text
from assaymark.protocol import (
    HUMAN_FAMILY,
    HUMAN_MODEL,
    IN_POINTS,
    SCALE,
    JudgeSpec,
    Records,
    RubricChoice,
    Scale,
    Study,
    parse_study,
    plan_hash,
)
from assaymark.records import AGGREGATE, DerivationKind, Measurement, Verdict, parse, write_atomic
from assaymark.report import AssayRun, RubricView, each_page, terminal_summary
from assaymark.report.inputs import TableView
from assaymark.report.translation import in_language
from assaymark.rows import read
from assaymark.text import count_of
from assaymark.workflow import human_labels
from assaymark.workflow import run_folder as runs
from assaymark.workflow.progress import count_parts, note, watching
from assaymark.workflow.run_folder import RunFolder, missing
from assaymark.workflow.tables import MEASUREMENTS, VERDICTS, Store

if TYPE_CHECKING:
    from assaymark.engine.compute import How

STREAMED_FROM: Final = 2_000_000
"""The number of rows from which a Parquet file is read in parts, of which only sums are kept."""

MOST: Final = 400
"""Above this many claims, only supported ones get certificates; cards and rows of numbers come with `report` only."""

_PAIRS: Final = 1_000_000  # most pairs of agents in all certificates together, each of which holds every pair

FORMAT: Final = "assaymark check 1"

_UNPAIRED: Final = "no column cycle: agents are compared by their means in each cluster"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Checked(Result):
    """The result of checking a table of scores: verdicts, the measurements behind them, and how the table was read."""

    study: Study
    plan_hash: str
    preregistered: bool
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    read: TableView

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import study_parts

        yield self.read.read
        yield from study_parts(self.run)

    @property
    def claims(self) -> tuple[Verdict, ...]:
        """Every claim that was tested, with its level, condition and reasons."""
        return self.verdicts

    @property
    def agreement(self) -> Measurement:
        """The mean pairwise agreement of the judges on the overall score."""
        kappas = (measurement for measurement in self.measurements if measurement.name == "kappa.mean_pairwise")
        return next(measurement for measurement in kappas if measurement.labels["dimension"] == AGGREGATE)

    @property
    def run(self) -> AssayRun:
        """The contents of the pages and of the terminal summary."""
        names = self.read.dimensions if len(self.read.dimensions) > 1 else ()  # a single one is the overall score
        titles = tuple((name, name.replace("_", " ").capitalize()) for name in names)
        rubric = RubricView(self.study.rubric.name, "Scores made elsewhere", titles)
        decided = self.verdicts, self.measurements
        return AssayRun(self.study, self.plan_hash, None, rubric, *decided, (), (), table=self.read)

    @property
    def summary(self) -> RenderableType:
        """The summary for the terminal."""
        return terminal_summary(self.run)

    @property
    def verdict_file(self) -> VerdictFile:
        """The contents of ``verdicts.json`` without notes."""
        return verdict_file(self.study, self.plan_hash, self.verdicts, self.measurements, self.preregistered)

    @property
    def document(self) -> dict[str, Any]:
        """The contents of ``verdicts.json``, with how the table was read."""
        return {"read": asdict(self.read), "verdicts": self.verdicts, "measurements": self.measurements}

    def save(self, out: Path | str = runs.CHECKED) -> Path:
        """Write the run folder of this table with its page, and return the path of the page."""
        folder = RunFolder(Path(out))
        if folder.lock.exists() or folder.has_ledger:
            raise PlanError(f"{folder.path} is the folder of a run; give a table its own folder (--out)")
        folder.refuse_others(folder.check.is_file() or human_labels.stored_draw(folder) is not None, "table")
        with runs.made_folder(folder.path):
            head = {"format": FORMAT, "plan_hash": self.plan_hash, "preregistered": self.preregistered}
            runs.write_json(folder.check, head | {"read": asdict(self.read)})  # first, to own what a kill leaves
            write_atomic(folder.plan, study_toml(self.study))
            store = Store(folder)
            store.write(MEASUREMENTS, self.measurements, {"plan": self.plan_hash})
            store.write(VERDICTS, self.verdicts, {"plan": self.plan_hash})
            brief = len(self.verdicts) > MOST
            certified = [verdict for verdict in self.verdicts if not brief or verdict.publication_level != "no-claim"]
            room = _PAIRS // max(1, math.comb(self.read.agents, 2))
            cut = [f"only the first {room:,} supported claims have certificates"] if len(certified) > room else []
            certified = certified[:room]
            made = certificates(certified, index(self.measurements), self.study)
            file = replace(self.verdict_file, notes=(*self.read.left, *self.read.choices, *cut))
            runs.write_verdicts(folder, file, zip(map(certificate_name, certified), made, strict=True))
            return self.write_pages(folder, brief)

    def write_pages(self, folder: RunFolder, brief: bool = False, language: str = "") -> Path:
        """Write the pages into a run folder, those of a further language below it; returns the first page."""
        runs.replace_files(folder.report, in_language(each_page(self.run, brief=brief), language))
        return folder.report / "index.html"


def open_checked(folder: RunFolder) -> Checked:
    """Read the result that the run folder of a table stores."""
    stored, store = runs.read_json(folder.check, "record of a check"), Store(folder)
    try:
        read = parse(TableView, json.dumps(stored["read"]), source="check.json")
        plan_hash, preregistered = stored["plan_hash"], stored["preregistered"]
    except (KeyError, TypeError):
        raise InputError(str(folder.check), [f"is not the record of a check ({FORMAT})"]) from None
    study = parse_study(runs.read_text(folder.plan, "plan"), source=str(folder.plan))
    return Checked(study, plan_hash, preregistered, tuple(store.read(VERDICTS)), tuple(store.read(MEASUREMENTS)), read)


def measure_table(
    path: Path, study: Study | None = None, out: RunFolder | Path | None = None,
    dimensions: Sequence[str] | None = None, computing: Computing | None = None, planned: bool = True,
) -> Checked:  # fmt: skip
    """Measure a table of scores in documented columns, and decide every candidate claim on it.

    ``planned`` if a given plan was fixed before the scores were seen.
    """
    folder = RunFolder(out) if isinstance(out, Path) else out
    planned = planned and study is not None
    named = planned_dimensions(study) if dimensions is None else dimensions
    if folder is not None and (folder.lock.exists() or folder.has_ledger):
        raise PlanError(f"{folder.path} is the folder of a run; give a bare table its own folder")
    # Selecting agents needs the rows of a table, as do the contamination probe and alpha.
    by_row = study is not None and (
        study.records.agents is not None or study.contamination is not None or study.rubric.coefficient == "alpha"
    )
    weights, scale = (None, SCALE) if study is None else (study.rubric.weights, study.scale)
    if path.is_dir():
        if by_row:
            needed = 'records.agents, [contamination] and agreement = "alpha" need the rows of a table'
            raise PlanError(f"{path}: {needed}; measure it as one file")
        partitions = None if folder is None else folder.path / "partitions"
        sums = folder_sums(path, weights, computing or Computing(), partitions, named, scale)
        # All partitions have the same columns, or they could not be summed.
        measured = _measure_sums(path, sums, study, partition_files(path)[0], planned)
    elif not path.exists():
        raise missing(path, "score table" if computing is None else "folder of partitions")
    elif computing is not None:
        raise PlanError(f"{path} is one file, which is measured here; only a folder of partitions can be spread")
    else:
        large, reasons = not by_row and is_large(path), list[str]()
        if large:
            try:
                with tempfile.TemporaryDirectory(prefix="assaymark-") as scratch:
                    sums = score_sums(
                        path, weights, dimensions=named, scratch=Path(scratch), progress=watching(), scale=scale
                    )
                measured = _measure_sums(path, sums, study, path, planned)
            except NotStreamableError as reason:
                large, reasons = False, [f"read whole into memory, because {reason}"]
        if not large:
            note("reading scores", 0, 1)
            columns = ScoreColumns.of(read(path).table, str(path), named, scale)
            note("reading scores", 1, 1)
            notes = [*reasons, *_unused_note(columns.unused)]
            measured = measure_columns(path, columns, study, notes, planned)
    if folder is None:
        return measured
    write_atomic(folder.plan, study_toml(measured.study))
    Store(folder).write(MEASUREMENTS, measured.measurements, {"plan": measured.plan_hash})
    runs.write_json(folder.verdicts, measured.verdict_file)
    runs.write_sums(folder)
    return measured


def planned_dimensions(study: Study | None) -> tuple[str, ...] | None:
    """Return the dimensions that a plan names; None if it names none."""
    claimed = () if study is None else (name for name in study.claims.dimensions or () if name != AGGREGATE)
    return tuple((study is not None and study.rubric.weights) or claimed) or None


def is_large(path: Path) -> bool:
    """True if a Parquet file, or those of a folder together, have enough rows to be read in parts."""
    rows = 0
    for file in path.rglob("*.parquet") if path.is_dir() else (path,):
        with suppress(pa.ArrowException, OSError, UnicodeEncodeError):  # the reader reports the problem
            rows += pq.read_metadata(file).num_rows if is_parquet(file) else 0
    return rows >= STREAMED_FROM


def default_study(families: Mapping[str, str], derivations: Iterable[str] = ("honest",), scale: Scale = SCALE) -> Study:
    """Return a study for a table without a plan: the table's judges with their families, and protocol defaults."""
    kinds: list[DerivationKind] = ["honest", *sorted(set(derivations) - {"honest"})]  # type: ignore[list-item]
    judges = tuple(
        JudgeSpec(name=name, family=family, model=HUMAN_MODEL if family == HUMAN_FAMILY else f"elsewhere/{name}")
        for name, family in families.items()
    )
    rubric = RubricChoice(name="elsewhere", scale=scale)
    return Study(name="bare table", seed=0, judges=judges, records=Records(derivations=tuple(kinds)), rubric=rubric)


def study_toml(study: Study) -> str:
    """Return a study as the text of a study file, without defaults."""
    fields = study.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    for section, names in IN_POINTS.items() if study.scale != SCALE else ():
        fields[section] = fields.get(section, {}) | {name: getattr(getattr(study, section), name) for name in names}
    return toml_text(fields)


def measure_columns(
    path: Path, columns: ScoreColumns, study: Study | None, notes: Sequence[str], planned: bool,
    unit: str = "cycle", people: Labels | None = None,
) -> Checked:  # fmt: skip
    """Measure a table and decide its claims; ``planned`` if its plan was fixed before the scores were seen."""
    weights, lines = None if study is None else study.rubric.weights, list(notes)
    if study is not None and study.records.agents is not None:
        agents = columns.names["agent"]
        if unknown := sorted(set(study.records.agents) - set(agents)):
            raise PlanError(f"{path}: the plan names agents that the table lacks ({', '.join(unknown)})")
        columns = columns.only(np.array([name in study.records.agents for name in agents])[columns.codes["agent"]])
        if not columns.usable.any():
            raise InputError(str(path), ["no row of the plan's agents has a score on every dimension"])
    present = columns.names.get("derivation", ("honest",))
    table = honest = score_table_of(columns, weights)
    families = dict(zip(honest.judges, honest.families, strict=True))
    plan = default_study(families, present) if study is None else study
    _require_fit(path, plan, families, honest.names, honest.agents, present)
    if lacking := sorted(set(plan.claims.covariates) - {"log2"}):
        raise PlanError(
            f"{path}: a table of scores has no texts to count in (claims.length names {', '.join(lacking)})"
        )
    if ignored := sorted(set(present) - set(plan.records.derivations)):
        lines.append(f"rows that the plan does not name are left out: {', '.join(ignored)}")
    left_out = honest.excess(plan.missing)
    if left_out:
        judges = columns.names["judge"]
        if plan.missing.on_excess == "stop" or len(left_out) == len(judges):
            raise PlanError(f"{path}: {'; '.join(f'{judge}: {reason}' for judge, reason in left_out.items())}")
        columns = columns.only(np.array([name not in left_out for name in judges])[columns.codes["judge"]])
        lines += [f"judge {judge} is left out: {reason}" for judge, reason in left_out.items()]
        honest = score_table_of(columns, weights)
    if honest.left_out and plan.rubric.coefficient != "alpha":
        lines.append(f"{_lacking_words(len(honest.left_out), unit)}: agreement is measured without them")
    if first := [judge for judge, stable in averaging(honest, plan).items() if not stable]:
        of = np.isin(np.array(columns.names["judge"])[columns.codes["judge"]], first) & columns.usable
        answers = np.unique(np.stack([columns.codes[name][of] for name in ("trajectory", "judge")]), axis=1).shape[1]
        reason = f"repetition stability is below {plan.gates.repetition_stability:g}, so only the first trial counts"
        lines.append(f"{count_of(int(of.sum()) - answers, 'scores')} of {abridge(first)} not used: {reason}")
    rng = np.random.default_rng([plan.seed, 1])
    measurements = analyse(honest, plan, rng, people=people, progress=count_parts())
    measurements = (*measurements, *_measure_controls(columns, honest, plan), *missing_measurements(table, left_out))
    size = {"answers": honest.n, "agents": len(honest.agents), "clusters": len(honest.clusters),
            "judges": len(honest.judges)}  # fmt: skip
    view = _table_view(path, honest.dimensions, plan, lines, size, "cycle" in columns.codes)
    return _decide_table(view, plan, planned, measurements, honest.digest, unit)


def _measure_sums(path: Path, sums: ScoreSums, study: Study | None, file: Path, planned: bool) -> Checked:
    layout = sums.layout
    families = dict(zip(layout.judges, layout.families, strict=True))
    plan = default_study(families) if study is None else study
    _require_fit(path, plan, families, (AGGREGATE, *layout.dimensions), sums.agents, ())
    notes = _unused_note([name for name in numeric_columns(pq.read_schema(file)) if name not in layout.dimensions])
    if sums.left_out:
        reason = "partitions are only summed, while one file is read whole"
        notes.append(f"left out of every number: {_lacking_words(sums.left_out)}, and {reason}")
    if excess := sums.excess(plan.missing):
        reasons = "; ".join(f"{judge}: {reason}" for judge, reason in excess.items())
        instead = "take these judges out, or measure the table as one file"
        raise PlanError(f"{path}: too many replies are missing ({reasons}); {instead}")
    measurements = analyse(sums, plan, rng=np.random.default_rng([plan.seed, 1]), progress=count_parts())
    measurements = (*measurements, *missing_measurements(sums, {}))
    clusters = int(np.count_nonzero(sums.sizes.sum(axis=0)))
    size = {"answers": sums.n, "agents": len(sums.agents), "clusters": clusters, "judges": len(layout.judges)}
    view = _table_view(path, layout.dimensions, plan, notes, size, layout.paired)
    return _decide_table(view, plan, planned, measurements, sums.digest)


def _table_view(
    path: Path, dimensions: Sequence[str], plan: Study, notes: Sequence[str], size: Mapping[str, Any], paired: bool
) -> TableView:
    """Return how a table in documented columns was read; ``size`` counts the part that is ranked."""
    return TableView(
        source=str(path), sha256="", format="Parquet", shape="one column a criterion", roles={},
        read="columns by the names in the documentation", filled=() if paired else (_UNPAIRED,), left=tuple(notes),
        choices=(), dimensions=tuple(dimensions), scale=plan.scale, **size,
        scores=size["answers"] * size["judges"] * len(dimensions), missing=0,
    )  # fmt: skip


def _lacking_words(count: int, unit: str = "cycle") -> str:
    single, many = ("answer", "answers") if unit == "item" else ("trajectory", "trajectories")
    return f"{count:,} {f'{single} lacks' if count == 1 else f'{many} lack'} a usable score from some judge"


def _unused_note(columns: Sequence[str]) -> list[str]:
    """Return a note on numeric columns that are not used as dimensions."""
    return [f"numeric columns that are not used: {', '.join(columns)}"] if columns else []


def _decide_table(
    view: TableView, plan: Study, planned: bool, items: Sequence[Measurement], digest: str, unit: str = "cycle"
) -> Checked:
    """Decide the claims of a measured table, in texts that name what takes the place of cycles there."""
    measurements, paired = [], _UNPAIRED not in view.filled
    called = unit if paired else "cluster"
    words = {} if called == "cycle" else {"cycle": called}
    words |= {"trajectories": "answers", "trajectory": "answer", "decisions": "answers"} if unit == "item" else {}
    for item in items:
        texts = item.method, item.n_of, item.state
        renamed = [reduce(lambda text, word: text.replace(word, words[word]), words, phrase) for phrase in texts]
        if called != "cycle" and not paired and "cycle" in " ".join(texts):
            renamed[0] += "; no cycle was given, so agents are compared by their means in each cluster"
        if renamed != [*texts]:
            item = replace(item, method=renamed[0], n_of=renamed[1], state=renamed[2])
        measurements.append(item)
    fingerprint = plan_hash(plan, {}, {"scores": digest})
    verdicts = decide_claims(measurements, plan, fingerprint, preregistered=planned)
    return Checked(plan, fingerprint, planned, verdicts, tuple(measurements), view)


def _measure_controls(columns: ScoreColumns, honest: ScoreTable, study: Study) -> list[Measurement]:
    """Measure length bias, contamination and control cells, as far as the table and the plan have them."""
    measurements: list[Measurement] = []
    # Most tables have none of these, and so load none of these modules.
    if honest.lengths is not None:
        from assaymark.metrology.length import style_measurements

        measurements += style_measurements(honest, study, rng=np.random.default_rng([study.seed, 4]))
    if study.contamination is not None:
        from assaymark.metrology.probes import contamination_measurements

        measurements += contamination_measurements(gated(honest, study), study, {})
    if study.cells_judged:
        from assaymark.metrology.controls import ControlCell, cell_measurements
        from assaymark.metrology.length import length_matched_contrasts

        # The author of a control text is its agent's family or, without one, its agent.
        parents = columns.of_trajectories("parent") if "parent" in columns.codes else {}
        composers = columns.of_trajectories("agent_family" if "agent_family" in columns.codes else "agent")
        cells = []
        for kind in study.cells_judged:
            table = score_table_of(columns, study.rubric.weights, derivation=kind)
            records = table.trajectories
            written = tuple(composers[name] for name in records)
            cells.append(ControlCell(kind, table, tuple(parents.get(name) or None for name in records), written))
        measurements += cell_measurements(honest, cells, study)
        for cell in cells:
            if cell.kind == "length_matched":
                measurements += length_matched_contrasts(cell, honest, study)
    return measurements


def _require_fit(
    path: Path, study: Study, seen: Mapping[str, str], names: Sequence[str], agents: Sequence[str], cells: Sequence[str]
) -> None:
    """Raise `PlanError` unless judges, families, dimensions and control cells of a plan are those of the table."""
    planned = {judge.name: judge.family for judge in study.judges}
    problems = [f"judge {name} is in the plan and not in the table" for name in sorted(planned.keys() - seen.keys())]
    problems += [f"judge {name} is in the table and not in the plan" for name in sorted(seen.keys() - planned.keys())]
    for name in sorted(planned.keys() & seen.keys()):
        if planned[name] != seen[name]:
            problems.append(f"judge {name} has family {planned[name]} in the plan and {seen[name]} in the table")
    lacking = (name for name in study.claims.dimensions or () if name not in names)
    problems += [f"claims.dimensions names {name}, which the table lacks" for name in lacking]
    if not agents:
        problems.append("no agent has an honest first record")
    if problems:
        raise PlanError(f"{path}: the plan does not fit: {'; '.join(problems)}")
    if absent := sorted(set(study.cells_judged) - set(cells)):
        raise PlanError(f"{path}: the plan names cells that the table lacks ({', '.join(absent)})")


# --- A folder of partitions, summed one by one: in this process, in several, or on Ray ---------------

FORMS: Final = ("*.parquet", "part=*/*.parquet")
"""Patterns of partition files below their folder."""

_SHOWN: Final = 2  # problems listed for one partition


@dataclass(frozen=True, slots=True)
class Computing:
    """Settings for summing partitions: method, workers, Ray address, and seconds allowed each; see `map_chunks`."""

    how: How = "serial"
    workers: int | None = None
    address: str | None = None
    deadline_s: float | None = None


def computing_of(
    how: str | None, workers: int | None, address: str | None, deadline_s: float | None
) -> Computing | None:
    """Return the settings from the options of the command line; None if none is given."""
    if how is None and workers is None and address is None and deadline_s is None:
        return None
    from assaymark.engine.compute import backend_named

    how = how or ("ray" if address is not None else "processes")
    problems = []
    if how == "serial" and (workers or 1) > 1:
        problems.append(Problem("--workers", f"with --compute serial there is one (got {workers})"))
    if how != "ray" and address is not None:
        problems.append(Problem("--ray", f"needs --compute ray (got {how})"))
    if deadline_s is not None and not (math.isfinite(deadline_s) and deadline_s > 0):
        problems.append(Problem("--deadline", f"must be finite and above 0 (got {deadline_s:g})"))
    if problems:
        raise InputError("measure", problems)
    return Computing(backend_named(how), workers, address, deadline_s)


def folder_sums(
    folder: Path, weights: Mapping[str, float] | None, computing: Computing, cache: Path | None,
    dimensions: Sequence[str] | None = None, scale: Scale = SCALE,
) -> ScoreSums:  # fmt: skip
    """Return the sum of all partitions below a folder."""
    from assaymark.engine import Chunk, ChunkError, Ledger, map_chunks
    from assaymark.engine.compute import usable_cores
    from assaymark.metrology.streaming import THREADS, VERSION, misfits, partition_sums, read_partition
    from assaymark.metrology.sums import total

    paths = partition_files(folder)
    names = [str(path.relative_to(folder)) for path in paths]

    def digest(path: Path) -> str | OSError:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            return exc

    with ThreadPoolExecutor(THREADS) as pool:
        digests = list(pool.map(digest, paths))
    unread = [(name, error) for name, error in zip(names, digests, strict=True) if isinstance(error, OSError)]
    if unread:
        raise InputError(str(folder), [Problem(name, f"cannot be read ({exc.strerror})") for name, exc in unread])
    threads = THREADS if computing.how == "serial" else max(1, THREADS // (computing.workers or usable_cores()))
    settings = {
        "weights": None if weights is None else dict(weights),
        "dimensions": dimensions if dimensions is None or isinstance(dimensions, str) else list(dimensions),
        "scale": list(scale),
    }
    chunks = [
        # The key is the digest, not the path: a moved folder is not summed again, a changed file is.
        Chunk(name, {"sha256": sha256, **settings}, {"path": str(path.absolute()), "threads": threads})
        for name, path, sha256 in zip(names, paths, digests, strict=True)
    ]
    problems: list[Problem] = []
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
    with nullcontext() if cache is None else Ledger.open(cache / "ledger.db") as ledger:
        try:
            summed = map_chunks(
                partition_sums, chunks, version=f"{VERSION} of {__version__}", ledger=ledger, progress=watching(),
                what="summing partitions", **{name: one for name, one in asdict(computing).items() if one is not None},
            )  # fmt: skip
            sums = dict(enumerate(summed))
        except ChunkError as exc:
            if not exc.of_data:
                raise
            sums = exc.results
            for failure in exc.failures:
                # The first problems of each file, so that every file is named.
                rest = ["and more in this file"] if len(failure.problems) > _SHOWN else []
                problems += [Problem(failure.name, problem) for problem in (*failure.problems[:_SHOWN], *rest)]
    partitions = {names[index]: read_partition(sums[index]) for index in sorted(sums)}
    if partitions:
        problems += misfits(partitions)
    if problems:
        raise InputError(str(folder), problems)
    return total(partition.sums for partition in partitions.values())


def partition_files(folder: Path) -> list[Path]:
    """Return the partition files below a folder; raises `InputError` if there are none."""
    files = sorted({path for form in FORMS for path in folder.glob(form) if not path.name.startswith((".", "_"))})
    if not files:
        raise InputError(str(folder), [f"no partitions here: {' or '.join(FORMS)} is looked for"])
    return files
