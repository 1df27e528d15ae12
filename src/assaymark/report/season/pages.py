"""The site of a season: every page in every language, from one run, as text; and written to an empty folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from assaymark.claims.messages import Catalogue, catalogue, languages
from assaymark.errors import InputError, Problem
from assaymark.judging.season.plans import PROCESS, ScoringPlan, load_scoring, scoring_names
from assaymark.report.blocks import (
    Beside,
    Block,
    Facts,
    Group,
    Inline,
    Items,
    Linked,
    Listing,
    Page,
    Passage,
    Row,
    Section,
    Styled,
    Table,
    Text,
    bold,
    code,
    level_words,
    notes,
    small,
    spaced,
    strong_link,
)
from assaymark.report.levels import LEVELS
from assaymark.report.measurements import STYLES, measured_row
from assaymark.report.page import ALONE, Site, beside, in_parts, paged_by
from assaymark.report.portbench.records import block
from assaymark.report.season.accounts import DATA, accounts_section, go_deeper, holdings_blocks, latest_blocks
from assaymark.report.season.agent import agent_pages
from assaymark.report.season.card import CARD, preview, preview_name, share_card
from assaymark.report.season.edition import Edition, editions
from assaymark.report.season.feeds import CALENDAR, DECISIONS, JSON_FEED, RSS, STANDINGS, VERDICTS, handed_on
from assaymark.report.season.index import ModelWords, SeasonLookup
from assaymark.report.season.inputs import SeasonRun
from assaymark.report.season.leaderboard import Cell, board_view, formula
from assaymark.report.season.levels import claim_cards, level_blocks, said_levels, tally
from assaymark.report.season.measurements import worded_rows
from assaymark.report.season.panel import panel_page
from assaymark.report.season.records import OVERVIEW
from assaymark.report.season.words import Words
from assaymark.text import clean

# The pages of rules, made from the locked season file and its scoring plan, and of what changed between plans.


_RULES: Final = ("season-panel.css",)
_PROMPTS: Final = 600_000
"""Characters of all prompts on the page, which stays below a megabyte."""


def _rules(edition: Edition) -> str:
    """The rules: fields and values are those of the locked file, weights those of its scoring plan."""
    run, plan, words = edition.book.run, edition.book.run.scoring, edition.words
    groups: dict[str, list[tuple[Inline, ...]]] = {}
    for rule in run.rules:
        value = clean(rule.value, 400) or words("rules.empty")
        groups.setdefault(rule.group, []).append((code(clean(rule.name, 80)), value, words.text(rule.meaning)))
    heads = words("rules.field"), words("rules.value"), words("rules.meaning")
    facts = (
        (words("rules.season"), clean(run.name, 80)),
        (words("rules.locked"), words.day(run.locked_at)),
        (words("rules.scoring"), words("rules.plan", version=plan.version, grader=clean(plan.grader, 80))),
        (words("rules.software"), f"assaymark {clean(run.software, 40)}"),
        (words("rules.hash"), code(clean(run.plan_hash, 80))),
    )
    returns = () if run.source else (words("formula.returns"),)
    bands = Text(words("rules.bands_note"), "cap"), Facts(band_rows(plan, words))
    tables = tuple((Group(title, (table,)),) for title, table in weight_tables(plan, words))
    prompts = _prompts(edition.book)
    shared = prompts and not prompts[0][0]
    page = Page(
        "rules.html",
        words("rules.title"),
        words("rules.lede"),
        here="rules",
        styles=_RULES,
        blocks=(Facts(facts),),
        sections=(
            Section(
                "total",
                words("rules.total"),
                blocks=(Items((*formulas(plan, words), *returns)), Group(words("rules.bands"), bands)),
            ),
            Section("weights", words("weights.title"), words("weights.lede"), (Beside(tables, "tri"),)),
            Section(
                "file",
                words("rules.file"),
                words("rules.file_lede"),
                tuple(
                    Group(
                        words.term("rules.group", name),
                        (Table(heads, tuple(rows), summary="", stacked=True),),
                    )
                    for name, rows in groups.items()
                ),
            ),
            Section(
                "prompt",
                words("rules.prompt"),
                words("rules.shared") if shared else "" if prompts else words("rules.no_prompt"),
                tuple(Passage(text, agent) for agent, text in prompts),
            ),
        ),
    )
    return edition.page(page)


def _prompts(book: SeasonLookup) -> tuple[tuple[str, str], ...]:
    """What all agents were told, under an empty name; or what each was told alone."""
    told = [(one.name, one.strategy) for one in book.agents.values() if one.strategy]
    if book.run.prompt:
        told = [("", book.run.prompt)]
    return tuple((clean(name, 60), block(text, _PROMPTS // len(told))) for name, text in told)


def formulas(plan: ScoringPlan, words: Words) -> tuple[str, ...]:
    """How grades become a total, sentence by sentence."""
    parts = {part.name: part for part in plan.reasoning}
    process = words.catalogue.names([words.part(parts[name]) for name in PROCESS])
    without = {
        name: words.catalogue.number(share, ".4g") for name, share in plan.composite.shares(outcome=False).items()
    }
    lines = [
        words("formula.axis"),
        words("formula.process", parts=process),
        words("formula.composite", **_percents(plan, words)),
        words(
            "formula.without",
            reasoning=without["reasoning"],
            evidence=without["evidence"],
            process=without["process"],
        ),
        formula(plan, words),
    ]
    if plan.efficiency.weight:
        lines.append(_quick(plan, words))
    return (*lines, words("formula.ties", level=words.percent(plan.ties.level, 0)), words("formula.reliability"))


def _quick(plan: ScoringPlan, words: Words) -> str:
    """What efficiency is, on the plan's scale."""
    rule, number = plan.efficiency, words.catalogue.number
    least = number(rule.least_seconds, "g")
    if rule.scale == "relative":
        return words("formula.quick_relative", least=least)
    return words("formula.quick", least=least, reference=number(rule.reference_s, "g"))


def _percents(plan: ScoringPlan, words: Words) -> dict[str, str]:
    return {name: words.catalogue.number(share, "g") for name, share in plan.composite.shares(outcome=True).items()}


def weight_tables(plan: ScoringPlan, words: Words) -> Iterator[tuple[str, Table]]:
    """The weights of the components and of all parts of both axes, in percent, with their titles."""
    heads, number = (words("weights.part"), words("weights.percent")), words.catalogue.number
    shares = plan.composite.shares(outcome=True)
    whole: list[tuple[Inline, ...]] = [(words(f"axis.{name}"), number(share, "g")) for name, share in shares.items()]
    yield words("weights.composite"), Table(heads, tuple(whole), frozenset((1,)), "", style="slim")
    for axis, parts, left in (("reasoning", plan.reasoning, ()), ("evidence", plan.evidence, plan.not_applicable)):
        rows: list[tuple[Inline, ...]] = []
        for part in parts:
            twice = (small(words("weights.twice")),) if part.name in PROCESS else ()
            rows.append(((words.part(part), *twice), number(part.weight, ".4g")))
        for part in left:  # the season has no field for it; its weight went to the others
            note = small(words("weights.not_applicable", weight=number(part.weight, "g")))
            rows.append(((words.part(part), note), "0"))
        title = words(f"weights.{axis}", n=words.few(len(parts)))
        yield title, Table(heads, tuple(rows), frozenset((1,)), "", style="slim")


def band_rows(plan: ScoringPlan, words: Words) -> tuple[tuple[str, str], ...]:
    """The bands with their whole points."""
    ends = (("strong", plan.bands.strong, 100), ("mixed", plan.bands.mixed, plan.bands.strong - 1))
    rows = (*ends, ("weak", 0, plan.bands.mixed - 1))
    return tuple(
        (words.term("claim.band", name), words("places.range", first=low, last=high)) for name, low, high in rows
    )


def _changelog(edition: Edition) -> str:
    """The plans that come with the package and the season's own, newest first, each against the one before it."""
    words, own = edition.words, edition.book.run.scoring
    plans = [load_scoring(name) for name in scoring_names()]
    if own.version not in {plan.version for plan in plans}:
        plans.append(own)
    sections: list[Section] = []
    for at, plan in enumerate(plans):
        key, version = f"scoring.{plan.version}", clean(plan.version, 40)
        blocks: list[Block] = [
            Facts(
                (
                    (words("changelog.grader"), clean(plan.grader, 80)),
                    (words("changelog.total"), formula(plan, words)),
                    (words("changelog.digest"), code(plan.digest)),
                )
            )
        ]
        if not at:
            blocks.append(Text(words("changelog.first")))
        else:
            changes, same = differences(plans[at - 1], plan)
            before = clean(plans[at - 1].version, 40)
            rows = tuple((field_words(name, words), _shown(a, words), _shown(b, words)) for name, a, b in changes)
            table = Table((words("changelog.what"), before, version), rows, summary="", stacked=True)
            blocks.append(Group(words("changelog.against", version=before), (table,)))
            kept = words.catalogue.names([words.term("scoring.whole", name) for name in same])
            blocks += [Text(words("changelog.same", fields=kept))] if same else []
        title = words(key) if words.has(key) else clean(plan.title, 120)
        tag = words("changelog.here") if plan.version == own.version else ""
        sections.append(Section(f"v-{len(plans) - at}", f"{version}: {title}", "", tuple(blocks), tag))
    title = words("changelog.title")
    return edition.page(
        Page("changelog.html", title, words("changelog.lede"), (*sections[::-1],), here="changelog", styles=_RULES)
    )


def differences(before: ScoringPlan, after: ScoringPlan) -> tuple[list[tuple[str, Any, Any]], list[str]]:
    """The fields in which two plans differ, and the parts of the plan in which they are equal.

    Version and title are left out, which are names and no rules.

    >>> changed, same = differences(load_scoring("v0.3"), load_scoring("v0.4"))
    >>> [name for name, _, _ in changed]
    ['grader', 'panel', 'efficiency.weight']
    >>> same
    ['composite', 'bands', 'ties', 'reasoning', 'evidence']
    """
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    kept = [name for name in new if name not in ("version", "title")]
    changed = [
        (name, one.get(name), two.get(name))
        for top in kept
        for one, two in [(_flat(top, old[top]), _flat(top, new[top]))]
        for name in dict.fromkeys((*one, *two))
        if one.get(name) != two.get(name)
    ]
    return changed, [name for name in kept if old[name] == new[name]]


def _flat(name: str, value: Any) -> dict[str, Any]:
    """The values of a part of a plan by their full names; parts of an axis by their own."""
    if isinstance(value, Mapping):
        return {f"{name}.{key}": one for key, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return {f"{name}.{one['name']}": one["weight"] for one in value}
    return {name: value}


def field_words(name: str, words: Words) -> str:
    """A field of a scoring plan in words, with its name."""
    key = f"scoring.field.{name}"
    return f"{words(key)} ({name})" if words.has(key) else name


def _shown(value: Any, words: Words) -> str:
    if value is None:
        return words("changelog.absent")
    if isinstance(value, list):
        return words.catalogue.names([words.term("axis", str(one)) for one in value])
    if isinstance(value, (int, float)):
        return words.catalogue.number(value, "g")
    return words.term("scoring.value", str(value))


_CODE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")

CARDS: Final = 100
"""Claims on one page: so many in every language, so that a page has its translation."""


def write_site(
    run: SeasonRun, out: Path, languages: Sequence[str | Catalogue] = languages(), site: Site = ALONE
) -> list[Path]:
    """Write the site of a season."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(str(out), [Problem("folder", "holds something already; give a new or an empty one")])
    found = []
    for path, html in site_pages(run, languages, site):
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
        found.append(target)
        if target.name == CARD and preview_name() != CARD:
            found.append(target.with_name(preview_name()))
            found[-1].write_bytes(preview(html))
    return found


def site_pages(
    run: SeasonRun, languages: Sequence[str | Catalogue] = languages(), site: Site = ALONE
) -> Iterator[tuple[str, str]]:
    """Every page as path and HTML, one at a time. Equal runs give equal bytes; nothing but the run is read."""
    catalogues = [one if isinstance(one, Catalogue) else catalogue(one) for one in languages]
    _check([one.language for one in catalogues])
    for edition in editions(run, catalogues, site):
        for path, html in edition_pages(edition):
            yield f"{edition.folder}{path}", html


def _check(codes: Sequence[str]) -> None:
    """Refuse codes that are no names for folders beside the pages, and one that is there twice."""
    problems = [
        Problem(repr(code), "is no code of a language, such as fr or pt-BR")
        for code in codes
        if not _CODE.fullmatch(code)
    ]
    if not codes or len({code.lower() for code in codes}) < len(codes):
        problems.append(Problem("", f"each of one or more is named once (got {', '.join(codes) or 'none'})"))
    if problems:
        raise InputError("languages", problems)


def edition_pages(edition: Edition) -> Iterator[tuple[str, str]]:
    """The pages of one language, as paths below its folder."""
    yield from _index(edition)
    yield from _claims(edition)
    yield "panel.html", _panel(edition)
    yield from _measurements(edition)
    yield "rules.html", _rules(edition)
    yield "changelog.html", _changelog(edition)
    yield "method.html", edition.page(method_page(edition.words))
    yield from handed_on(edition)
    yield CARD, share_card(edition)
    yield from agent_pages(edition)
    yield from edition.frame.files()


def _index(edition: Edition) -> Iterator[tuple[str, str]]:
    """The first page, and the values behind its figure."""
    book, words = edition.book, ModelWords(edition.words.catalogue)
    run = book.run
    accounts, data = accounts_section(book, words)
    source = words("index.source", source=clean(run.source, 300)) if run.source else ""
    counts = ", ".join(f"{n} {what}" for _, n, what in tally(book, words))
    everything = words("index.reasons", all=words("index.all", n=len(run.decided.verdicts)))
    held, latest = holdings_blocks(book, words), latest_blocks(book, words)
    columns = [
        (Group(words.say(f"accounts.{name}"), blocks),)
        for name, blocks in (("holdings", held), ("latest", latest))
        if blocks
    ]
    sections = [accounts] if accounts else []
    sections.append(_board(book, words))
    if columns:
        now = words.say("accounts.now_lede", day=words.day(run.last))
        sections.append(Section("now", words.say("accounts.now"), now, (Beside(tuple(columns)),)))
    files = (
        ("verdicts", VERDICTS),
        ("standings", STANDINGS),
        ("decisions", DECISIONS),
        *([("accounts", DATA)] * bool(data)),
    )
    downloads = (
        bold(words("index.download")),
        ": ",
        spaced((Linked(words(f"index.{key}"), file) for key, file in files), ", "),
    )
    deeper = (Items((*go_deeper(words), downloads), "defs"),)
    sections.append(Section("deeper", words.say("accounts.deeper.title"), "", deeper))
    if run.notes:
        texts = tuple(words.text(note) for note in run.notes)
        sections.append(Section("notes", words("index.notes"), "", (Items(texts),)))
    page = Page(
        "index.html",
        clean(run.title or run.name, 120),
        season_lede(edition),
        tuple(sections),
        (
            *notes((_state(edition), _reference(edition), source), "notice"),
            level_blocks([one.block(words) for one in said_levels(book, words)]),
            Text((f"{counts}. ", Linked(everything, "claims.html"), " · ", Linked(words("index.share"), CARD))),
        ),
        aside=tuple(_moments(edition)),
        heading=words("index.day", season=clean(run.title or run.name, 120), n=run.days, of=run.planned)
        if run.planned > run.days
        else "",
        here="index",
        description=next((one.copy for level in said_levels(book, words) for one in level.shown), season_lede(edition)),
        picture=(f"{run.url.rstrip('/')}/{edition.folder}" if run.url else "") + preview_name(),
        feeds=(("application/rss+xml", RSS), ("application/feed+json", JSON_FEED)),
        styles=("season-tables.css", "brush.css"),
        scripts=("page.js+sort.js" + "+next.js" * bool(run.next_decision), "brush.js"),
    )
    yield "index.html", edition.page(page)
    if data:
        yield DATA, data


def _moments(edition: Edition) -> Iterator[Inline]:
    """When it was decided last, when it is next, when it ends, and how it can be followed."""
    run, words = edition.book.run, edition.words
    for key, moment in (("next", run.next_decision), ("decided", run.decided_at)):
        if moment:
            at = Markup('<time datetime="{}">{}</time>').format(clean(moment, 40), words.day(moment))
            yield bold(words(f"index.{key}")), " ", at
    feeds = [Linked("RSS", RSS), Linked("JSON Feed", JSON_FEED)]
    feeds += [Linked(words("index.calendar"), CALENDAR)] if run.next_decision else []
    ends = [f"{words('index.closes')} {words.day(run.closes)}"] if run.planned > run.days else []
    yield spaced((*ends, *feeds), " · ")


def _state(edition: Edition) -> Inline:
    """That a season runs or was stopped, or that decisions are missing, with how far it is; empty where it is whole."""
    run, words = edition.book.run, edition.words
    made, expected = sum(map(len, run.steps.values())), run.days * len(run.agents)
    if run.planned > run.days:
        key, n, of = "running" if run.live else "stopped", run.days, run.planned
    elif run.steps and made < expected and not run.source:
        key, n, of = "partial", made, expected
    else:
        return ""
    drawn = Markup('<progress max="{}" value="{}" aria-label="{}"></progress>').format(of, n, words("index.progress"))
    what = words(f"index.state.{key}", n=n, of=of, left=of - n)
    return bold(words(f"index.state.{key}_name")), " ", what, " ", drawn


def method_page(words: Words) -> Page:
    """How a season is run, graded and decided, what its numbers do not show, and how they can mislead."""
    parts = ("asked", "graded", "decided", "checked", "limits", "failures")
    sections = []
    for part in parts:
        lines = tuple(words(f"method.{part}.{at}") for at in range(1, 9) if words.has(f"method.{part}.{at}"))
        sections.append(Section(part, words(f"method.{part}.title"), "", (Items(lines),)))
    lead = (
        f"{words('method.lede')} ",
        Linked(words("rules.title"), "rules.html"),
        ", ",
        Linked(words("changelog.title"), "changelog.html"),
    )
    return Page("method.html", words("method.title"), lead, tuple(sections), here="method")


def _board(book: SeasonLookup, words: ModelWords) -> Section:
    """The leaderboard, tier by tier, with the baselines below; folded under it the points of each axis."""
    view = board_view(book, words)
    rows: list[Row] = []
    for one in view.rows:
        ranks: Inline = (
            Styled(one.band, "un")
            if not one.places
            else (bold(one.places), *((small(one.note),) if one.note != one.why else ()))
        )
        total: Inline = (
            one.total if one.note else strong_link(one.total),
            small("; ".join(filter(None, (one.band, one.tier)))),
        )
        drawn = Markup('<span role="img" aria-label="{}">{}</span>').format(one.drawn, Markup(one.strip))
        verdict = (level_words(one.level, one.tag), small(one.why))
        agent = (Linked(one.agent, one.link), small(one.family))
        rows.append(Row((agent, ranks, total, drawn, *map(_cell, one.facts), verdict)))
    for name, facts in view.baselines:
        rows.append(Row((name, "", Styled(words("board.unjudged"), "un"), "", *map(_cell, facts), ""), style="base"))
    heads: tuple[Inline, ...] = (
        words("board.agent"),
        words("board.position"),
        (words("board.total"), " ", small(words("board.scale"))),
        (Markup('<span class="skip">{}</span>').format(words("board.drawn")), Markup(view.head)),
        words("board.return"),
        words.say("accounts.versus"),
        words.say("earned.head.fall"),
        words("board.verdict"),
    )
    styles = ("", "p", "t", "b", "r", "r", "r", "v")
    table = Table(heads, tuple(rows), summary="", stacked=True, style="board season", wide=True, columns=styles,
                  sorts=frozenset((0, 4, 5, 6)))  # fmt: skip
    axes = Table(
        (words("board.agent"), *view.columns),
        tuple((one.agent, *(_cell(cell) for _, cell in one.cells)) for one in view.rows),
        frozenset(range(1, 1 + len(view.columns))), "",
    )  # fmt: skip
    below = Group(words.say("accounts.more_parts"), (axes, *notes((" ".join(view.notes),))), folded="closed")
    design = Text(spaced(view.design, " ")) if view.design else None
    unranked = (Text(view.unranked, "notice"),) if view.unranked else ()
    blocks = (*unranked, table, below, *((design,) if design else ()))
    return Section("board", words("board.title"), view.judges, blocks)


def _cell(cell: Cell) -> Inline:
    return Styled(cell.text, "un") if cell.missing else cell.text


def season_lede(edition: Edition) -> str:
    """Who took part, with what, for how long, and who graded it."""
    run, words = edition.book.run, edition.words
    agents, judges = len(run.agents), edition.book.graders
    strategies = any(one.strategy for one in run.agents)
    told = "index.prompt" if run.prompt else "index.strategies" if strategies else "index.untold"
    capital = words("index.no_capital")
    if run.capital is not None:
        capital = words("index.capital", capital=words.money(run.capital), currency=clean(run.currency, 12))
    text = words(
        "index.lede",
        agents=words("index.agents", n=agents, few=words.few(agents)),
        prompts=words(told),
        universe=words("index.universe", n=len(run.universe), count=words.count(len(run.universe))),
        capital=capital,
        days=words("index.days", n=run.days, count=words.count(run.days)),
        first=words.day(run.first),
        last=words.day(run.last),
        judges=words("index.judges", n=judges, few=words.few(judges)),
    )
    return ". ".join(part[:1].upper() + part[1:] for part in text.split(". "))


def _reference(edition: Edition) -> str:
    """That agents or judges are ours and no models that anybody made to trade or to judge."""
    run, words = edition.book.run, edition.words
    agents, judges = (bool(who) and all(one.reference for one in who) for who in (run.agents, run.judges))
    if not agents and not judges:
        return ""
    return words(f"index.reference.{'both' if agents and judges else 'agents' if agents else 'judges'}")


def _claims(edition: Edition) -> Iterator[tuple[str, str]]:
    words = edition.words
    pages = in_parts("claims", paged_by(claim_cards(edition.book, words), lambda _: 1, CARDS))
    tags: dict[str, str] = {level: words(f"level.{level}.tag") for level in LEVELS}
    for name, rows, parts in beside(pages.items(), part=words("frame.part"), parts=words("frame.parts")):
        found = words.filters([row.level for row in rows], tags)
        listing = (
            Listing(rows, found, words("claims.what"), "claim-rows") if rows else Text(words("claims.none"), "none")
        )
        page = Page(name, words("claims.title"), words("claims.lede"), blocks=(listing,), parts=parts, here="claims")
        yield name, edition.page(page)


def _panel(edition: Edition) -> str:
    site = edition.to_root
    records = f"{site}{OVERVIEW}" if edition.book.run.records else ""
    return edition.page(panel_page(edition.book, edition.words, site, records))


def _measurements(edition: Edition) -> Iterator[tuple[str, str]]:
    book, words = edition.book, edition.words
    for name, found, parts in beside(book.measured.items(), part=words("frame.part"), parts=words("frame.parts")):
        rows = worded_rows(book, found, words, edition.to_root)
        resting = any(row.rests for row in rows)
        kinds = ("kind", "about", "value", "interval", "n", "method", *(["rests"] if resting else []))
        groups = [row.group for row in rows]
        table = Table(
            tuple("n" if kind == "n" else words(f"measured.{kind}") for kind in kinds),
            tuple(measured_row(row, resting) for row in rows), frozenset({2, 3, 4}), "", stacked=True,
            id="measured-rows", filters=words.filters(groups, {group: group for group in groups}),
            what=words("measured.what"),
        )  # fmt: skip
        lead = f"{words('measured.lede')} ", Linked(words("claims.title"), "claims.html")
        blocks = (table,) if rows else (Text(words("measured.none"), "none"),)
        title = words("measured.title")
        yield (
            name,
            edition.page(Page(name, title, lead, blocks=blocks, parts=parts, here="measurements", styles=STYLES)),
        )
