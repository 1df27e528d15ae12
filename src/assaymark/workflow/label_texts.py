"""What people grade of a run, the draw of a sample of it, and its texts, blinded as a judge's prompt is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from assaymark.errors import InputError, Problem
from assaymark.judging import Rubric, anonymise, blinding_names, find_rubric
from assaymark.judging.prompts import people_blocks
from assaymark.metrology.columns import Columns, score_table_of
from assaymark.metrology.comparisons import Comparisons
from assaymark.plan import Human
from assaymark.prompting import cells
from assaymark.protocol import Inference
from assaymark.records import Agent
from assaymark.records import Rows as Records
from assaymark.report.label import Question, Section
from assaymark.rows import Rows
from assaymark.workflow.check import is_table, read_again, table_frame
from assaymark.workflow.human_labels import Draw, Frame, draw_sample, records_of, store_draw
from assaymark.workflow.lock import STUDY, open_locked
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import DECISIONS, Store
from assaymark.workflow.track import honest_table, select
from assaymark.workflow.tracks.season_lock import SEASON

_MATERIAL: Final = ("material", "context", "prompt", "question", "input", "passage", "task")
_ROWS: Final = ("situation", "constraints", "instruments", "holdings", "facts", "series", "actions", "stated")

Shown = list[tuple[tuple[Section, ...], dict[str, tuple[Section, ...]]]]
"""A cycle as people see it: material, and the texts that belong to it by trajectory."""

Show = Callable[[Mapping[str, Collection[str]]], Mapping[str, Shown]]
"""How cycles, each with its trajectories, are shown."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What people can grade, on which whole-number scale, the questions, how cycles are shown, and the plan's tests.

    ``names`` are those that no text shows, ``plain`` those of agents, makers and judges that blinding leaves there,
    because they are ordinary words or numbers, and ``judged`` has the scores of a run or table that was measured.
    """

    frame: Frame
    scale: tuple[int, int]
    questions: tuple[Question, ...]
    instructions: str
    names: tuple[str, ...]
    plain: tuple[str, ...]
    show: Show
    rules: Inference
    judged: Callable[[], Comparisons | None]

    def members(self) -> dict[str, list[str]]:
        """The trajectories of each cycle."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for trajectory, (cycle, _) in self.frame.records.items():
            found[cycle].append(trajectory)
        return found


def open_texts(folder: RunFolder) -> Texts:
    """The texts of a run or of imported records, or of a checked table from its text column.

    `InputError`: a season; or the table has no texts, two texts for one answer, or a scale without whole points.
    """
    if SEASON.holds(folder):
        what = f"holds a season, whose periods are graded elsewhere; first run: assaymark draw {folder.path}"
        then = f"then: assaymark import human FILE --out {folder.path}"
        raise InputError(str(folder.path), [Problem("", f"{what}, {then}")])
    return _of_table(folder) if is_table(folder) else _of_records(folder)


def _of_records(folder: RunFolder) -> Texts:
    frame, store = frame_of(folder), Store(folder)
    every, judges, keep, rules = store.read(DECISIONS), list[Agent](), tuple[str, ...](), Inference()
    rubric: Rubric = find_rubric("v1.0")
    if STUDY.holds(folder):
        locked = open_locked(folder)
        study, rubric = locked.study, locked.rubric
        judges = [
            Agent(id=judge.name, family=judge.family, model=judge.model.partition("/")[2]) for judge in study.judges
        ]
        keep, rules = study.records.keep_names, study.inference
    people = [*{one.agent.id: one.agent for one in every}.values(), *judges]
    names = blinding_names(people)
    context_of = {one.record_id: one.context_id for one in every}

    def show(cycles: Mapping[str, Collection[str]]) -> Mapping[str, Shown]:
        wanted: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for cycle, members in cycles.items():
            for one in members:
                wanted[context_of[one]][cycle].append(one)
        found: defaultdict[str, Shown] = defaultdict(list)
        for context_id, context in store.each_context():
            if context_id in wanted:
                of_context = [one for one in every if one.context_id == context_id]
                material, texts = people_blocks(of_context, context, names, keep)
                given = _sections(material)
                for cycle, members in wanted[context_id].items():
                    found[cycle].append((given, {member: _sections(texts[member]) for member in members}))
        return found

    questions = tuple(
        Question(
            dimension.name,
            dimension.title or _title(dimension.name),
            dimension.question,
            tuple(zip(dimension.at, dimension.anchors, strict=True)),
        )
        for dimension in rubric.dimensions
    )

    def judged() -> Comparisons | None:
        return Comparisons.of_table(honest_table(store, locked), locked.study) if STUDY.holds(folder) else None

    return Texts(
        frame, rubric.scale, questions, rubric.instructions or "", names, _plain(people, names), show, rules, judged
    )


def _sections(blocks: Iterable[tuple[str, str]]) -> tuple[Section, ...]:
    """The headed parts of a prompt as people read them: rows below a head become tables."""
    found: list[Section] = []
    for label, text in blocks:
        if label not in _ROWS:
            found.append((_title(label), text))
            continue
        groups: list[tuple[str, list[tuple[str, ...]]]] = []
        for row in (tuple(cells(line)) for line in text.split("\n")):
            if row[0] in ("table", "bars") and label in ("facts", "series", "stated"):
                groups.append((f"{_title(label)}: {', '.join(filter(None, row[2:]))}", []))
            elif groups and (not groups[-1][1] or len(groups[-1][1][0]) == len(row)):
                groups[-1][1].append(row)
            else:
                groups.append((_title(label), [row]))
        for title, rows in groups:
            pairs = label == "situation" or len(rows) < 2 or rows[0][0] == "value"
            lines = "\n".join(": ".join(row[row[0] == "value" :]) for row in rows)
            found.append((title, lines if pairs else tuple(rows)))
    return tuple(found)


def _plain(people: Iterable[Agent], names: Sequence[str]) -> tuple[str, ...]:
    """Names that blinding leaves in texts."""
    every = {name for person in people for name in (person.id, person.family) if name}
    return tuple(sorted(name for name in every if anonymise(name, names).text == name))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _of_table(folder: RunFolder) -> Texts:
    frame = frame_of(folder)
    held, rows, read = read_again(folder)
    source, low, high = held.read.source, round(frame.scale[0]), round(frame.scale[1])
    if "text" not in read.roles:
        what = "no column holds the texts of single answers (text, response, answer, output, completion are known)"
        remedy = f"name it with: assaymark check {source} --map text=COLUMN --out {folder.path}"
        elsewhere = f"or draw the sample with: assaymark draw {source} --out {folder.path}, and grade elsewhere"
        raise InputError(source, [Problem("header", f"{what}; {remedy}, {elsewhere}")])
    if (low, high) != frame.scale:
        what = f"people grade in whole points (got {frame.scale[0]:g}..{frame.scale[1]:g})"
        raise InputError(source, [Problem("scale", what)])
    table = read.table.to_pydict()
    given = _material(rows, read.roles, read.row)
    found: dict[str, tuple[str, str]] = {}
    problems = []
    for k, text in enumerate(_cells(rows, read.roles["text"], read.row)):
        name = table["trajectory"][k]
        earlier = found.get(name, ("", ""))[0]
        if text and earlier and text != earlier:
            place = rows.where(int(read.row[k]))
            problems.append(Problem(place, f"another text for {name!r:.80} than in a row before"))
        if not earlier:
            found[name] = (text, given[k])
    if problems:
        raise InputError(source, problems)
    makers = sorted({*zip(table["agent"], table.get("agent_family", table["agent"]), strict=True)})
    people = [Agent(id=name, family=maker) for name, maker in (*makers, *read.families.items())]
    names = blinding_names(people)

    def show(cycles: Mapping[str, Collection[str]]) -> Mapping[str, Shown]:
        shown: dict[str, Shown] = {}
        for cycle, members in cycles.items():
            groups: defaultdict[str, dict[str, tuple[Section, ...]]] = defaultdict(dict)
            for name in members:
                text, material = found[name]
                groups[material][name] = (("", anonymise(text, names).text or "(no text)"),)
            shown[cycle] = [
                ((("", anonymise(material, names).text),) if material else (), texts)
                for material, texts in groups.items()
            ]
        return shown

    hint = f"{low} is the lowest grade, {high} the highest." if high - low > 1 else ""
    titles = zip(frame.dimensions, read.dimensions, strict=True)
    questions = tuple(Question(name, _title(title), hint) for name, title in titles)

    def judged() -> Comparisons:
        columns = Columns.of(read.table, source, read.dimensions, read.scale)
        return Comparisons.of_table(score_table_of(columns, held.study.rubric.weights), held.study)

    return Texts(frame, (low, high), questions, "", names, _plain(people, names), show, held.study.inference, judged)


def _cells(rows: Rows, column: str, row: Any) -> list[str]:
    """A column as text, at some rows."""
    values = rows.column(column).to_pylist()
    return ["" if values[k] is None else str(values[k]) for k in row.tolist()]


def _material(rows: Rows, roles: Mapping[str, str], row: Any) -> list[str]:
    """What the answers are to: a column of that name; one that names the items only if it holds sentences."""
    taken = {part for role, column in roles.items() if role != "item" for part in column.split("+")}
    for name in _MATERIAL:
        for column in rows.table.column_names:
            if column.strip().lower() == name and column not in taken:
                values = _cells(rows, column, row)
                if any(" " in text for text in values):
                    return values
    return [""] * len(row)


def frame_of(folder: RunFolder, rubric: str = "v1.0") -> Frame:
    """What people can grade of a run, of imported records (by ``rubric``), of a judged season, or of a table."""
    if is_table(folder):
        return table_frame(folder)
    folder.require()
    if SEASON.holds(folder):
        from assaymark.workflow.tracks.season_judge import judged_frame  # which reads grades of people

        return judged_frame(folder)
    if folder.lock.is_file() and not STUDY.holds(folder):
        what = "holds a benchmark, whose questions have answers: people's grades anchor studies, seasons and tables"
        raise InputError(str(folder.path), [Problem("", what)])
    decisions, study = Store(folder).read(DECISIONS), None
    asked = find_rubric(rubric)
    if STUDY.holds(folder):
        locked = open_locked(folder)
        study, asked, decisions = locked.study, locked.rubric, Records(select(decisions, locked.study).decisions)
    human, seed = (Human(), 0) if study is None else (study.human, study.seed)
    return Frame(*records_of(decisions), asked.names, asked.scale, seed, human)


def draw(
    folder: RunFolder, number: int | None, now: datetime, seed: int | None = None, *, twice: float | None = None
) -> Draw:
    """Draw cycles of a run or a checked table for people to grade, and store which; the plan says what is not given.

    Raises as `draw_sample` and `store_draw`; `InputError`: people's grades are in the table already.
    """
    frame = frame_of(folder)
    if frame.graded:
        what = "people's grades are in the table already; a sample is drawn before the first grade"
        raise InputError(str(folder.path), [Problem("human", what)])
    sizes = Counter(cycle for cycle, _ in frame.records.values())
    made = draw_sample(
        frame.clusters, min(frame.plan.sample, len(frame.clusters)) if number is None else number,
        seed=frame.seed if seed is None else seed, twice=frame.plan.double if twice is None else twice,
        agents_a_cycle=min(sizes.values(), default=0), at=now.isoformat().replace("+00:00", "Z"),
    )  # fmt: skip
    return store_draw(folder, made)


def draw_lines(folder: RunFolder, made: Draw) -> list[str]:
    """What `assaymark draw` prints."""
    clusters = len({made.strata[name] for name in made.units})
    drew = f"drew {len(made.units)} of {len(made.frame)} cycles in {clusters} clusters (seed {made.seed}, {made.at})"
    elsewhere, label = f"assaymark import human FILE --out {folder.path}", f"assaymark label {folder.path}; "
    then = f"{label}grades from elsewhere: {elsewhere}"
    if SEASON.holds(folder):
        then = f"{elsewhere}, with AGENT/PERIOD as trajectory, aggregate as dimension and grades from 0 to 100"
    return [
        f"{drew}; each had the probability {made.pi[made.frame[0]]:.3g}",
        f"{len(made.twice)} of them are graded by two people: {', '.join(made.twice)}",
        f"cycles: {', '.join(made.units)}",
        f"then: {then}",
    ]
