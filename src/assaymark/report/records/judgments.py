"""The records of a study, planned as pages, with the addresses of judgments, decisions, calls, and a measurement's
records: pages for each judge, an overview of judgments by judge and agent, decisions by agent, and a search."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from markupsafe import Markup

from assaymark.records import Decision, Evidence, Judgment, Measurement, content_id
from assaymark.report import blocks as b
from assaymark.report.blocks import Block, Inline
from assaymark.report.page import PAGE_BYTES, Frame, by_file, file_stems, paginate, script_data, with_pager
from assaymark.report.records.calls import (
    BELOW,
    OVERVIEW,
    PAGE,
    SEARCH,
    JudgeCall,
    Lineage,
    ReadCalls,
    SameAnswers,
    call_pages,
    rows_page,
)
from assaymark.report.text import cell_title, counted
from assaymark.text import clean, count

if TYPE_CHECKING:
    from assaymark.report.inputs import AssayRun

_row_id: Final = lru_cache(maxsize=1 << 14)(lambda of: content_id(of)[:12])  # links ask for most of them ten times
FOLDER: Final = "judgments"
LEDGER: Final = "ledger/page-001.html"

TILDE: Final = "~{}"
"""Suffix of the file name of a judge's further pages: no name has a tilde there, see `file_stems`."""

JudgmentPart = Literal["panel", "anchors", "outside", "grades"]
PARTS: Final[Mapping[JudgmentPart, str]] = {
    "panel": "", "anchors": "under another rubric wording", "outside": "as the held-out judge",
    "grades": "after the outcome",
}  # fmt: skip
"""The parts of a run's judgments: by the panel, by another rubric wording, by the held-out judge, after outcomes."""

Calls = Literal["all", "judged", "none"]
"""The calls that have pages: every call of a record, only those of the judges, or none."""

NOT_OK: Final = 100
"""Maximum number of judgments without a score in the overview; the pages of the judges have them all."""

_ROW, _SCORE, _DECISION_ROW, _LINK = 330, 44, 300, 70  # bytes of markup
_ORDERS, _QUOTES = 4, 3
_OTHERS: Final = 24
"""Maximum number of links from a call to calls on the same answer."""

_RECORD: Final = "A judgment is a record; which claims it supports is decided by the "
_FIRST: Final = b.Linked("verdicts", "index.html")


class Subject(NamedTuple):
    """The subject of a judgment: an agent by its id, or control texts by their kind. Agents sort first."""

    control: bool
    name: str

    @property
    def words(self) -> str:
        """The name of the subject on pages."""
        return cell_title(self.name) if self.control else clean(self.name, 80) or "unknown"

    @property
    def anchor(self) -> str:
        """The id of its row in the overview."""
        return f"a{content_id([self.control, self.name])[:10]}"


def subject_of(decision: Decision | None) -> Subject:
    """The subject of a decision; without a name if the decision is not known."""
    if decision is None:
        return Subject(False, "")
    kind = decision.derivation.kind
    return Subject(False, decision.agent.id) if kind == "honest" else Subject(True, kind)


@dataclass(frozen=True, slots=True)
class JudgeGroup:
    """The judgments of one judge in one part, split into pages: ``pages`` are path and judgments."""

    part: JudgmentPart
    judge: str
    family: str
    pages: tuple[tuple[str, tuple[Judgment, ...]], ...]

    @property
    def title(self) -> str:
        """The name of the judge on pages, with the part."""
        return ", ".join(filter(None, (clean(self.judge, 80), PARTS[self.part])))

    @property
    def judgments(self) -> list[Judgment]:
        """All judgments, in the order of the pages."""
        return [judgment for _, rows in self.pages for judgment in rows]


def row_id(record: Judgment | Decision) -> str:
    """The id of the row of a judgment or of a decision."""
    if isinstance(record, Decision):
        return f"d{_row_id(record.record_id)}"
    return f"j{_row_id((record.judge, record.rubric, record.trajectory, record.trial))}"


def call_cell(key: str, calls: Mapping[str, str]) -> Inline:
    """The first characters of a call's key, linked to the call if it has a page."""
    if not key:
        return "no call"
    if calls.get(key):
        return b.Linked(key[:8], calls[key])
    return Markup('<code title="{}">{}</code>').format(clean(key, 64), clean(key, 64)[:8])


@dataclass(frozen=True, slots=True)
class StudyProvenance:
    """The addresses of a study's records. ``decisions`` maps a record id to its row, ``first`` a part, judge and
    subject to the first judgment and ``last`` to the page of the last one, and ``calls`` a call key to its call, once
    `pages` has run."""

    run: AssayRun
    records: Mapping[str, Decision]
    groups: tuple[JudgeGroup, ...]
    first: Mapping[tuple[JudgmentPart, str, Subject], str]
    last: Mapping[tuple[JudgmentPart, str, Subject], str]
    decided: tuple[tuple[str, tuple[Decision, ...]], ...]
    decisions: Mapping[str, str]
    calls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, run: AssayRun) -> StudyProvenance:
        """Plan the pages of a study."""
        records = {decision.record_id: decision for decision in run.texts}
        by_judge: defaultdict[tuple[JudgmentPart, str], list[Judgment]] = defaultdict(list)
        for part, judgments in run.judgments.items():
            for judgment in judgments:
                by_judge[part, judgment.judge].append(judgment)
        order = {part: at for at, part in enumerate(PARTS)}
        keys = sorted(by_judge, key=lambda key: (order[key[0]], key[1]))
        stems = file_stems(FOLDER, [(judge,) if part == "panel" else (part, judge) for part, judge in keys])

        def place(one: Judgment) -> tuple[Subject, float, str, int]:
            """Sort by agent, control texts last, then by time; never by score."""
            decision = records.get(one.trajectory)
            return subject_of(decision), decision.decided_at.timestamp() if decision else 0.0, one.trajectory, one.trial

        def size(judgment: Judgment) -> int:
            decision = records.get(judgment.trajectory)
            texts = [judgment.trajectory[:60], judgment.reason or "", *(quote[:40] for quote in judgment.evidence[:3])]
            texts += [] if decision is None else [decision.agent.id[:80] * 2, decision.cluster[:60]]
            return b.row_bytes(_ROW + _SCORE * len(run.rubric.dimensions), [text[:300] for text in texts])

        def decision_size(record: Decision) -> int:
            texts = (subject_of(record).words, record.record_id[:60], record.cluster[:60], _orders(record))
            return b.row_bytes(_DECISION_ROW + _LINK * len(keys), texts)

        groups: list[JudgeGroup] = []
        first: dict[tuple[JudgmentPart, str, Subject], str] = {}
        last: dict[tuple[JudgmentPart, str, Subject], str] = {}
        for key, named in zip(keys, stems, strict=True):
            rows, stem = sorted(by_judge[key], key=place), f"{named}~1" if named.lower() == f"{FOLDER}/index" else named
            pages = tuple(by_file(stem, rows, PAGE, size, TILDE).items())
            for path, page in pages:
                for judgment in page:
                    about = (*key, subject_of(records.get(judgment.trajectory)))
                    first.setdefault(about, f"{path}#{row_id(judgment)}")
                    last[about] = path
            groups.append(JudgeGroup(*key, rows[0].family, pages))
        by = sorted(run.texts, key=lambda d: (subject_of(d), d.decided_at.timestamp(), d.record_id))
        cut = enumerate(paginate(by, PAGE, decision_size), 1)
        decided = tuple((f"decisions/page-{at:03d}.html", decisions) for at, decisions in cut)
        places = {d.record_id: f"{path}#{row_id(d)}" for path, decisions in decided for d in decisions}
        return cls(run, records, tuple(groups), first, last, decided, places)

    def subject(self, judgment: Judgment) -> Subject:
        """The subject of a judgment."""
        return subject_of(self.records.get(judgment.trajectory))

    def subjects(self) -> list[Subject]:
        """Agents by name, then kinds of control texts, if any judgment or decision is about them."""
        return sorted({*map(subject_of, self.records.values()), *(about for _, _, about in self.first)})

    def exactly(self, group: JudgeGroup, about: Subject) -> str:
        """The address of a judge's judgments on a subject alone; of the first of them, if they are on several pages."""
        key = (group.part, group.judge, about)
        first, last = self.first.get(key, ""), self.last.get(key)
        return f"{last}#{b.filter_id(about.words)}" if first.partition("#")[0] == last else first

    def places(self) -> Iterator[tuple[JudgeGroup, Judgment, str]]:
        """Every judgment with its address, in the order of the pages."""
        for group in self.groups:
            for path, rows in group.pages:
                yield from ((group, row, f"{path}#{row_id(row)}") for row in rows)

    def decisions_by(self) -> dict[Subject, b.Linked]:
        """The number of decisions of each subject, linked to these alone if they share a page, else to the first."""
        counts, first = Counter[Subject](), dict[Subject, str]()
        on: defaultdict[Subject, set[str]] = defaultdict(set)
        for path, rows in self.decided:
            for row in rows:
                about = subject_of(row)
                first.setdefault(about, f"{path}#{row_id(row)}")
                on[about].add(path)
                counts[about] += 1
        exact = {about: f"{min(paths)}#{b.filter_id(about.words)}" for about, paths in on.items() if len(paths) == 1}
        return {about: b.Linked(count(counts[about]), exact.get(about, place)) for about, place in first.items()}

    def pages(self, frame: Frame, read: ReadCalls | None = None, wanted: Calls = "all") -> Iterator[tuple[str, str]]:
        """Every page, one at a time, as path and HTML: calls first, so that the other pages can link to them."""
        study = self.run.study
        if read is not None and wanted != "none":
            people = {judge.name for judge in study.judges if judge.human}
            # The judgments that were asked by a call, with their places, by the answer that they are of.
            answers: dict[str, list[tuple[JudgeGroup, Judgment, str]]] = {}
            for group, judgment, place in self.places():
                if judgment.judge not in people:
                    answers.setdefault(judgment.trajectory, []).append((group, judgment, place))
            # Links to each call's records, by its key: answer by answer, with all judges and trials on it; and by call
            # the calls of other judges and trials on the same answer.
            uses: defaultdict[str, list[b.Linked]] = defaultdict(list)
            same: dict[str, list[JudgeCall]] = {}
            for trajectory, asked in answers.items():
                several, named = Counter(group.title for group, _, _ in asked), list[JudgeCall]()
                for group, judgment, place in asked:
                    trial = f", trial {judgment.trial}"
                    ref = b.Linked(f"{group.title} on {trajectory}{trial if judgment.trial > 1 else ''}", place)
                    for key in (*([judgment.first_key] if judgment.first_key else []), judgment.call_key):
                        uses[key].append(ref)
                    words = b.Linked(group.title + (trial if several[group.title] > 1 else ""), place)
                    named += [JudgeCall(judgment.call_key, words, judgment)] if judgment.call_key else []
                for call in named:
                    same[f"c{call.key[:16]}"] = [call, *(asked for asked in named[:_OTHERS] if asked.key != call.key)]
            # A decision names the key of its call where the agents were asked in this run.
            for _, rows in self.decided if wanted == "all" and study.substrate is not None else ():
                for decision in rows:
                    if decision.call.raw_object:
                        label = f"{subject_of(decision).words} decides, {decision.record_id}"
                        uses[decision.call.raw_object].append(b.Linked(label, self.decisions[decision.record_id]))
            shown = SameAnswers(same, self.run.rubric.dimensions, study.rubric.scale)
            yield from call_pages(read(list(uses)), uses, frame, self.calls, answers=shown)
        for page in chain(self._decision_pages(), self._judgment_pages()):
            yield page.path, frame.page(page)

    def _decision_pages(self) -> Iterator[b.Page]:
        """The pages of decisions, and the overview of judgments by judge and agent, with those that have no score."""
        links: defaultdict[str, list[b.Linked]] = defaultdict(list)
        for group, judgment, place in self.places():
            if judgment.trial == 1:
                links[judgment.trajectory].append(b.Linked(group.title, place))
        columns = ("By", "Decision", "When", "Decided", "Judgments", "Call")
        intro = "Decisions by agent and date, each with its judgments and the call in which it was made."
        for path, rows, parts in with_pager(self.decided):
            shown: list[b.PageRow] = []
            for decision in rows:
                by, call = subject_of(decision).words, self.calls.get(decision.call.raw_object or "", "")
                when = (f"{decision.decided_at:%Y-%m-%d %H:%M} ", b.small(clean(decision.cluster, 60)))
                judged = b.chained(links.get(decision.record_id, ()), ", ") or "none"
                cells = (by, clean(decision.record_id, 60), when, _orders(decision), judged)
                shown.append(b.PageRow((*cells, b.Linked("call", call) if call else "not kept"), row_id(decision), by))
            yield rows_page(path, "Decisions", intro, columns, shown, "decisions", parts)
        total = sum(len(group.judgments) for group in self.groups)
        if not total:
            lead = (_RECORD, _FIRST, ". ", "No judgment is kept with these pages.")
            yield b.Page(OVERVIEW, "Judgments", lead, **BELOW)
            return
        judges: list[tuple[Inline, ...]] = []
        for group in self.groups:
            ok = sum(judgment.status == "ok" for judgment in group.judgments)
            n, trials = len(group.judgments), len({judgment.trial for judgment in group.judgments})
            numbers = map(count, (n, ok, n - ok, trials))
            judges.append((b.Linked(group.title, group.pages[0][0]), clean(group.family, 80), *numbers))
        tallies = [Counter(map(self.subject, group.judgments)) for group in self.groups]
        linked, subjects = self.decisions_by(), list[b.PageRow]()
        for whom in self.subjects():
            both = zip(self.groups, tallies, strict=True)
            counts = [b.Linked(count(n) if (n := tally[whom]) else "none", self.exactly(group, whom))
                      for group, tally in both]  # fmt: skip
            subjects.append(b.PageRow((whom.words, linked.get(whom, "0"), *counts), whom.anchor))
        bad = [(group, judgment, place) for group, judgment, place in self.places() if judgment.status != "ok"]
        named = tuple(
            (group.title, self.subject(record).words, b.Linked(clean(record.trajectory, 60), place), _remarks(record))
            for group, record, place in bad[:NOT_OK]
        )
        without: list[Block] = [b.Table(("Judge", "Agent", "Decision", "Reason"), named, summary="", stacked=True)]
        if len(bad) > NOT_OK:
            without.append(b.Prose(f"{len(bad) - NOT_OK} more are on the pages of the judges."))
        of_agents = ("Agent", "Decisions", *(group.title for group in self.groups))
        of_judges = ("Judge", "Family", "Judgments", "With scores", "Without", "Trials")
        intro = f". {counted(total, 'judgment')} of {counted(len(self.records), 'decision')}; each links to its call. "
        none = f"{counted(len(bad), 'judgment')} gave none and count in no number." if bad else "None: all have scores."
        by_agent = (
            "Judgments by judge and agent, agents by name. A number links to exactly these judgments where they fit on "
            "one page, else to the first."
        )
        tables = (
            b.Table(of_judges, tuple(judges), frozenset(range(2, 6)), "", stacked=True),
            b.Table(of_agents, tuple(subjects), frozenset(range(1, len(of_agents))), "", label="Judgments by agent"),
        )
        yield b.Page(
            OVERVIEW, "Judgments", (_RECORD, _FIRST, intro, b.Linked("Search all parts", SEARCH)),
            (b.Section("judges", "Which judges?", blocks=tables[:1]),
             b.Section("agents", "Which agents did they judge?", by_agent, tables[1:]),
             b.Section("without", "Which gave no score?", none, tuple(without) if bad else ())),
            **BELOW,
        )  # fmt: skip

    def _judgment_pages(self) -> Iterator[b.Page]:
        """The pages of each judge by agent and date, and a search over every judgment with its call."""
        dimensions = self.run.rubric.dimensions
        titles = tuple(title for _, title in dimensions)
        columns = ("Agent", "Decision", "Trial", *titles, "Notes", "Call")
        for group, (path, rows, parts) in ((judge, part) for judge in self.groups for part in with_pager(judge.pages)):
            shown: list[b.PageRow] = []
            for item in rows:
                decision, about, ok = self.records.get(item.trajectory), self.subject(item).words, item.status == "ok"
                record: list[Inline] = [b.Linked(clean(item.trajectory, 60), self.decisions.get(item.trajectory, ""))]
                if decision is not None:
                    record += [" ", b.small(f"{decision.decided_at:%Y-%m-%d}, {clean(decision.cluster, 60)}")]
                none = "not scored" if ok else "none"
                scores = [f"{item.scores[name]:g}" if name in item.scores else none for name, _ in dimensions]
                call = call_cell(item.call_key, self.calls)
                if self.calls.get(item.first_key):
                    call = (call, b.small(" first: "), call_cell(item.first_key, self.calls))
                also = _remarks(item) if ok else b.bold(_remarks(item))
                cells = (about, tuple(record), count(item.trial), *scores, also, call)
                shown.append(b.PageRow(cells, row_id(item), about, "" if ok else "not-ok"))
            bad = sum(judgment.status != "ok" for judgment in rows)
            without = (("not-ok", "Without scores", count(bad)),) if bad else ()
            filters = (*b.row_filters([row.key for row in shown]), *without)
            rubric = f". Rows are sorted by agent and date, never by score. Rubric: {clean(rows[0].rubric, 120)}. "
            lead = (_RECORD, _FIRST, rubric, b.Linked("All judges", OVERVIEW), ", ",
                    b.Linked("search all parts", SEARCH))  # fmt: skip
            title, right = f"Judgments of {group.title}", range(2, 3 + len(titles))
            yield rows_page(path, title, lead, columns, shown, "judgments", parts, right, filters)
        judges = {group.title: at for at, group in enumerate(self.groups)}
        places, answers, lines, size, total = dict[str, int](), dict[str, int](), [], 0, 0
        for group, judgment, place in self.places():
            total += 1
            about = f"{judgment.trajectory[:120]} ({self.subject(judgment).words})"
            targets = (place.partition("#"), self.calls.get(judgment.call_key, "").partition("#"))
            address = [part for path, _, name in targets for part in (places.setdefault(path, len(places)), name)]
            state, new = "" if judgment.status == "ok" else f", {judgment.status}", len(answers)
            index = [judges[group.title], answers.setdefault(clean(about, 200), new), judgment.trial, *address, state]
            size += len(json.dumps(index)) + (len(about) if index[1] == len(answers) - 1 else 0)
            if size < PAGE_BYTES:
                lines.append(index)
        data = {"judges": list(judges), "answers": list(answers), "pages": list(places), "rows": lines}
        less = (
            f" The index holds the first {count(len(lines))}; all are on the pages below." if len(lines) < total else ""
        )
        box = Markup(
            '<p class="tools" data-js hidden><input type="search" id="s-box" aria-label="{0}" placeholder="{0}"> '
            '<output aria-live="polite"></output></p><ul class="list" id="s-list"></ul>'
            '<script type="application/json" id="s-data">{1}</script>'
        ).format("Judge, answer, agent, trial or key", script_data(json.dumps(data)))
        listed = [(group.title, path, at) for group in self.groups for at, (path, _) in enumerate(group.pages, 1)]
        called = sorted({place.partition("#")[0] for place in self.calls.values()})
        listed += [("Calls", path, at) for at, path in enumerate(called, 1)]
        pages = b.Items(tuple(b.Linked(f"{words}, part {at}", path) for words, path, at in listed))
        intro = f"{counted(total, 'judgment')}, each with its call, over all parts.{less}"
        sections = (b.Section("parts", "Which pages hold them?", "", (pages,)),)
        yield b.Page(SEARCH, "Search records", intro, sections, (box,), scripts=("page.js+search.js",), **BELOW)


def _orders(record: Decision) -> str:
    """The orders of a decision in a few words, and its flags."""
    orders = [f"{action.kind.replace('_', ' ')} {clean(action.instrument, 30)}" for action in record.actions[:_ORDERS]]
    more = f" and {count(len(record.actions) - _ORDERS)} more" if len(record.actions) > _ORDERS else ""
    flags = f"; {', '.join(clean(flag, 40) for flag in record.flags[:_ORDERS])}" if record.flags else ""
    return f"{', '.join(orders) or 'no order'}{more}{flags}"


def _remarks(record: Judgment) -> str:
    """The remarks on a judgment besides its scores, starting with the reason if it has none."""
    remarks = [] if record.status == "ok" else [f"{record.status}: {clean(record.reason or 'no reason was kept', 200)}"]
    remarks += [clean(record.reason, 200)] if record.status == "ok" and record.reason else []
    remarks += ["asked once more: the first reply was not JSON"] if record.first_key else []
    remarks += [f"look-ahead {clean(record.lookahead_check, 40)}"] if record.lookahead_check else []
    if record.evidence:
        more = f" and {len(record.evidence) - _QUOTES} more" if len(record.evidence) > _QUOTES else ""
        remarks.append(f"quotes {', '.join(clean(quote, 40) for quote in record.evidence[:_QUOTES])}{more}")
    return "; ".join(remarks)


_NUMBERS: Final = ("evidence.share", "evidence.chance_corrected")
_DECIDED: Final = ("agent.", "terse.share", "evidence.no_number_share", "forecast.mismatch")
_IN_PARTS: Final[Mapping[str, JudgmentPart]] = {"anchor.": "anchors", "probe.": "outside"}
_CELLS: Final = ("cell.score", "cell.kappa", "cell.gate", "cell.drop", "cell.halo", "cell.agreement")
_HONEST: Final = (
    "kappa.", "redundancy", "score.", "contrast", "recusal.", "length.", "judges.", "judge.own_family", "judge.length",
    "dimension.", "order.", "rank.", "lofo.", "single.", "panel.discoveries", "panel.alpha", "panel.generalizability",
    "panel.variance", "cell.honest", "noise.", "style.", "contamination.", "judge.invalid_share",
)  # fmt: skip
_ASKED: Final = "judge.invalid_share"


def lineage(trail: StudyProvenance, evidence: Sequence[Evidence]) -> Lineage:
    """Return a function that links a measurement to its judgments, decisions or numbers, with counts where known."""
    # Judgments by part, judge, subject and format of the decision: all, and those with scores.
    asked, scored = Counter[tuple[JudgmentPart, str, Subject, str]](), Counter[tuple[JudgmentPart, str, Subject, str]]()
    for group, judgment, _ in trail.places():
        decision = trail.records.get(judgment.trajectory)
        key = (group.part, group.judge, subject_of(decision), "" if decision is None else decision.format)
        asked[key] += 1
        scored[key] += judgment.status == "ok"
    agents, decisions = {name: decision.agent.id for name, decision in trail.records.items()}, trail.decisions_by()
    numbers = Counter(agents.get(mention.decision, "") for mention in evidence)
    decided, every = Counter(map(subject_of, trail.records.values())), trail.subjects()

    def about(item: Measurement) -> tuple[Subject, ...] | None:
        """The subjects of a measurement: those in its labels, else every agent; None if its name does not tell."""
        named = sorted(item.labels[key] for key in ("agent", "high", "low") if key in item.labels)
        if item.name.startswith(_CELLS) and "cell" in item.labels:
            return (Subject(True, item.labels["cell"]),)
        if named:
            return tuple(Subject(False, name) for name in named)
        if item.name == "cell.separation":
            return tuple(subject for subject in every if subject.control and subject.name in ("cell_a", "cell_b"))
        honest = item.name.startswith((*_HONEST, *_IN_PARTS))
        return tuple(subject for subject in every if not subject.control) if honest else None

    @cache  # most measurements rest on what others rest on
    def link(
        asks: bool, form: str | None, ats: tuple[int, ...], subjects: tuple[Subject, ...], of: str = ""
    ) -> b.Linked:
        """A link with the number of matching rows; its text says so if they are only some of the rows at its target."""
        groups = [trail.groups[at] for at in ats]
        keys = {(group.part, group.judge) for group in groups}
        alone, single = len(groups) == 1, len(subjects) == 1
        n = there = 0
        for (part, judge, whom, written), counts in asked.items():
            matching = counts if asks else scored[part, judge, whom, written]
            n += matching * ((part, judge) in keys and whom in subjects and form in (None, written))
            there += counts * ((not alone or (part, judge) in keys) and (not single or whom in subjects))
        place = f"{OVERVIEW}#{subjects[0].anchor}" if single else OVERVIEW
        if alone:
            place = trail.exactly(groups[0], subjects[0]) if single else groups[0].pages[0][0]
        several = alone and single and "#only-" not in place
        words = counted(n, "judgment") if n == there and not several else f"{count(n)} among the judgments"
        return b.Linked(words + of, place)

    def on(item: Measurement) -> tuple[b.Linked, ...]:
        name, agent = item.name, item.labels.get("agent")
        if name.startswith(_NUMBERS):
            text = counted(numbers.total(), "number") if agent is None else f"{count(numbers[agent])} among all numbers"
            return (b.Linked(text, LEDGER),)
        if name.startswith(_DECIDED):
            start = "decisions/page-001.html"
            n, place = sum(n for whom, n in decided.items() if not whom.control), start
            if agent is not None:
                n, place = decided[whom := Subject(False, agent)], decisions.get(whom, b.Linked("", start)).href
            words = counted(n, "decision") if "#only-" in place else f"{count(n)} among all decisions"
            return (b.Linked(words, place),)
        part = next((part for start, part in _IN_PARTS.items() if name.startswith(start)), "panel")
        judges = [item.labels[key] for key in ("judge", "a", "b") if key in item.labels]
        named = ((at, group) for at, group in enumerate(trail.groups) if not judges or group.judge in judges)
        dropped = item.labels.get("dropped")
        ats = tuple(at for at, group in named if group.part == part and group.family != dropped)
        subjects = about(item)
        if not ats or subjects is None:
            return (b.Linked("judgments", OVERVIEW),)
        # One link where that says all; one for each judge of two, or for each agent of a pair.
        how = name == _ASKED, item.labels.get("format")
        if len(ats) == 2 and "a" in item.labels:
            return tuple(link(*how, (at,), subjects, f" by {clean(trail.groups[at].judge, 60)}") for at in ats)
        if len(subjects) == 2 and "high" in item.labels:
            return tuple(link(*how, ats, (subject,), f" on {subject.words}") for subject in subjects)
        return (link(*how, ats, subjects),)

    return on
