"""The first page of a site of several runs, and the pages of a run in progress: its progress and single calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from markupsafe import Markup

from assaymark.claims.messages import Catalogue, english
from assaymark.engine.calls import CallSpec, Reply
from assaymark.metrology.datasheet import Datasheet
from assaymark.records import Level, Verdict
from assaymark.report.blocks import ClaimList, ClaimQuote, Inline, Items, Linked, Mark, Page, Section, Table, bold, code
from assaymark.report.datasheet import COMPARISON
from assaymark.report.datasheet.pages import comparison_lead, judge_line
from assaymark.report.datasheet.reading import datasheet_path, index_sheets
from assaymark.report.inputs import AssayRun, RunIndex
from assaymark.report.levels import study_levels
from assaymark.report.page import Frame, Link, Site
from assaymark.report.portbench.index import BenchmarkIndex, BenchRun, bench_lede, bench_levels
from assaymark.report.records.calls import reveal
from assaymark.report.season.index import Language, SeasonIndex, SeasonRun
from assaymark.report.season.levels import season_levels
from assaymark.report.season.pages import season_lede
from assaymark.report.study.plan import built_in_judges, study_line
from assaymark.report.text import TITLES, counted, plural, tally
from assaymark.text import clean, count

# The first page of a site of several runs lists each run with the claims that it supports. Runs are sorted by kind
# and then by name. They are not compared with each other.

SiteKind = Literal["study", "judges", "season", "portbench"]

_KINDS: Final[Mapping[SiteKind, tuple[str, str, str, str, str]]] = {
    "study": ("Overview", "Study", "study", "studies",
              "Reference panel. Every judge is a built-in grader with documented flaws."),
    "judges": ("Judges", "Judges as instruments", "set of judges", "sets of judges", ""),
    "season": ("Season", "Season", "season", "seasons", "Reference panel. Every judge is a built-in grader."),
    "portbench": ("PortBench", "PortBench", "run of PortBench", "runs of PortBench",
                  "Reference models. Every model is built in, with known properties."),
}  # fmt: skip
"""The kinds in the order of the page: the menu entry of a run that is the only one of its kind, its name in words,
singular and plural, and the notice that its judges or models are built in."""

_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """One run of a site: its title, a line about it, the number of decided claims, the tally of levels as (level,
    count, words), the first supported sentences of each level, and judges with datasheets of their own. ``reference``
    is true if every judge, or every model of a benchmark, is built in."""

    kind: SiteKind
    title: str
    line: str
    verdicts: int = 0
    tally: tuple[tuple[Level, str, str], ...] = ()
    quotes: tuple[tuple[Level, tuple[ClaimQuote, ...]], ...] = ()
    judges: tuple[Inline, ...] = ()
    reference: bool = False

    @property
    def words(self) -> str:
        """The kind of run, in words."""
        return _KINDS[self.kind][1]

    @property
    def notice(self) -> str:
        """The notice that all judges or models are built in; empty if they are not."""
        return _KINDS[self.kind][4] if self.reference else ""

    @property
    def more(self) -> str:
        """The number of further claims on the run's own pages, in words."""
        if self.kind == "judges":
            return ""
        shown = sum(len(claims) for _, claims in self.quotes)
        if not self.verdicts:
            return "No claim was decided."
        if not shown:
            return f"No claim is supported by this evidence: {counted(self.verdicts, 'claim')} decided."
        further = self.verdicts - shown
        return f"{counted(further, 'further claim')}, with the reasons of each, on its pages." if further else ""


def study_entry(run: AssayRun) -> SiteEntry:
    """The entry of a study."""
    index = RunIndex.of(run)
    title, ours = clean(run.study.title or run.study.name, 120), bool(built_in_judges(index))
    return _entry("study", title, study_line(index), ours, run.verdicts, study_levels(index))


def benchmark_entry(run: BenchRun) -> SiteEntry:
    """The entry of a run of PortBench."""
    index, ours = BenchmarkIndex.of(run), bool(run.built_in) and all(run.built_in.values())
    return _entry("portbench", clean(run.title, 120), bench_lede(index), ours, run.verdicts, tuple(bench_levels(index)))


def season_entry(run: SeasonRun, catalogue: Catalogue | None = None) -> SiteEntry:
    """The entry of a season, in the language of a catalogue (default: English)."""
    index = SeasonIndex.of(run, Language(catalogue or english()))
    title, ours = clean(run.plan.title or run.plan.name, 120), all(judge.built_in for judge in run.plan.panel)
    verdicts = [verdict.verdict for verdict in run.decided.verdicts]
    return _entry("season", title, season_lede(index), ours and bool(run.plan.panel), verdicts, season_levels(index))


def judges_entry(sheets: Sequence[Datasheet], title: str) -> SiteEntry:
    """The entry of a set of judge datasheets."""
    judges = index_sheets(sheets)
    return SiteEntry("judges", clean(title, 120), comparison_lead(judges), judges=tuple(map(judge_line, judges)))


def _entry(
    kind: SiteKind, title: str, line: str, reference: bool, verdicts: Sequence[Verdict], levels: Sequence[ClaimList]
) -> SiteEntry:
    """The entry of a run with its decided claims: how many at each level, and the first supported sentences."""
    reached = [verdict.publication_level for verdict in verdicts]
    quoted = ((part.level, tuple(claim for claim in part.claims if isinstance(claim, ClaimQuote))) for part in levels)
    shown = tuple((level, quotes[:_AT_ONCE]) for level, quotes in quoted if quotes)
    return SiteEntry(kind, title, line, len(reached), tally(reached), shown, (), reference)


def menu(runs: Mapping[str, SiteEntry]) -> dict[str, Link]:
    """The menu entry of every run, by its folder: its kind if it is the only one of that kind, else its title."""
    kinds, order = [run.kind for run in runs.values()], list(_KINDS)
    ordered = sorted(runs.items(), key=lambda item: (order.index(item[1].kind), item[1].title.casefold(), item[0]))
    first: dict[str, str] = {"judges": COMPARISON}
    return {
        key: Link(key, f"{key}/{first.get(run.kind, 'index.html')}",
                  _KINDS[run.kind][0] if kinds.count(run.kind) == 1 else run.title)
        for key, run in ordered
    }  # fmt: skip


def site_of(links: Mapping[str, Link], here: str) -> Site:
    """The site as seen from the pages in the folder of one run."""
    return Site(tuple(links.values()), here, "index.html").below(1)


def render_site_index(runs: Mapping[str, SiteEntry], title: str) -> str:
    """Render the first page of the site, for runs by their folders."""
    links, kinds = menu(runs), [run.kind for run in runs.values()]
    shown = [(key, link.href, runs[key]) for key, link in links.items()]
    parts = [plural(kinds.count(kind), noun, many) for kind, (_, _, noun, many, _) in _KINDS.items() if kind in kinds]
    lede = f"{plural(len(runs), 'run').capitalize()}: {', '.join(parts)}. They are not compared with each other."
    frame = Frame("", "", (), Site(tuple(links.values()), "", "index.html"))
    return frame.render("front.html", clean(title, 120), lede=lede, runs=shown, titles=TITLES)


LONGEST = 200_000
"""Maximum characters of a text on a page; the ledger holds the full text."""

FRONTS: Final = {"index.html": "Overview", "datasheets.html": "Datasheets"}
"""The first pages of reports and their menu labels; a folder of datasheets has only the second."""

_PROGRESS: Final = Link("live", "/live", "Progress")


@dataclass(frozen=True, slots=True)
class LiveView:
    """Calls planned and answered of each model, and replies per second lately, None if nothing has changed yet."""

    name: str
    models: Mapping[str, tuple[int, int]]
    a_second: float | None = None

    @property
    def planned(self) -> int:
        """The number of calls planned so far."""
        return sum(planned for planned, _ in self.models.values())

    @property
    def answered(self) -> int:
        """The number of calls with a reply."""
        return sum(answered for _, answered in self.models.values())

    def facts(self) -> dict[str, Any]:
        """Calls by model, the progress in a sentence, and whether every planned call has a reply."""
        rows = [{"model": name, "planned": planned, "answered": answered}
                for name, (planned, answered) in self.models.items()]  # fmt: skip
        return {"rows": rows, "said": self.progress(), "done": self.planned == self.answered}

    def progress(self, *, more: bool = False) -> str:
        """The progress in one sentence; with ``more``, the run has stages whose calls are not planned yet.

        >>> LiveView("r", {"a/b": (200, 50)}, 2.0).progress()
        '50 of 200 calls are answered, 2.0 a second lately; about 1 min 15 s for the others.'
        >>> LiveView("r", {"a/b": (200, 200)}).progress(more=True)
        '200 of 200 calls are answered; further calls are planned when the run resumes.'
        """
        if not self.planned:
            return "No call is planned yet."
        first = f"{count(self.answered)} of {count(self.planned)} calls are answered"
        if self.planned == self.answered:
            return f"{first}; further calls are planned when the run resumes." if more else f"{first}."
        if not self.a_second:
            return f"{first}; nothing has come in lately."
        remaining = (self.planned - self.answered) / self.a_second  # seconds, at the rate of late
        time = f"{remaining:.0f} s" if remaining < 60 else f"{int(remaining // 60)} min {int(remaining % 60)} s"
        time = time if remaining < 3600 else f"{int(remaining // 3600)} h {int(remaining % 3600 // 60)} min"
        return f"{first}, {self.a_second:.1f} a second lately; about {time} for the others."


def render_live(view: LiveView, *, report: str | None) -> str:
    """Render the page of a run in progress. ``report`` is the first page of a report that exists already."""
    rows = [(clean(model, 80), model, *calls) for model, calls in view.models.items()]
    there = () if report is None else (Link("report", f"/report/{report}", FRONTS[report]),)
    return _frame((*there, _PROGRESS)).render(
        "live.html", clean(view.name, 80), here="live", scripts=("live.js",), connect=True, view=view, rows=rows
    )


def render_call(call: CallSpec, reply: Reply | None) -> str:
    """Render one call with its reply. All of it is untrusted, and all of it is shown as text."""
    asked = [(message.role, _cut(message.text)) for message in call.messages]
    facts = [("Model", call.model), ("Trial", str(call.trial)), ("Arguments", json.dumps(dict(call.args)))]
    facts += [(name, str(value)) for name, value in (("Seed", call.seed), ("Temperature", call.temperature))
              if value is not None]  # fmt: skip
    if reply is not None:
        facts += [("Answered by", reply.model), ("Finished with", reply.finish)]
        facts += [("Seconds", f"{reply.seconds:.3f}")] if reply.seconds is not None else []
        tokens = [str(value) for value in (reply.input_tokens, reply.output_tokens) if value is not None]
        facts += [("Tokens in and out", " and ".join(tokens))] if tokens else []
    return _frame((_PROGRESS,)).render(
        "call.html", "One call", scripts=(), key=call.key, asked=asked,
        facts=[(name, clean(value, 400)) for name, value in facts],
        reply=None if reply is None else _cut(reply.text), raw=_cut(reply.raw) if reply and reply.raw else None,
    )  # fmt: skip


def render_unfinished(view: LiveView, frame: Frame, spent: str, command: str, judges: Sequence[str]) -> str:
    """Render the first page of a study before its last call: only progress, nothing that a later call could change."""
    progress = view.progress(more=True) + (f" {spent} USD are spent." if spent else "")
    rows = [(clean(model, 80), *map(count, calls)) for model, calls in view.models.items()]
    table = Table(("Model", "Planned", "Answered"), tuple(rows), frozenset((1, 2)), "", stacked=True)
    tested = Items(tuple(Linked(clean(name, 60), datasheet_path(name)) for name in judges))
    tests = (Section("known", "What is known already?", "The judges’ own tests.", (tested,)),) if judges else ()
    lead = "No difference, agreement or ranking of agents is shown before the last call."
    return frame.page(
        Page("index.html", frame.study, lead, (Section("calls", "How far is it?", progress, (table,)), *tests),
             heading=(Mark("no-claim"), " ", "Not decided yet"), here="overview",
             notice=(bold("Partial."), " Continue with ", code(command)))
    )  # fmt: skip


def render_missing(what: str) -> str:
    """Render the page for something that was not found, with a link back."""
    return _frame((_PROGRESS,)).render("missing.html", "Not here", scripts=(), what=clean(what, 200))


def _frame(nav: tuple[Link, ...]) -> Frame:
    """The frame of a page that is not part of the report."""
    return Frame("", "", nav, Site(home="/"), ("page.css", "live.css"))


def _cut(text: str) -> Markup:
    excess = len(text) - LONGEST
    return reveal(text if excess <= 0 else f"{text[:LONGEST]}\n[… {count(excess)} characters more]")
