"""The page of the panel: who judged, how far the judges agree, what noise does, and what each of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement
from assaymark.report.figures.canvas import Scale
from assaymark.report.figures.judges import JudgeWords
from assaymark.report.formats import clean
from assaymark.report.linked import Linked
from assaymark.report.season.audits import change_without, detail_number
from assaymark.report.season.inputs import SeasonJudge
from assaymark.report.season.leaderboard import band_words, book_scale, drawn_words, judged_points
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.said import measured
from assaymark.report.season.strip import band_head, band_strip
from assaymark.report.season.words import Words

_LINKED: Final = ("invalid", "alone", "verbosity")


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge: who it is, where its datasheet lies (empty without one), and what was measured of it.

    ``links`` lead to the rows of what was measured, by the names of the fields.
    """

    name: str
    family: str
    model: str
    kind: str
    trials: str
    datasheet: str
    invalid: str
    alone: str
    verbosity: str
    links: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """One agent as its judges graded it; the points are composites. ``low`` is empty where nobody graded it."""

    agent: str
    link: str
    low: str
    high: str
    spread: str
    band: str
    strip: str
    drawn: str
    absent: str


@dataclass(frozen=True, slots=True)
class PanelView:
    """The panel page. ``changes`` are rows of (agent, change of its total without each judge and a link to its row).

    Agents that share a tier are one row of ``changes``: by how much the total of any of them moves at most, since a
    change beside the range of the judges would give the total. ``composites`` are the points that each judge gave, for
    agents with a total of their own. ``measured`` leads to the row of
    kappa, and is empty where there is none. ``noise`` has (of, value, from, link to its row).
    """

    lede: str
    judges: tuple[JudgeRow, ...]
    verbosity: bool
    kappa: str
    measured: str
    head: str
    agreement: tuple[AgreementLine, ...]
    composites: tuple[JudgeWords, ...]
    noise: tuple[tuple[str, str, str, str], ...]
    changes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def panel_view(book: SeasonLookup, words: Words) -> PanelView:
    """Everything that is known of the judges; agents stand in alphabetical order throughout."""
    run = book.run
    names = [words.term("claim.band", band) for band in ("weak", "mixed", "strong")]
    scale = book_scale(book)
    judges = tuple(_judge(book, one, words) for one in run.judges)
    return PanelView(
        lede=_lede(book, words),
        judges=judges,
        verbosity=any(one.verbosity for one in judges),
        kappa=kappa_words(book, words),
        measured=book.link(book.one("season.kappa")),
        head=band_head(run.scoring.bands, scale, (names[0], names[1], names[2])),
        agreement=tuple(_agreement(book, agent, scale, words) for agent in book.agents),
        composites=tuple(_composites(book, words)),
        noise=tuple(_noise(book, words)),
        changes=tuple(_changes(book, words)) if len(run.judges) > 1 else (),
    )


def _lede(book: SeasonLookup, words: Words) -> str:
    judges = book.run.judges
    families = len({one.family for one in judges})
    text = words(
        "panel.lede",
        judges=words("panel.count", n=len(judges), few=words.few(len(judges))),
        families=words("panel.families", n=families, few=words.few(families)),
    )
    shared = sorted({one.family for one in judges} & {one.family for one in book.run.agents})
    conflict = words("panel.conflict", families=words.names(shared), n=len(shared)) if shared else words("panel.apart")
    return f"{text[:1].upper()}{text[1:]} {conflict}"


def _judge(book: SeasonLookup, judge: SeasonJudge, words: Words) -> JudgeRow:
    kind = "human" if judge.human else "reference" if judge.reference else "model"
    return JudgeRow(
        name=clean(judge.name, 60),
        family=clean(judge.family, 60),
        model=clean(judge.model, 80),
        kind=words(f"panel.kind.{kind}"),
        trials=words.count(judge.trials),
        datasheet=_link(judge.datasheet),
        invalid=_invalid(book.one("season.invalid", judge=judge.name), words),
        alone=_value(book.one("season.alone", judge=judge.name), words),
        verbosity=_value(book.one("season.verbosity", judge=judge.name), words, missing=""),
        links={name: book.link(book.one(f"season.{name}", judge=judge.name)) for name in _LINKED},
    )


def _link(target: str | None) -> str:
    """A relative link; anything that names a scheme or a host is none, because a site asks nothing of a network."""
    if not target or ":" in target or target.startswith(("/", "\\")):
        return ""
    return clean(target, 300)


def _invalid(item: Measurement | None, words: Words) -> str:
    if item is None or item.value is None:
        return words("state.not measured") if item is None else words.term("state", item.state)
    bad = round(item.value * item.n)
    return words("panel.invalid", bad=words.count(bad), n=words.count(item.n))


def _value(item: Measurement | None, words: Words, missing: str | None = None) -> str:
    if item is None:
        return words("state.not measured") if missing is None else missing
    return measured(item, words)


def kappa_words(book: SeasonLookup, words: Words) -> str:
    """How far the judges agree on bands, over records of single periods."""
    item = book.one("season.kappa")
    if item is None or item.value is None:
        return words("kappa.none", state=words.term("state", "not measured" if item is None else item.state))
    ends = ""
    if item.low is not None and item.high is not None:
        level = words.percent(item.level or 0.95, 0)
        ends = words("kappa.ends", ends=words.span(item.low, item.high, 2), level=level)
    return words("kappa.said", kappa=words.number(item.value, 2), ends=ends, n=words.count(item.n))


def _agreement(book: SeasonLookup, agent: str, scale: Scale, words: Words) -> AgreementLine:
    row = book.rows.get(agent)
    found = None if row is None else row.agreement
    points = judged_points(book, agent)
    absent = words.names(row.absent) if row is not None and row.absent else ""
    ends = book.judged(agent, "season.composite")
    low = high = spread = ""
    if found is not None and ends is not None:
        low, high, spread = (
            Linked(words.number(value), f"{book.pages[agent]}#graded") for value in (*ends, ends[1] - ends[0])
        )
    return AgreementLine(
        agent=clean(agent, 60),
        link=book.pages[agent],
        low=low,
        high=high,
        spread=spread,
        band=band_words(row, words),
        strip=band_strip(book.run.scoring.bands, scale, book.run.decided.place(agent).level, points),
        drawn=drawn_words(points, words),
        absent=absent,
    )


def _composites(book: SeasonLookup, words: Words) -> list[JudgeWords]:
    found = []
    for at, judge in enumerate(book.run.judges):
        points = [(agent, one.points) for agent in book.agents for one in judged_points(book, agent) if one.judge == at]
        said = ", ".join(f"{clean(agent, 60)} {words.number(value)}" for agent, value in points)
        found += [JudgeWords(at, clean(judge.name, 60), said)] if said else []
    return found


def _noise(book: SeasonLookup, words: Words) -> list[tuple[str, str, str, str]]:
    """The floors: of the panel on one record, and of each agent on identical input."""
    found = []
    judges = [(book.one("season.judge_noise", judge=one.name), one.name) for one in book.run.judges]
    agents = [(book.one("season.noise", of=name), name) for name in book.agents]
    for item, name in ((book.one("season.noise", of="panel"), ""), *judges, *agents):
        if item is None:
            continue
        title = clean(name, 60) if name else words("noise.panel")
        value = words.term("state", item.state) if item.value is None else words("noise.points", value=item.value)
        freedom = detail_number(item, "freedom")
        rests = words("noise.rests", n=words.count(item.n), of=words.of(item.n, item.n_of))
        rests = rests if freedom is None else words("noise.free", rests=rests, n=int(freedom))
        found.append((title, value, rests, book.link(item)))
    return found


def _changes(book: SeasonLookup, words: Words) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    found, none = [], words("state.not defined")
    most: dict[str, float] = {}
    for agent in book.agents:
        changes = {judge.name: change_without(book, agent, judge.name) for judge in book.run.judges}
        if not book.run.decided.place(agent).shown:
            known = [(name, abs(one)) for name, one in changes.items() if one is not None]
            most |= {name: max(size, most.get(name, 0.0)) for name, size in known}
        elif any(change is not None for change in changes.values()):
            texts = [none if one is None else words.number(one, 1, sign=True) for one in changes.values()]
            links = [book.link(book.one("season.without", agent=agent, judge=name)) for name in changes]
            found.append((clean(agent, 60), tuple(zip(texts, links, strict=True))))
    if most:
        sizes = [words("without.most", change=most[one.name]) if one.name in most else none for one in book.run.judges]
        found.append((words("without.tiers"), tuple((size, "") for size in sizes)))
    return found
