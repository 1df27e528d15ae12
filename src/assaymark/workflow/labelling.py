"""Labelling by people: the draw of a run, its texts blinded as for a judge, sheets for graders, and their labels."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, Final

from assaymark.errors import InputError, PlanError, Problem, UnknownNameError
from assaymark.importers.scores import ScoresRead
from assaymark.judging import anonymise, blinding_names, find_rubric
from assaymark.judging.prompts import people_blocks
from assaymark.metrology.columns import ScoreColumns, score_table_of
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.measure_people import DifferenceSpread, most_needed, needed_labels
from assaymark.plan import Human
from assaymark.prompting import cells
from assaymark.protocol import Inference
from assaymark.records import AGGREGATE, JSON, Agent, canonical_json, content_id, grouped, sha256_text
from assaymark.records import Rows as Records
from assaymark.report.label import LabelCycle, LabelScale, LabelSection, LabelSheet, LabelText
from assaymark.report.text import moment as when
from assaymark.rows import FileRows, read
from assaymark.workflow import human_labels
from assaymark.workflow.check import reread_table
from assaymark.workflow.human_labels import Draw, GradingSheets, SamplingFrame
from assaymark.workflow.lock import STUDY, open_locked, select
from assaymark.workflow.run_folder import RunFolder, missing, write_json
from assaymark.workflow.score_files import Checked
from assaymark.workflow.study_calls import Scores
from assaymark.workflow.tables import DECISIONS, MEASUREMENTS, Store
from assaymark.workflow.tracks.season_lock import SEASON

FIELDS: Final = ("run", "id", "grader", "dimension", "grade", "at", "seconds", "comment")
"""The columns of a file of labels."""

CANNOT_SAY: Final = "cannot say"
"""The grade of a person who cannot say."""

LONGEST_COMMENT: Final = 4000
"""Maximum characters of a comment."""

_GRADER: Final = re.compile(r"[A-Za-z0-9]{1,8}")
_GRADE: Final = re.compile(r"-?[0-9]{1,6}", re.ASCII)
_PLAIN: Final = re.compile(r"^'(?=[=+@\t\r-])")  # quote before a cell that a spreadsheet would take for a formula
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]+)?", re.ASCII)

# --- sheets of texts for each grader ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Labelling:
    """The labelling of one run: its draw, the sheets, and labels, each written to disk at once."""

    folder: RunFolder
    texts: Texts
    draw: Draw
    sheets: GradingSheets
    late: int = 0  # grades left by a server that was killed
    _shown: dict[str, ShownCycle] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions that are graded."""
        return tuple(question.name for question in self.texts.questions)

    def ids_of(self, grader: str) -> list[str]:
        """Return the ids of the texts that one person grades."""
        cycles = set(self.sheets.cycles[grader])
        return [name for name, (cycle, _) in self.sheets.ids.items() if cycle in cycles]

    def sheet(self, grader: str) -> LabelSheet:
        """Return the texts of one person, in a random order that keeps the texts of a cycle together."""
        with self._lock:
            if not self._shown:
                members = self.texts.members()
                self._shown.update(self.texts.show({cycle: members[cycle] for cycle in self.draw.units}))
        sheets, order = self.sheets, Random(f"{self.sheets.key}/{grader}")
        id_of = {trajectory: name for name, (_, trajectory) in sheets.ids.items()}
        units = []
        for cycle in sheets.cycles[grader]:
            groups = list[LabelCycle]()
            for material, texts in self._shown[cycle]:
                labels = [LabelText(id_of[member], sections) for member, sections in texts.items()]
                order.shuffle(labels)
                groups.append((material, tuple(labels)))
            order.shuffle(groups)
            units.append(groups)
        for name, gold in sheets.gold.items():
            text = LabelText(name, (("", gold.text),), gold.answers)
            units.append([((("", gold.material),) if gold.material else (), (text,))])
        order.shuffle(units)
        cycles = tuple(group for groups in units for group in groups)
        shown = self.texts
        return LabelSheet(sheets.run, grader, shown.scale, shown.questions, shown.instructions, sheets.salt, cycles)

    def labels(self, grader: str) -> dict[str, dict[str, JSON]]:
        """Return the current labels of one person by id."""
        return human_labels.current_labels(self.folder, self.sheets, grader)

    def add(self, grader: str, *labels: Mapping[str, JSON]) -> None:
        """Append labels, each with its ``id``, to the person's file; they are on disk when this returns."""
        path = human_labels.label_log(self.folder, grader)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, path.open("ab") as handle:
            # The leading newline separates them from a line that was cut off.
            lines = "".join(f"\n{canonical_json(label)}" for label in labels) + "\n"
            handle.write(lines.encode("utf-8", "replace"))
            handle.flush()
            os.fsync(handle.fileno())

    def label_problem(self, grader: str, label: Any) -> str | None:
        """Return the problem with a label sent by a page; None if it is valid."""
        low, high = self.texts.scale
        if not isinstance(label, dict) or not isinstance(label.get("scores"), dict):
            return "is no label"
        name = label.get("id")
        if not isinstance(name, str) or not (name in self.sheets.gold or name in self.ids_of(grader)):
            return f"no text of {grader} has this id"
        for dimension, score in label["scores"].items():
            valid = isinstance(score, int) and not isinstance(score, bool) and low <= score <= high
            if dimension not in self.dimensions or not (score is None or valid):
                return f"{dimension:.40} must be a dimension, and its grade {low} to {high} or null (got {score!r:.20})"
        seconds, comment = label.get("seconds", 0), label.get("comment", "")
        if not isinstance(comment, str) or len(comment) > LONGEST_COMMENT:
            return f"a comment is text of at most {LONGEST_COMMENT} characters"
        timed = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < 1e9
        return None if timed else "seconds must be a number from 0"

    def mark_handed_out(self) -> None:
        """Record that files were given to graders: the sheets cannot change any more."""
        self.sheets = replace(self.sheets, handed=True)
        write_json(self.folder.labels / human_labels.SHEETS, self.sheets)

    def progress(self) -> dict[str, JSON]:
        """Return the progress of each person, and facts of the draw, as JSON."""
        graders = {}
        for grader in self.sheets.graders:
            labels, ids, dimensions = self.labels(grader), self.ids_of(grader), set(self.dimensions)
            graded = sum(dimensions <= labels[name]["scores"].keys() for name in ids if name in labels)
            graders[grader] = {"texts": len(ids), "graded": graded, "missing": len(ids) - graded}
            if self.sheets.gold:
                scores = {name: labels.get(name, {"scores": {}})["scores"] for name in self.sheets.gold}
                right = [
                    answer == _grade_hash(self.sheets.salt, name, dimension, scores[name].get(dimension))
                    for name, text in self.sheets.gold.items() for dimension, answer in text.answers.items()
                ]  # fmt: skip
                graders[grader] |= {"gold_right": sum(right), "gold": len(right)}
        once = () if len(self.sheets.graders) > 1 else self.draw.twice
        return {"cycles": len(self.draw.units), "of": len(self.draw.frame), "twice": len(self.draw.twice),
                "drawn": self.draw.at, "seed": self.draw.seed, "graders": graders,
                "without_second": len(once), "taken_over": self.late, "not_hidden": list(self.texts.plain)}  # fmt: skip


def _grade_hash(salt: str, name: str, dimension: str, score: JSON) -> str:
    """Return the hash of a grade; the script of the page computes the same."""
    return sha256_text("|".join((salt, name, dimension, "null" if score is None else f"{score:g}")))


def open_labelling(
    folder: RunFolder, number: int | None = None, graders: Sequence[str] | None = None, gold: Path | None = None,
    seed: int | None = None, *, now: datetime,
) -> Labelling:  # fmt: skip
    """Open the labelling of a run: its stored draw or a new one, with texts assigned to the graders."""
    if SEASON.holds(folder):
        problem = f"contains a season, whose periods are graded elsewhere; first run: assaymark draw {folder.path}"
        then = f"then: assaymark import human FILE --out {folder.path}"
        raise InputError(str(folder.path), [f"{problem}, {then}"])
    texts, draw = (_table_texts if folder.check.is_file() else _record_texts)(folder), human_labels.stored_draw(folder)
    sheets, late = human_labels.stored_sheets(folder), human_labels.store_labels(folder)  # grades left by a kill
    human_labels.refuse_other_cycles(folder, texts.frame.clusters)
    if draw is not None and dict(draw.strata) != dict(texts.frame.clusters):
        draw = sheets = None
    changed = draw is not None and (number not in (None, len(draw.units)) or seed not in (None, draw.seed))
    if changed and sheets is not None and sheets.handed:
        raise PlanError(f"{folder.path}: files of the stored draw were written; leave out --sample and --seed")
    if draw is None or changed:
        size = len(draw.units) if draw is not None and number is None else number
        seed = draw.seed if draw is not None and seed is None else seed
        draw = draw_cycles(folder, size, now, seed, frame=texts.frame)
    if sheets is not None and sheets.draw != content_id(draw):
        sheets = None
    if sheets is not None and graders is None and gold is None:
        return Labelling(folder, texts, draw, sheets, late)
    # Assign texts anew, unless the stored sheets have the same graders and gold texts.
    names = tuple(graders or (sheets.graders if sheets else ("1",)))
    wrong = [name for name in names if not _GRADER.fullmatch(name)]
    twice = [name for name, times in Counter(map(str.lower, names)).items() if times > 1]
    problems = [Problem(name, "a grader is initials or a number: 1 to 8 letters or digits") for name in wrong]
    problems += [Problem(name, "named twice") for name in twice]
    if problems:
        raise InputError("--graders", problems)
    if sheets is not None:
        labelling = Labelling(folder, texts, draw, sheets, late)
        if sheets.handed or any(map(labelling.labels, sheets.graders)):
            if names != sheets.graders or gold is not None:
                raise PlanError(
                    f"{folder.path}: graders ({', '.join(sheets.graders)}) and known answers are fixed, because "
                    f"{'files were written' if sheets.handed else 'labels were given'}; leave out --graders and --gold"
                )
            return labelling
    # Each cycle goes to one grader, or to two if it is graded twice, as evenly as possible.
    dealt: dict[str, list[str]] = {grader: [] for grader in names}
    for cycle in draw.units:
        for one in sorted(names, key=lambda grader: len(dealt[grader]))[: 2 if cycle in draw.twice else 1]:
            dealt[one].append(cycle)
    salt, members = secrets.token_hex(8), texts.members()
    ids = [(cycle, trajectory) for cycle in draw.units for trajectory in members[cycle]]
    sheets = GradingSheets(
        content_id(draw), secrets.token_hex(6), secrets.token_hex(16), salt, names,
        cycles={grader: tuple(cycles) for grader, cycles in dealt.items()},
        ids=dict(sorted((secrets.token_hex(6), pair) for pair in ids)),
        gold=_read_gold(gold, texts, salt) if gold else sheets.gold if sheets else {},
    )  # fmt: skip
    write_json(folder.labels / human_labels.SHEETS, sheets)
    return Labelling(folder, texts, draw, sheets, late)


def _read_gold(path: Path, texts: Texts, salt: str) -> dict[str, human_labels.GoldText]:
    """Read texts with known grades from a table: ``text``, optional ``material``, and a column for each dimension."""
    if not path.exists():
        raise missing(path, "table of known answers")
    rows, (low, high) = read(path), texts.scale
    header = rows.table.column_names
    columns = {one.name if one.name in header else one.title.lower(): one.name for one in texts.questions}
    problems = [
        Problem("header", f"column {title!r} is no dimension ({', '.join(columns)}), and not text or material")
        for title in header if title not in ("text", "material", *columns)
    ]  # fmt: skip
    if "text" not in header:
        problems.append(Problem("header", "no column 'text'"))
    gold = {}
    for k, row in enumerate(rows.table.to_pylist()):
        name, answers, before = secrets.token_hex(6), {}, len(problems)
        for column, dimension in columns.items():
            cell = str(row.get(column) if row.get(column) is not None else "")
            if cell and not (_GRADE.fullmatch(cell) and low <= int(cell) <= high):
                problems.append(Problem(f"{rows.where(k)}, {column}", _off_scale(texts.scale, cell)))
            elif cell:
                answers[dimension] = _grade_hash(salt, name, dimension, int(cell))
        if len(problems) == before and not (answers and row.get("text")):
            problems.append(Problem(rows.where(k), "needs a text and at least one known grade"))
        text, material = (anonymise(str(row.get(name) or ""), texts.names).text for name in ("text", "material"))
        gold[name] = human_labels.GoldText(text, material, answers)
    if problems:
        raise InputError(str(path), problems)
    return gold


def _off_scale(scale: tuple[int, int], cell: str) -> str:
    needed = f"must be a whole number from {scale[0]} to {scale[1]} in ASCII digits, or {CANNOT_SAY!r}"
    return f"{needed} (got {cell!r:.40})"


# --- labels that graders send back ------------------------------------------------------------------------------------


def read_labels(labelling: Labelling, files: Sequence[Path]) -> int:
    """Store the labels in files; returns the number of new grades. Reading the same file again changes nothing."""
    problems: list[Problem] = []
    sheets, first = labelling.sheets, human_labels.zoned_time(labelling.draw.at)
    by_grader = {grader: labelling.labels(grader) for grader in sheets.graders}
    own_ids = {grader: {*labelling.ids_of(grader), *sheets.gold} for grader in sheets.graders}
    entries = {
        (grader, name, dimension): (score, "before")
        for grader, labels in by_grader.items() for name, label in labels.items()
        for dimension, score in label["scores"].items()
    }  # fmt: skip
    new: dict[tuple[str, str], dict[str, JSON]] = {}
    for path in files:
        try:
            rows = read(path, str(path))
        except InputError as exc:
            problems += [Problem(f"{path}", str(problem)) for problem in exc.problems]
            continue
        header = tuple(rows.table.column_names)
        if header != FIELDS:
            text = f"must be {','.join(FIELDS)} (got {','.join(header)[:120]}); download the file again"
            problems.append(Problem(f"{path}, header", text))
            continue
        of_other = [k for k, run in enumerate(rows.table.column("run").to_pylist()) if run != sheets.run]
        if of_other:
            text = f"of another draw or run, {len(of_other)} in all (this one is {sheets.run})"
            problems.append(Problem(f"{path} {rows.where(of_other[0])}, run", text))
        for k, row in enumerate(rows.table.to_pylist()):
            if k in of_other:
                continue
            source = f"{path} {rows.where(k)}"
            cells = {name: str(value if value is not None else "") for name, value in row.items()}
            wrong = list(_row_problems(labelling, cells, own_ids, first))
            problems += [Problem(f"{source}, {column}", problem) for column, problem in wrong]
            if wrong:
                continue
            grader, name, dimension = cells["grader"], cells["id"], cells["dimension"]
            score = None if cells["grade"] == CANNOT_SAY else int(cells["grade"])
            other, place = entries.setdefault((grader, name, dimension), (score, source))
            if other != score:
                pair = [CANNOT_SAY if value is None else str(value) for value in (score, other)]
                text = f"{grader} grades {name} on {dimension} {pair[0]}, and {pair[1]} {place}; keep one"
                problems.append(Problem(f"{source}, grade", text))
            elif place == source:
                label = new.setdefault((grader, name), {"id": name, "scores": {}})
                label["scores"][dimension] = score
                comment = _PLAIN.sub("", cells["comment"])
                label |= {"at": cells["at"], "seconds": float(cells["seconds"] or 0), "comment": comment}
    if problems:
        raise InputError("labels", problems)
    for (grader, name), label in new.items():
        earlier = by_grader[grader].get(name, {"scores": {}})["scores"]
        labelling.add(grader, {**label, "scores": {**earlier, **label["scores"]}})
    return human_labels.store_labels(labelling.folder)


def _row_problems(
    labelling: Labelling, row: Mapping[str, str], own_ids: Mapping[str, Collection[str]], drawn: datetime | None
) -> Iterator[tuple[str, str]]:
    """Yield each problem of a row with its column; ``own_ids`` are the ids of each grader's texts."""
    sheets, (low, high) = labelling.sheets, labelling.texts.scale
    if row["grader"] not in sheets.graders:
        yield "grader", f"{row['grader']!r:.20} is not a grader of this draw ({', '.join(sheets.graders)})"
    elif row["id"] not in own_ids[row["grader"]]:
        yield "id", f"no text of {row['grader']} has the id {row['id']!r:.40}"
    if row["dimension"] not in labelling.dimensions:
        yield "dimension", str(UnknownNameError("dimension", row["dimension"][:40], labelling.dimensions))
    grade = row["grade"]
    if grade != CANNOT_SAY and not (_GRADE.fullmatch(grade) and low <= int(grade) <= high):
        yield "grade", _off_scale(labelling.texts.scale, grade)
    when = human_labels.zoned_time(row["at"])
    if when is None:
        yield "at", f"must be a time with its zone, such as 2026-03-01T12:00:00Z (got {row['at']!r:.40})"
    elif drawn is not None and when <= drawn:
        yield (
            "at",
            f"is not later than the draw of {labelling.draw.at} (got {row['at']}); set the clock of that machine right",
        )
    if row["seconds"] and not _SECONDS.fullmatch(row["seconds"]):
        yield "seconds", f"must be a number from 0 (got {row['seconds']!r:.40})"
    if len(row["comment"]) > LONGEST_COMMENT:
        yield "comment", f"must have at most {LONGEST_COMMENT} characters (got {len(row['comment'])})"


# --- number of labels needed ------------------------------------------------------------------------------------------


def labels_needed(labelling: Labelling) -> list[dict[str, JSON]]:
    """Return the labelled cycles needed for two differences: the plan's margin, and the largest one of the judges."""
    draw, rules, store = labelling.draw, labelling.texts.rules, Store(labelling.folder)
    low, high = labelling.texts.scale
    measured = store.stored(MEASUREMENTS)
    effects = [(abs(item.value), (item.labels["high"], item.labels["low"])) for item in measured
            if item.name == "contrast" and item.labels["dimension"] == AGGREGATE and item.value]  # fmt: skip
    comparisons = labelling.texts.judged() if effects else None
    targets = [(rules.margin * (high - low), list(combinations(() if comparisons is None else comparisons.agents, 2)))]
    targets += [(effect, [pair]) for effect, pair in (max(effects),)] if effects else []
    plan = {"alpha": rules.alpha, "power": rules.mde_power}
    guess = DifferenceSpread(rules.mde_sd, len(draw.frame), len(set(draw.strata.values())))
    rows: list[dict[str, JSON]] = []
    for effect, pairs in targets:
        cycles, spread = (needed_labels(effect, guess, **plan), guess) if comparisons is None else most_needed(
            comparisons, 0, pairs, effect, measured, **plan
        )  # fmt: skip
        if spread is not None:
            basis = "plan" if comparisons is None else "judges" if spread.assumed else "people"
            rows.append({"effect": effect, "sd": spread.sd, "sd_from": basis, "correlation": spread.r,
                         "power": rules.mde_power, "assumed": spread.assumed, "cycles": cycles})  # fmt: skip
    return rows


def labelling_lines(labelling: Labelling) -> Iterator[str]:
    """Yield lines on the progress of the labelling for the terminal."""
    progress = labelling.progress()
    yield (
        f"drawn {when(progress['drawn'])}: {progress['cycles']} of {progress['of']} cycles (seed {progress['seed']}), "
        f"{progress['twice']} to be graded by two people"
    )
    for row in labels_needed(labelling):
        enough = f"more than the {progress['of']} cycles that there are, or more clusters"
        sources = {
            "judges": "assumed: judges' spread", "plan": "assumed: spread of the plan", "people": "people's spread",
        }  # fmt: skip
        yield (
            f"a difference of {row['effect']:.2f} points needs "
            f"{enough if row['cycles'] is None else '{} labelled cycles'.format(row['cycles'])} "
            f"({sources[row['sd_from']]} {row['sd']:.2f}, correlation of people and judges {row['correlation']:.2g})"
        )
    for name, counts in progress["graders"].items():
        gold = f"; {counts['gold_right']} of {counts['gold']} known answers right" if "gold" in counts else ""
        missing = f"{counts['missing']} missing" if counts["missing"] else "complete"
        yield f"{name}: {counts['graded']} of {counts['texts']} texts graded, {missing}{gold}"
    if progress["not_hidden"]:
        shown = ", ".join(f"{name:.40}" for name in progress["not_hidden"])
        yield f"texts may show these names, because they are ordinary words or numbers: {shown}"
    if progress["taken_over"]:
        yield f"{progress['taken_over']} grades that a stopped server had left are stored now"
    if progress["without_second"]:
        yield f"{progress['without_second']} cycles lack a second grader: name two or more with --graders ab,cd"


_MATERIAL: Final = ("material", "context", "prompt", "question", "input", "passage", "task")
_ROWS: Final = ("situation", "constraints", "instruments", "holdings", "facts", "series", "actions", "stated")

ShownCycle = list[tuple[tuple[LabelSection, ...], dict[str, tuple[LabelSection, ...]]]]
"""A cycle as people see it: the material of each context, and its texts by trajectory."""

Renderer = Callable[[Mapping[str, Collection[str]]], Mapping[str, ShownCycle]]
"""A function that renders cycles, each with its trajectories."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts that people can grade, with scale, questions, instructions, a renderer, and the plan's test rules."""

    frame: SamplingFrame
    scale: tuple[int, int]
    questions: tuple[LabelScale, ...]
    instructions: str
    names: tuple[str, ...]  # names that blinding removes from every text
    plain: tuple[str, ...]  # names that blinding keeps, because they are ordinary words or numbers
    show: Renderer
    rules: Inference
    judged: Callable[[], Comparisons | None]  # returns the judges' scores; None if there are none

    def members(self) -> dict[str, list[str]]:
        """Return the trajectories of each cycle."""
        return grouped(self.frame.records, lambda trajectory: self.frame.records[trajectory][0])


def _record_texts(folder: RunFolder) -> Texts:
    frame, store = frame_of(folder), Store(folder)
    locked, decisions = open_locked(folder) if STUDY.holds(folder) else None, store.read(DECISIONS)
    people = [*{decision.agent.id: decision.agent for decision in decisions}.values()]
    rubric, keep, rules = find_rubric("v1.0"), tuple[str, ...](), Inference()
    if locked is not None:
        judges, keep, rules = locked.study.judges, locked.study.records.keep_names, locked.study.inference
        people += (Agent(judge.name, judge.family, judge.model.partition("/")[2]) for judge in judges)
        rubric = locked.rubric
    names = blinding_names(people)
    context_of = {decision.record_id: decision.context_id for decision in decisions}

    def show(cycles: Mapping[str, Collection[str]]) -> Mapping[str, ShownCycle]:
        by_context: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for cycle, members in cycles.items():
            for member in members:
                by_context[context_of[member]][cycle].append(member)
        by_cycle: defaultdict[str, ShownCycle] = defaultdict(list)
        for context_id, context in store.each_context(by_context):
            of_context = [decision for decision in decisions if decision.context_id == context_id]
            material, texts = people_blocks(of_context, context, names, keep)
            sections = _sections(material)
            for cycle, members in by_context[context_id].items():
                by_cycle[cycle].append((sections, {member: _sections(texts[member]) for member in members}))
        return by_cycle

    questions = tuple(
        LabelScale(one.name, one.title or _title(one.name), one.question, tuple(zip(one.at, one.anchors, strict=True)))
        for one in rubric.dimensions
    )

    def judged() -> Comparisons | None:
        return None if locked is None else Comparisons.of_table(Scores.of(store, locked).honest, locked.study)

    asked = rubric.scale, questions, rubric.instructions or ""
    return Texts(frame, *asked, names, _plain(people, names), show, rules, judged)


def _sections(blocks: Iterable[tuple[str, str]]) -> tuple[LabelSection, ...]:
    """Return the headed parts of a prompt for people to read: rows below a heading become a table."""
    sections: list[LabelSection] = []
    for label, text in blocks:
        if label not in _ROWS:
            sections.append((_title(label), text))
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
            sections.append((title, lines if pairs else tuple(rows)))
    return tuple(sections)


def _plain(people: Iterable[Agent], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that blinding leaves in texts."""
    all_names = {name for person in people for name in (person.id, person.family) if name}
    return tuple(sorted(name for name in all_names if anonymise(name, names).text == name))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _table_texts(folder: RunFolder) -> Texts:
    checked, rows, read = reread_table(folder)
    frame = _table_frame(checked, read)
    source, low, high = checked.read.source, round(frame.scale[0]), round(frame.scale[1])
    if "text" not in read.roles:
        problem = "no column holds the texts of single answers (text, response, answer, output, completion are known)"
        remedy = f"name it with: assaymark check {source} --map text=COLUMN --out {folder.path}"
        elsewhere = f"or draw the sample with: assaymark draw {source} --out {folder.path}, and grade elsewhere"
        raise InputError(source, [Problem("header", f"{problem}; {remedy}, {elsewhere}")])
    if (low, high) != frame.scale:
        problem = f"people grade in whole points (got {frame.scale[0]:g}..{frame.scale[1]:g})"
        raise InputError(source, [Problem("scale", problem)])
    table = read.table.to_pydict()
    # Show a column with a name of `_MATERIAL`, such as the prompt, unless it has a role or holds no sentences.
    used = {part for role, column in read.roles.items() if role != "item" for part in column.split("+")}
    candidates = [column for name in _MATERIAL for column in rows.table.column_names if column.strip().lower() == name]
    columns = (_column_texts(rows, column, read.row) for column in candidates if column not in used)
    contexts = next((values for values in columns if any(" " in text for text in values)), [""] * len(read.row))
    texts: dict[str, tuple[str, str]] = {}
    problems = []
    for k, text in enumerate(_column_texts(rows, read.roles["text"], read.row)):
        name = table["trajectory"][k]
        earlier = texts.get(name, ("", ""))[0]
        if text and earlier and text != earlier:
            place = rows.where(int(read.row[k]))
            problems.append(Problem(place, f"another text for {name!r:.80} than in a row before"))
        if not earlier:
            texts[name] = (text, contexts[k])
    if problems:
        raise InputError(source, problems)
    makers = sorted({*zip(table["agent"], table.get("agent_family", table["agent"]), strict=True)})
    people = [Agent(id=name, family=maker) for name, maker in (*makers, *read.families.items())]
    names = blinding_names(people)

    def show(cycles: Mapping[str, Collection[str]]) -> Mapping[str, ShownCycle]:
        shown: dict[str, ShownCycle] = {}
        for cycle, members in cycles.items():
            groups: defaultdict[str, dict[str, tuple[LabelSection, ...]]] = defaultdict(dict)
            for name in members:
                text, material = texts[name]
                groups[material][name] = (("", anonymise(text, names).text or "(no text)"),)
            shown[cycle] = [
                ((("", anonymise(material, names).text),) if material else (), texts)
                for material, texts in groups.items()
            ]
        return shown

    hint = f"{low} is the lowest grade, {high} the highest." if high - low > 1 else ""
    titles = zip(frame.dimensions, read.dimensions, strict=True)
    questions = tuple(LabelScale(name, _title(title), hint) for name, title in titles)

    def judged() -> Comparisons:
        columns = ScoreColumns.of(read.table, source, read.dimensions, read.scale)
        return Comparisons.of_table(score_table_of(columns, checked.study.rubric.weights), checked.study)

    return Texts(frame, (low, high), questions, "", names, _plain(people, names), show, checked.study.inference, judged)


def _column_texts(rows: FileRows, column: str, row: Any) -> list[str]:
    """Return a column as text, at the given rows."""
    values = rows.column(column).to_pylist()
    return ["" if values[k] is None else str(values[k]) for k in row.tolist()]


def _table_frame(checked: Checked, read: ScoresRead) -> SamplingFrame:
    """Return the records of a checked table that people can grade."""
    names, plan = tuple(read.dimensions) if len(read.dimensions) > 1 else (AGGREGATE,), checked.study
    graded = bool(read.people)
    return SamplingFrame(*human_labels.records_of_scores(read), names, read.scale, plan.seed, plan.human, graded)


def frame_of(folder: RunFolder, rubric: str = "v1.0") -> SamplingFrame:
    """Return the records that people can grade: of a run, an import (by ``rubric``), a judged season or a table."""
    if folder.check.is_file():
        checked, _, read = reread_table(folder)
        return _table_frame(checked, read)
    folder.require()
    if SEASON.holds(folder):
        from assaymark.workflow.tracks.season_judge import judged_frame  # needs grades of people itself

        return judged_frame(folder)
    if folder.lock.is_file() and not STUDY.holds(folder):
        problem = "contains a benchmark, whose questions have answers; people grade studies, seasons and tables"
        raise InputError(str(folder.path), [problem])
    decisions, study = Store(folder).read(DECISIONS), None
    criteria = find_rubric(rubric)
    if STUDY.holds(folder):
        locked = open_locked(folder)
        study, criteria, decisions = locked.study, locked.rubric, Records(select(decisions, locked.study).decisions)
    human, seed = (Human(), 0) if study is None else (study.human, study.seed)
    return SamplingFrame(*human_labels.honest_records(decisions), criteria.names, criteria.scale, seed, human)


def draw_cycles(
    folder: RunFolder, number: int | None, now: datetime, seed: int | None = None, *, twice: float | None = None,
    frame: SamplingFrame | None = None,
) -> Draw:  # fmt: skip
    """Draw cycles of a run or a checked table for people to grade, and store the draw; defaults are the plan's."""
    frame = frame or frame_of(folder)
    if frame.graded:
        problem = "people's grades are in the table already; a sample is drawn before the first grade"
        raise InputError(str(folder.path), [Problem("human", problem)])
    sizes = Counter(cycle for cycle, _ in frame.records.values())
    draw = human_labels.draw_sample(
        frame.clusters, min(frame.plan.sample, len(frame.clusters)) if number is None else number,
        seed=frame.seed if seed is None else seed, twice=frame.plan.double if twice is None else twice,
        agents_a_cycle=min(sizes.values(), default=0), at=now.isoformat().replace("+00:00", "Z"),
    )  # fmt: skip
    return human_labels.store_draw(folder, draw)


def draw_lines(folder: RunFolder, draw: Draw) -> list[str]:
    """Return the lines that `assaymark draw` prints."""
    clusters = len({draw.strata[name] for name in draw.units})
    drew = f"drew {len(draw.units)} of {len(draw.frame)} cycles in {clusters} clusters (seed {draw.seed}, {draw.at})"
    elsewhere, label = f"assaymark import human FILE --out {folder.path}", f"assaymark label {folder.path}; "
    then = f"{label}grades from elsewhere: {elsewhere}"
    if SEASON.holds(folder):
        then = f"{elsewhere}, with AGENT/PERIOD as trajectory, aggregate as dimension and grades from 0 to 100"
    return [
        f"{drew}; each had the probability {draw.pi[draw.frame[0]]:.3g}",
        f"{len(draw.twice)} of them are graded by two people: {', '.join(draw.twice)}",
        f"cycles: {', '.join(draw.units)}", f"then: {then}",
    ]  # fmt: skip
