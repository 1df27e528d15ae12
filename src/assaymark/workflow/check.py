"""`assaymark check`: a table of scores to verdicts, certificates and a page, in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from assaymark.errors import InputError, PlanError, Problem
from assaymark.importers.roles import Bools, Wanted, abridge
from assaymark.importers.scores import ScoresRead, read_scores
from assaymark.importers.tables import FileRows, read_rows
from assaymark.metrology.columns import TEXTS, ScoreColumns, score_table_of
from assaymark.plan import ClusterOrder, MissingLimits
from assaymark.protocol import Study, parse_study, plan_hash
from assaymark.records import AGGREGATE, to_json, write_atomic
from assaymark.report.inputs import RunIndex, TableView
from assaymark.report.study.checks import copied_words
from assaymark.text import count_of, percent
from assaymark.workflow import human_labels
from assaymark.workflow import run_folder as runs
from assaymark.workflow.progress import note, silent, watched
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.score_files import (
    Checked,
    default_study,
    is_large,
    measure_columns,
    measure_table,
    open_checked,
    planned_dimensions,
)

ELSEWHERE: Final = "elsewhere/"
"""Prefix of the model of a judge whose scores are made elsewhere."""


def reread_table(folder: RunFolder) -> tuple[Checked, FileRows, ScoresRead]:
    """Read the table of a run folder again, with the same roles and scale. Raises `PlanError` if it changed since."""
    checked = open_checked(folder)
    view, rows = checked.read, _read_rows(Path(checked.read.source))
    if rows.sha256 != view.sha256:
        raise PlanError(f"{view.source} changed since; run: assaymark check {view.source} --out {folder.path}")
    named = view.dimensions if "dimension" in view.roles or view.shape == "one column a criterion" else None
    columns = tuple(judge.name for judge in checked.study.judges) if view.shape == "one column a judge" else None
    read = read_scores(rows, Wanted(roles=view.roles, scale=view.scale, dimensions=named, judges=columns))
    if view.shape.startswith("pairs"):
        raise InputError(view.source, ["holds comparisons; people grade single answers"])
    return checked, rows, read


def check(
    table: Any, *, map: Mapping[str, str] | None = None, scale: tuple[float, float] | str | None = None,
    dimensions: Sequence[str] | str | None = None, judges: Sequence[str] | str | None = None,
    family: Mapping[str, str] | None = None, cluster: str | None = None, cluster_order: ClusterOrder | None = None,
    without: Sequence[str] | str = (), study: Path | str | None = None, pairs: Any = None,
    out: Path | str | None = None, human: Sequence[str] | str | None = None,
    labels: Path | str | None = None
) -> Checked:  # fmt: skip
    """Read a table of scores, and decide which sentences about its agents the scores support.

    Parameters
    ----------
    table : path, Arrow, pandas, polars or duckdb frame, or list of dicts
        One row a score (item, agent, judge, score), one column a criterion or a judge, or pairs (agent_a, agent_b,
        winner); CSV, TSV, JSON, JSON lines, Parquet or Arrow. Columns are known by their names and synonyms.
    map : mapping, optional
        The column of a role where its name does not tell: ``{"agent": "model_name", "item": "question+lang"}``.
    scale : (low, high) or "1..10", optional
        Read from the scores if their values tell it.
    dimensions, judges, without : names or a comma list, optional
        Columns that are scores; columns that are judges, or the judges that count; judges that do not.
    family : mapping, optional
        Makers of judges and agents, where their names do not tell.
    cluster, cluster_order : str, optional
        The column within which answers hang together (default: the item), and whether clusters follow in time.
    study : path, optional
        A plan, or the folder where it was locked; with a lock older than the scores, claims can be headlines.
    pairs : path, frame or list of dicts, optional
        Pairs of answers that the same judges saw in both orders: position bias, and self-preference in pairs.
    out : path, optional
        Where to write the run folder and its page; nothing is written without.
    human : names or a comma list, optional
        Columns with grades of people outside the panel, who anchor its claims (default: ``human_*``). They count where
        a sample was drawn before (`assaymark draw`), or a column ``pi`` has each record's probability of being drawn
        and ``pi_by`` says who fixed it.
    labels : path, optional
        Run folder with the draw and with the grades of `assaymark label` (default: ``out``).

    Returns
    -------
    Checked
        ``claims``, ``agreement``, ``measurements``; ``save(path)``; shows itself in a notebook.

    Raises
    ------
    InputError
        Everything that is wrong with the table, with line, column, value and remedy. Nothing is written.

    Examples
    --------
    >>> rows = [{"item": q, "agent": a, "judge": j, "score": 3 + (a == "north") + (q + len(j)) % 2}
    ...         for q in range(12) for a in ("north", "south") for j in ("ann", "bob")]
    >>> result = check(rows, scale=(1, 5))
    >>> result.claims[0].claim.statement
    'north ranks first of the two agents on the overall score in the scores of these 2 judges.'
    """
    options = map, scale, judges, family, cluster, cluster_order, without, human
    if (
        isinstance(table, (str, Path))
        and not any(options)
        and pairs is None
        and Path(table).is_file()
        and is_large(Path(table))
        and set(TEXTS) <= {*pq.read_schema(Path(table)).names}
    ):
        return _check_streamed(Path(table), study, dimensions, out)
    rows = _read_rows(table)
    source = rows.name
    roles = dict(map or {}) | ({} if cluster is None else {"cluster": cluster})
    if cluster_order is not None and cluster_order not in get_args(ClusterOrder):
        problem = f"must be {' or '.join(get_args(ClusterOrder))} (got {cluster_order!r:.60})"
        raise InputError(source, [Problem("--cluster-order", problem)])
    plan, locked = _read_plan(study, source)
    if plan is not None and cluster_order not in (None, plan.inference.cluster_order):
        setting = f"the plan says {plan.inference.cluster_order or 'nothing'}"
        raise PlanError(f"{source}: {setting}; leave out --cluster-order, or change the plan (inference.cluster_order)")
    makers = {} if plan is None else {judge.name: judge.family for judge in plan.judges}
    named, bounds = _to_names(dimensions) or planned_dimensions(plan), _parse_scale(scale)
    if plan is not None and bounds not in (None, plan.scale):
        setting = f"the plan says {plan.scale[0]:g}..{plan.scale[1]:g}; leave out --scale, or change the plan"
        raise PlanError(f"{source}: {setting} (rubric.scale)")
    request = Wanted(roles=roles, scale=bounds if plan is None else plan.scale, dimensions=named,
                    judges=_to_names(judges), human=_to_names(human), family=dict(family or {}), planned=makers,
                    without=_to_names(without) or ())  # fmt: skip
    note("reading scores", 0, 1)
    read = read_scores(rows, request)
    columns = replace(
        ScoreColumns.of(read.table, source, read.dimensions, read.scale), families_known=read.families_known
    )
    note("reading scores", 1, 1)
    locked, notes, lacks = locked and not read.choices, list[str](), np.isnan(columns.scores)
    if part := int((lacks.any(axis=1) & ~lacks.all(axis=1)).sum()):
        most = np.argsort(-lacks.sum(axis=0), kind="stable").tolist()
        breakdown = abridge([f"{columns.dimensions[k]} {lacks[:, k].sum():,}" for k in most if lacks[:, k].any()])
        problem = f"{count_of(part, 'rows')} of {len(lacks):,} lack a score on some criterion and count on none"
        notes.append(f"{problem} (missing: {breakdown}); fewer criteria in --dimensions keep more rows")
    if plan is not None and not read.levels and (plan.scale != read.scale or plan.rubric.agreement in (None, "kappa")):
        needed = 'rubric.scale = [0, 1] and rubric.agreement = "icc"'
        raise PlanError(f"{source}: pairs give shares of comparisons won; the plan needs {needed}")
    if plan is not None and read.dropped:
        kept_on = tuple(judge for judge in plan.judges if judge.name not in read.dropped)
        plan = plan.model_copy(update={"judges": kept_on})
    if plan is None:
        columns, plan = _default_plan(columns, read, cluster_order, notes)
    unit, folder = "item" if "item" in read.roles else "cycle", None
    if out is not None:
        human_labels.refuse_other_cycles(RunFolder(Path(out)), human_labels.records_of_scores(read)[1])
    if labels or out:
        folder = RunFolder(Path(labels or out or ""))
        human_labels.store_labels(folder)
    people = human_labels.people_of_scores(read, folder, source)
    made = measure_columns(Path(source), columns, plan, notes, locked, unit, people)
    made = replace(made, read=_view(rows, read, columns, made))
    if pairs is not None:
        made = _add_pairs(made, pairs, family)
    if out is not None:
        made.save(out)
    return made


def _add_pairs(scored: Checked, pairs: Any, family: Mapping[str, str] | None) -> Checked:
    """Return the result with what its judges did on pairs added: both orders, and wins of their own family."""
    with watched(silent):
        checked = check(pairs, family=family)
    unknown = sorted(checked.read.orders.keys() - {judge.name for judge in scored.study.judges})
    if unknown or not checked.read.orders:
        problem = f"its judges are not those of the table: {abridge(unknown)}" if unknown else (
            "contains no pair that a judge saw in both orders (agent_a, agent_b, winner_ab, winner_ba)"
        )  # fmt: skip
        raise InputError(checked.read.source, [Problem("--pairs", problem)])
    notes = (f"pairs of {checked.read.source}: {line}" for line in (checked.read.read, *checked.read.left))
    own_family = [
        measurement
        for measurement in checked.measurements
        if measurement.name == "judge.own_family" and measurement.labels["dimension"] in checked.read.dimensions
    ]
    return replace(
        scored, measurements=(*scored.measurements, *own_family),
        read=replace(scored.read, left=(*scored.read.left, *notes), orders=checked.read.orders),
    )  # fmt: skip


REAL: Final = ("grades.parquet", "orders.parquet", "NOTICE.md")
"""The files of `assaymark demo --real`."""

ABOUT: Final = (
    "Six language models graded the answers of six others to the 80 questions of MT-Bench, in English and in Korean "
    "(kook222/mt_bench_repro, Apache-2.0). Every sentence is about these grades of these answers. This is not a "
    "ranking of today’s models, and no grades by people show whether the judges are right."
)


def check_real(out: Path) -> tuple[Checked, Path]:
    """Check the real grades that ship with the package, and write a run folder with copies of the tables."""
    source = files("assaymark.workflow") / "mt_bench_repro"
    with as_file(source) as folder:
        table = check(folder / REAL[0], map={"dimension": "language"}, study=folder / "plan.toml",
                      pairs=folder / REAL[1])  # fmt: skip
    lost = tuple(line.replace(str(folder / REAL[1]), REAL[1]) for line in table.read.left)
    raised = "judges may lack 8 % of the scores of a system, not 5 %, so that all six are kept"
    choices = (*table.read.choices, raised)
    table = replace(table, read=replace(table.read, source=str(out / REAL[0]), left=lost, about=ABOUT, choices=choices))
    page = table.save(out)
    for name in REAL:
        write_atomic(out / name, (source / name).read_bytes())
    return table, page


def _check_streamed(
    path: Path, study: Path | str | None, dimensions: Sequence[str] | str | None, out: Path | str | None,
) -> Checked:  # fmt: skip
    """Check a Parquet file of millions of rows in documented columns in chunks, of which only sums are kept."""
    plan, locked = _read_plan(study, str(path))
    checked = measure_table(path, plan, dimensions=_to_names(dimensions), planned=locked)
    checked = replace(checked, read=replace(checked.read, sha256=runs.file_sha256(path)))
    if out is not None:
        checked.save(out)
    return checked


def _read_rows(table: Any) -> FileRows:
    """Return the rows of any accepted source: a path, a frame or a list of dicts."""
    if isinstance(table, (str, Path)):
        path = Path("/dev/stdin" if str(table) == "-" else table)
        if not path.exists():
            raise runs.missing(path, "score table")
        if RunFolder(path).plan.is_file():
            raise PlanError(f"{path} is a run folder, not a table; to show it: assaymark report {path}")
        if path.is_dir() and is_large(path):
            raise PlanError(f"{path} has partitions of a large table; run: assaymark measure --judgments {path}")
        return read_rows(path)
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        columns: dict[str, pa.Array] = {}
        for name in dict.fromkeys(name for row in table for name in row):
            values = [row.get(name) for row in table]
            try:
                columns[name] = pa.array(values)
            except (pa.ArrowInvalid, pa.ArrowTypeError):  # numbers here and words there
                columns[name] = pa.array([None if value is None else str(value) for value in values])
        rows = pa.table(columns)
    elif isinstance(table, pa.Table):
        rows = table
    elif hasattr(table, "__arrow_c_stream__"):
        rows = pa.RecordBatchReader.from_stream(table).read_all()
    elif hasattr(table, "arrow"):  # a DuckDB relation
        rows = pa.table(table.arrow())
    else:
        needed = "must be a path, a frame that speaks Arrow (pandas, polars, pyarrow, duckdb) or a list of dicts"
        raise InputError("scores", [Problem("table", f"{needed} (got {type(table).__name__})")])
    return FileRows("scores", rows, np.arange(rows.num_rows) + 1, "record", "frame", (), "")


def _parse_scale(scale: tuple[float, float] | str | None) -> tuple[float, float] | None:
    """Parse a scale such as ``1..5`` into two numbers."""
    if scale is None:
        return None
    parts = scale.split("..") if isinstance(scale, str) else list(scale)
    try:
        low, high = (float(part) for part in parts)
        if not -np.inf < low < high < np.inf:
            raise ValueError
    except (ValueError, TypeError):
        needed = f"two numbers, the lower one first, as in 1..5 (got {scale!r})"
        raise InputError("scale", [Problem("--scale", needed)]) from None
    return low, high


def _to_names(option: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """Return a comma list or a list as a tuple of names; None if there are none."""
    if option is None:
        return None
    names = [name.strip() for name in option.split(",")] if isinstance(option, str) else list(option)
    return tuple(name for name in names if name) or None


def is_plan_of_scores(text: str, source: str) -> bool:
    """True if the judges of a plan score elsewhere: each model is ``elsewhere/NAME``, or the judge is a person."""
    plan = parse_study(text, source)
    elsewhere = [judge.model.startswith(ELSEWHERE) for judge in plan.judges]
    return (
        plan.substrate is None
        and any(elsewhere)
        and all(judge.human or is_ for judge, is_ in zip(plan.judges, elsewhere, strict=True))
    )


def lock_plan(folder: RunFolder, text: str, source: str, now: datetime) -> tuple[str, str]:
    """Lock a plan before scores are made elsewhere; returns its hash and the time of the lock."""
    from assaymark.workflow.lock import STUDY

    fingerprint = plan_hash(parse_study(text, source), {}, {})
    if folder.lock.is_file():
        stored = STUDY.stored(folder)
        if stored["plan_hash"] != fingerprint:
            raise PlanError(f"{source} differs from the plan locked in {folder.path}; use another --out")
        return fingerprint, str(stored["locked_at"])
    with runs.new_folder(folder.path):
        write_atomic(folder.plan, text)
        when = to_json(now)
        runs.write_lock(folder, STUDY.new_lock(fingerprint, when, tables={}, preflight={}, date_probes=[]))
    return fingerprint, str(when)


def _read_plan(study: Path | str | None, source: str) -> tuple[Study | None, bool]:
    """Return the plan of a table, and whether it was locked before the scores were made."""
    if study is None:
        return None, False
    from assaymark.workflow.lock import study_text

    path = Path(study)
    folder = RunFolder(path if path.is_dir() else path.parent)
    plan = folder.plan if path.is_dir() or path == folder.lock else path
    parsed = parse_study(study_text(plan), source=str(plan))
    if plan != folder.plan or not folder.lock.is_file():
        return parsed, False
    # Compare the lock with the file time of the scores; the plan must not have changed since.
    scores = Path(source)
    stored = runs.read_json(folder.lock, "lock")
    if stored.get(runs.PLAN_BYTES) != runs.file_sha256(folder.plan):
        raise PlanError(f"{folder.plan} is not the plan that was locked in {folder.path}; restore it")
    locked = datetime.fromisoformat(stored["locked_at"])
    return parsed, scores.is_file() and locked < datetime.fromtimestamp(scores.stat().st_mtime, UTC)


def _default_plan(
    columns: ScoreColumns, read: ScoresRead, order: ClusterOrder | None, notes: list[str]
) -> tuple[ScoreColumns, Study]:
    """Return the rows that count of a table without a plan, and its plan: protocol defaults, its judges and scale."""
    # Keep rows with a score only, if every judge lacks more scores than a plan allows: they cannot have been planned.
    planned = _coverage(columns)[1]
    if columns.usable.any() and len(score_table_of(columns).excess(MissingLimits())) == len(columns.names["judge"]):
        if lost := int(np.isnan(columns.scores).all(axis=1).sum()):
            rows = f"{count_of(lost, 'rows')} without a score"
            notes.append(f"{rows}: every judge has so many that these scores are read as not requested")
        columns = columns.only(columns.usable)
        planned = _coverage(columns)[1]
    # Agreement is Krippendorff's alpha if some judge has no row at all for some answer: the design did not ask for
    # it. Rows without a score are failed replies; they leave kappa, or the intraclass correlation, on the answers
    # that every judge scored, and so does a table of several formats, as each has a gate of its own.
    names = {columns.names["judge"][code] for code in np.unique(columns.codes["judge"]).tolist()}
    judges = {name: family for name, family in sorted(read.families.items()) if name in names}
    notes += [f"judge {name} gave no score and is left out" for name in sorted(read.families.keys() - judges.keys())]
    plan = default_study(judges, columns.names.get("derivation", ("honest",)), read.scale)
    # Shares of wins, and scores between the ends of 0..1, are not categories: kappa would round them to 0 and 1.
    between = read.scale == (0, 1) and bool(((columns.scores > 0) & (columns.scores < 1)).any())
    form = "icc" if between or not read.levels else None
    form = "alpha" if not planned.all() and len(columns.names.get("format", ())) < 2 else form
    only = {"claims": plan.claims.model_copy(update={"dimensions": (AGGREGATE,)})}  # one score is the overall score
    changes: dict[str, Any] = dict(only) if len(read.dimensions) == 1 else {}
    changes |= {"rubric": plan.rubric.model_copy(update={"agreement": form})} if form else {}
    changes |= {"inference": plan.inference.model_copy(update={"cluster_order": order})} if order else {}
    return columns, plan.model_copy(update=changes)


def _coverage(columns: ScoreColumns) -> tuple[NDArray[np.int64], Bools, Bools]:
    """Return the agent of each answer [N], and for which judges it has a row, and a score (each [N, J])."""
    codes = columns.codes
    honest = np.ones(codes["judge"].size, dtype=bool)
    if "derivation" in codes and "honest" in columns.names["derivation"]:
        honest = codes["derivation"] == columns.names["derivation"].index("honest")
    answers, first, place = np.unique(codes["trajectory"][honest], return_index=True, return_inverse=True)
    planned, scored = (np.zeros((answers.size, len(columns.names["judge"])), dtype=bool) for _ in range(2))
    judge, usable = codes["judge"][honest], columns.usable[honest]
    planned[place, judge], scored[place[usable], judge[usable]] = True, True
    return codes["agent"][honest][first], planned, scored


def _view(rows: FileRows, read: ScoresRead, columns: ScoreColumns, measured: Checked) -> TableView:
    """Return how a table was read, for the page and the terminal: its size, and what is missing or left out."""
    judges, agents, left = columns.names["judge"], columns.names["agent"], [*rows.said, *read.left]
    agent, planned, scored = _coverage(columns)
    if lost := int((~scored).sum()):
        by_agent = (np.bincount(agent, (~scored).sum(axis=1), len(agents)) /
                    np.maximum(1, np.bincount(agent, minlength=len(agents)) * len(judges)))  # fmt: skip
        words = " and by ".join(
            f"{kind}: {abridge([f'{names[k]} {percent(shares[k], 1)}' for k in np.argsort(-shares, kind='stable')])}"
            for kind, names, shares in (("judge", judges, (~scored).mean(axis=0)), ("agent", agents, by_agent))
        )
        share = percent(lost / scored.size, 1)
        left.append(f"{lost:,} of {scored.size:,} scores of answers are missing ({share}), by {words}")
    groups = {name: {name} for name in agents}
    for item in measured.measurements:
        if item.name == "contrast" and item.labels["dimension"] == AGGREGATE and item.detail["clusters"]:
            joined = groups[item.labels["high"]] | groups[item.labels["low"]]
            groups |= dict.fromkeys(joined, joined)
    alike = copied_words(RunIndex.of(measured.run))
    left += [f"judges agree on every answer; copies of one count as several: {alike}"] if alike else []
    parts = sorted({tuple(sorted(group)) for group in groups.values()}, key=lambda names: (-len(names), names))
    if len(parts) > 1:
        listed = "; ".join(abridge(part) for part in parts)
        left.append(f"no item that the same judges scored connects these parts, so they cannot be tested: {listed}")
    size = {name: len(set(columns.codes[name].tolist())) for name in ("trajectory", "agent", "cluster", "judge")}
    empty, copied = np.isnan(columns.scores), ("shape", "roles", "read", "filled", "choices", "dimensions", "scale")
    return TableView(
        source=rows.name, **{name: getattr(rows, name) for name in ("sha256", "format")},
        **{name: getattr(read, name) for name in copied}, left=(*left, *measured.read.left), answers=size["trajectory"],
        agents=size["agent"], clusters=size["cluster"], judges=size["judge"], scores=int((~empty).sum()),
        missing=int(empty.sum()) + int((~planned).sum()) * columns.scores.shape[1],
        orders={judge: dict(counts) for judge, counts in read.orders.items()},
    )  # fmt: skip
