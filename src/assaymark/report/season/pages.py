"""The site of a season: every page in every language as text, and a function that writes it to an empty folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from assaymark.claims.messages import Catalogue, catalogue, languages, phrase
from assaymark.claims.season_plan import Season
from assaymark.errors import InputError, Problem
from assaymark.judging.season.plans import PROCESS, ScoringPlan, load_scoring, scoring_names
from assaymark.plan import Frozen
from assaymark.records import sha256_text
from assaymark.report import blocks as b
from assaymark.report.blocks import code
from assaymark.report.measurements import STYLES, page_rows
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, by_file, frame_words, with_pager
from assaymark.report.season import feeds
from assaymark.report.season.agent import agent_pages
from assaymark.report.season.decisions import DATA, DRAWN, account_figure, holdings_section
from assaymark.report.season.index import Language, SeasonIndex, SeasonRun
from assaymark.report.season.leaderboard import formula, season_leaderboard
from assaymark.report.season.levels import claim_card, level_blocks, localised_row, season_levels, season_tally
from assaymark.report.season.panel import panel_page
from assaymark.report.text import LEVELS, block, short_hash
from assaymark.text import clean

_CODE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_RULES: Final = ("season-panel.css",)
_NAV: Final = ("index", "claims", "panel", "measurements", "rules", "method", "archive")

CARDS: Final = 100
"""Claims on one page: the same number in every language, so that every page has its translation."""

_PROMPTS: Final = 600_000
"""Maximum characters of all prompts on the page, which stays below a megabyte."""


def write_site(
    run: SeasonRun, out: Path, languages: Sequence[str | Catalogue] = languages(), site: Site = ALONE
) -> list[Path]:
    """Write the site of a season to an empty folder, and return the paths of its files."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(str(out), [Problem("folder", "holds something already; give a new or an empty one")])
    written = []
    for path, html in site_pages(run, languages, site):
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
        written.append(target)
        if target.name == feeds.CARD and feeds.preview_name() != feeds.CARD:
            written.append(target.with_name(feeds.preview_name()))
            written[-1].write_bytes(feeds.preview(html))
    return written


def site_pages(
    run: SeasonRun, languages: Sequence[str | Catalogue] = languages(), site: Site = ALONE
) -> Iterator[tuple[str, str]]:
    """Every page as path and HTML, one at a time. Equal runs give equal bytes; only the run is read."""
    catalogues = [language if isinstance(language, Catalogue) else catalogue(language) for language in languages]
    codes = [source.language for source in catalogues]
    problems = [
        Problem(repr(code), "is not a language code, such as fr or pt-BR")
        for code in codes
        if not _CODE.fullmatch(code)
    ]
    if not codes or len({code.lower() for code in codes}) < len(codes):
        problems.append(Problem("", f"each of one or more is named once (got {', '.join(codes) or 'none'})"))
    if problems:
        raise InputError("languages", problems)
    first, folders = SeasonIndex.of(run), [f"{code}/" if at else "" for at, code in enumerate(codes)]
    for language, folder in zip(catalogues, folders, strict=True):
        depth = folder.count("/")
        index = replace(first, words=Language(language), up="../" * depth)
        frame = season_frame(run, site.below(depth), index)
        for page in _edition(index, folder, frame):
            if isinstance(page, b.Page):
                # The same page in every language: code, name and link; no link to itself.
                out = "../" * (folder + page.path).count("/")
                switch = [
                    (other.language, other.name, "" if to == folder else f"{out}{to}{page.path}")
                    for other, to in zip(catalogues, folders, strict=True)
                ]
                page = page.path, frame.page(page, switch)
            yield f"{folder}{page[0]}", page[1]
        yield from ((f"{folder}{path}", text) for path, text in frame.files())


def season_frame(run: SeasonRun, site: Site = ALONE, index: SeasonIndex | None = None) -> Frame:
    """The frame of the pages in the language of ``book``; by default in English at the top of the site."""
    index = index or SeasonIndex.of(run)
    nav = [Link(name, f"{name}.html", index.words(f"nav.{name}")) for name in _NAV]
    if any(sheet.startswith("datasheet/") for sheet in run.sheets.values()):  # the site has their pages
        nav.append(Link(JUDGES, f"{index.up}datasheets.html", index.words("nav.judges")))
    study, mark = clean(run.plan.title or run.plan.name, 120), short_hash(clean(run.plan_hash))
    return Frame(study, mark, tuple(nav), site, ("page.css", "season.css"), frame_words(index.words.catalogue))


def _edition(index: SeasonIndex, folder: str, frame: Frame) -> Iterator[b.Page | tuple[str, str]]:
    """The pages and files of one language, as paths below its folder."""
    words, undrawn = index.words, len(index.agents) - DRAWN
    # The figure of all accounts, and the file with its values; empty without recorded accounts.
    more = words.say("accounts.more", undrawn) if undrawn > 0 else ""
    accounts, data = account_figure(index, heading="", data=DATA, note=more) or (None, "")
    yield _index(index, folder, accounts)
    yield from [(DATA, data)] * bool(data)
    cards = [claim_card(index, verdict) for verdict in index.run.decided.verdicts]
    tags: dict[str, str] = {level: words(f"level.{level}.tag") for level in LEVELS}
    named = {"part": words("frame.part"), "parts": words("frame.parts")}
    for path, rows, parts in with_pager(by_file("claims", cards, CARDS, lambda _: 1).items(), **named):
        listing: b.Block = b.Prose(words("claims.none"), "none")
        if rows:
            listing = b.CardList(
                rows, words.filters([row.level for row in rows], tags), words("claims.what"), "claim-rows"
            )
        yield b.Page(path, words("claims.title"), words("claims.lede"), blocks=(listing,), parts=parts, here="claims")
    yield panel_page(index)
    for path, measured, parts in with_pager(index.measured.items(), **named):
        kinds = ("kind", "about", "value", "interval", "n", "method", "rests")
        heads, lines = page_rows(kinds, [localised_row(index, pair) for pair in measured])
        groups = [row.key for row in lines]
        table: b.Block = b.Table(
            tuple("n" if kind == "n" else words(f"measured.{kind}") for kind in heads), lines, frozenset({2, 3, 4}), "",
            stacked=True, id="measured-rows", filters=words.filters(groups, {group: group for group in groups}),
            search=words("measured.what"),
        )  # fmt: skip
        lead = f"{words('measured.lede')} ", b.Linked(words("claims.title"), "claims.html")
        blocks = (table if lines else b.Prose(words("measured.none"), "none"),)
        yield b.Page(
            path, words("measured.title"), lead, blocks=blocks, parts=parts, here="measurements", styles=STYLES
        )
    yield _rules(index)
    yield _changelog(index)
    sections = []
    for part in ("asked", "graded", "decided", "checked", "limits", "failures"):
        texts = tuple(words(f"method.{part}.{at}") for at in range(1, 9) if words.has(f"method.{part}.{at}"))
        sections.append(b.Section(part, words(f"method.{part}.title"), "", (b.Items(texts),)))
    rules, log = (b.Linked(words(f"{name}.title"), f"{name}.html") for name in ("rules", "changelog"))
    yield b.Page("method.html", words("method.title"), (f"{words('method.lede')} ", rules, ", ", log),
               tuple(sections), here="method")  # fmt: skip
    yield from feeds.feed_files(index, folder, frame.site)
    yield feeds.CARD, feeds.share_card(index)
    yield from agent_pages(index, frame.study or words("nav.index"))


def _index(index: SeasonIndex, folder: str, accounts: b.Figure | None) -> b.Page:
    run, words, levels, sections = index.run, index.words, season_levels(index), list[b.Section]()
    source = words("index.source", source=clean(run.source, 300)) if run.source else ""
    counts = ", ".join(f"{n} {noun}" for _, n, noun in season_tally(index))
    everything = b.Linked(words("index.reasons", all=words("index.all", len(run.decided.verdicts))), "claims.html")
    if accounts is not None:
        lede = words.say("accounts.lede")
        sections.append(b.Section("accounts", words.say("accounts.section"), lede, (accounts,)))
    sections += [season_leaderboard(index), *holdings_section(index)]
    deeper: list[b.Inline] = [
        (b.bold(words(f"nav.{key}")), ": ", b.Linked(words.say(f"accounts.deeper.{key}"), f"{key}.html"))
        for key in ("claims", "panel", "measurements", "rules", "method", "changelog", "archive")
    ]
    files = {"verdicts": feeds.VERDICTS, "standings": feeds.STANDINGS, "decisions": feeds.DECISIONS,
             **({"accounts": DATA} if accounts is not None else {})}  # fmt: skip
    links = b.chained((b.Linked(words(f"index.{key}"), file) for key, file in files.items()), ", ")
    deeper.append((b.bold(words("index.download")), ": ", links))
    sections.append(b.Section("deeper", words.say("accounts.deeper.title"), "", (b.Items(tuple(deeper), "defs"),)))
    if run.notes:
        sections.append(b.Section("notes", words("index.notes"), "", (b.Items(tuple(map(words.text, run.notes))),)))
    agents, judges = (bool(who) and all(one.built_in for one in who) for who in (index.agents.values(), run.plan.panel))
    built_in = "both" if agents and judges else "agents" if agents else "judges"
    reference = words(f"index.reference.{built_in}") if agents or judges else ""
    # The times of the last and the next decision and of the end, and feeds to follow.
    aside: list[b.Inline] = []
    for key, moment in (("next", run.next_decision), ("decided", run.decided_at)):
        if moment:
            at = Markup('<time datetime="{}">{}</time>').format(clean(moment, 40), words.day(moment))
            aside.append((b.bold(words(f"index.{key}")), " ", at))
    follow = [f"{words('index.closes')} {words.day(str(run.plan.calendar.last))}"] if run.planned > run.days else []
    follow += [b.Linked("RSS", feeds.RSS), b.Linked("JSON Feed", feeds.JSON_FEED)]
    follow += [b.Linked(words("index.calendar"), feeds.CALENDAR)] if run.next_decision else []
    # The state of an unfinished season (running, stopped, decisions missing), with its progress.
    decisions, expected, key, n, of = sum(map(len, run.steps.values())), run.days * len(run.plan.agents), "", 0, 0
    if run.planned > run.days:
        key, n, of = "running" if run.plan.market.live else "stopped", run.days, run.planned
    elif run.steps and decisions < expected and not run.source:
        key, n, of = "partial", decisions, expected
    state: b.Inline = ""
    if key:
        drawn = Markup('<progress max="{}" value="{}" aria-label="{}"></progress>')
        drawn, noun = drawn.format(of, n, words("index.progress")), words(f"index.state.{key}", n, of=of, left=of - n)
        state = b.bold(words(f"index.state.{key}_name")), " ", noun, " ", drawn
    title, lede = clean(run.plan.title or run.plan.name, 120), season_lede(index)
    quoted = [claim for level in levels for claim in level.claims if isinstance(claim, b.ClaimQuote)]
    return b.Page(
        "index.html", title, lede, tuple(sections),
        (
            *b.notes((state, reference, source), "notice"),
            level_blocks(levels),
            b.Prose((f"{counts}. ", everything, " · ", b.Linked(words("index.share"), feeds.CARD))),
        ),
        aside=(*aside, b.chained(follow, " · ")),
        heading=words("index.day", run.days, season=title, of=run.planned) if run.planned > run.days else "",
        here="index", description=quoted[0].copy if quoted else lede,
        picture=(f"{run.url.rstrip('/')}/{folder}" if run.url else "") + feeds.preview_name(),
        feeds=(("application/rss+xml", feeds.RSS), ("application/feed+json", feeds.JSON_FEED)),
        styles=("season-tables.css", "season-board.css", "brush.css"),
        scripts=("page.js+sort.js" + "+next.js" * bool(run.next_decision), "brush.js"),
    )  # fmt: skip


def season_lede(index: SeasonIndex) -> str:
    """The agents, their prompts, universe, capital and days, and the number of judges, in a sentence."""
    run, words, judges = index.run, index.words, index.graders
    source = "prompt" if run.plan.prompt else "strategies" if run.plan.strategies else "untold"
    capital = words("index.no_capital")
    if run.plan.has_books:
        capital = words("index.capital", capital=words.amount(run.plan.capital), currency=clean(run.plan.currency, 12))
    text = words(
        "index.lede",
        agents=words("index.agents", len(run.plan.agents), few=words.few(len(run.plan.agents))),
        prompts=words(f"index.{source}"),
        universe=words("index.universe", len(run.universe), count=words.amount(len(run.universe))),
        capital=capital, days=words("index.days", run.days, count=words.amount(run.days)),
        first=words.day(run.first), last=words.day(run.last),
        judges=words("index.judges", judges, few=words.few(judges)),
    )  # fmt: skip
    return ". ".join(part[:1].upper() + part[1:] for part in text.split(". "))


def _rules(index: SeasonIndex) -> b.Page:
    """The rules: fields and values from the locked file, weights from its scoring plan."""
    run, plan, words = index.run, index.run.scoring, index.words
    groups: dict[str, list[tuple[b.Inline, ...]]] = {}
    for group, name, value, key in season_rules(run.plan):
        row = code(clean(name, 80)), clean(value, 400) or words("rules.empty"), words.text(phrase(f"field.{key}"))
        groups.setdefault(group, []).append(row)
    columns = words("rules.field"), words("rules.value"), words("rules.meaning")
    facts = (
        (words("rules.season"), clean(run.plan.name, 80)), (words("rules.locked"), words.day(run.locked_at)),
        (words("rules.scoring"), words("rules.plan", version=plan.version, grader=clean(plan.grader, 80))),
        (words("rules.software"), f"assaymark {clean(run.software, 40)}"),
        (words("rules.hash"), code(clean(run.plan_hash, 80))),
    )  # fmt: skip
    bounds = (("strong", plan.bands.strong, 100), ("mixed", plan.bands.mixed, plan.bands.strong - 1),
              ("weak", 0, plan.bands.mixed - 1))  # fmt: skip
    band_rows = tuple((words.term("claim.band", name), words.range(*ends)) for name, *ends in bounds)
    bands = b.Group(words("rules.bands"), (b.Prose(words("rules.bands_note"), "cap"), b.Terms(band_rows)))
    tables = tuple((b.Group(title, (table,)),) for title, table in weight_tables(plan, words))
    fields = tuple(
        b.Group(words.term("rules.group", name), (b.Table(columns, tuple(rows), summary="", stacked=True),))
        for name, rows in groups.items()
    )
    # The formula of a total, sentence by sentence.
    number, parts, quick = words.catalogue.number, {part.name: part for part in plan.reasoning}, plan.efficiency
    shares, without = ({name: number(share, form) for name, share in plan.composite.shares(outcome=outcome).items()}
                       for outcome, form in ((True, "g"), (False, ".4g")))  # fmt: skip
    process = words.catalogue.names([words.part(parts[name]) for name in PROCESS])
    formulas = [
        words("formula.axis"), words("formula.process", parts=process), words("formula.composite", **shares),
        words("formula.without", **{name: without[name] for name in ("reasoning", "evidence", "process")}),
        formula(plan, words),
    ]  # fmt: skip
    if quick.weight:
        key = "formula.quick_relative" if quick.scale == "relative" else "formula.quick"
        limits = {} if quick.scale == "relative" else {"reference": number(quick.reference_s, "g")}
        formulas.append(words(key, least=number(quick.least_seconds, "g"), **limits))
    formulas += [words("formula.ties", level=words.percent(plan.ties.level, 0)), words("formula.reliability")]
    formulas += [] if run.source else [words("formula.returns")]
    # The prompt shared by all agents, under an empty name; or the strategy of each agent.
    of = run.plan.strategies
    texts = [("", run.plan.prompt)] if run.plan.prompt else [(name, of[name]) for name in index.agents if name in of]
    prompts = tuple(b.Passage(block(text, _PROMPTS // len(texts)), clean(name, 60)) for name, text in texts)
    shared = words("rules.shared") if run.plan.prompt else "" if texts else words("rules.no_prompt")
    sections = (
        b.Section("total", words("rules.total"), blocks=(b.Items(tuple(formulas)), bands)),
        b.Section("weights", words("weights.title"), words("weights.lede"), (b.Columns(tables, "tri"),)),
        b.Section("file", words("rules.file"), words("rules.file_lede"), fields),
        b.Section("prompt", words("rules.prompt"), shared, prompts),
    )
    return b.Page("rules.html", words("rules.title"), words("rules.lede"), sections, (b.Terms(facts),), here="rules",
                styles=_RULES)  # fmt: skip


OWN: Final = "season"
"""The group of fields outside all tables of the file."""

_NOT_RECORDED: Final = {(OWN, "bars"), (OWN, "news_days"), ("market", "seed"), ("market", "live"),
                        ("calendar", "decide_at")}  # fmt: skip
"""Fields that do not apply to imported seasons; neither does the table of the broker's rules."""


def season_rules(season: Season) -> list[tuple[str, str, str, str]]:
    """The fields of a season file in order, those outside tables first: group, name, value, key of the meaning."""
    rows: list[tuple[str, str, str, str]] = []
    for name in type(season).model_fields:
        value = getattr(season, name)
        if isinstance(value, Frozen):
            for inner, info in type(value).model_fields.items():
                shown = info.alias or inner
                rows.append((name, shown, _field_text(inner, getattr(value, inner)), f"{name}.{shown}"))
        elif name == "strategies":
            rows += [(name, agent, _field_text("prompt", text), name) for agent, text in sorted(value.items())]
        elif name in ("agents", "panel"):
            for spec in sorted(value, key=lambda entry: entry.name):
                settings = spec.model_dump(mode="json", exclude={"name"}, exclude_none=True)
                settings = {"model": settings.pop("model"), "family": settings.pop("family"), **settings}
                words = ", ".join(f"{key} = {_toml(setting)}" for key, setting in settings.items() if setting != {})
                rows.append((name, spec.name, words, name))
        else:
            rows.append((OWN, name, _field_text(name, value), f"{OWN}.{name}"))
    silent = _NOT_RECORDED | (set() if season.has_books else {(OWN, "capital"), (OWN, "currency")})
    if season.recorded:
        rows = [row for row in rows if row[0] != "rules" and row[:2] not in silent]
    return sorted(rows, key=lambda row: row[0] != OWN)


def _field_text(name: str, value: Any) -> str:
    """A value as written in the file; for a path its last part, for a long text its digest."""
    if value is None or (name == "prompt" and not value):
        return ""
    if name == "prompt":
        return f"sha256 {sha256_text(value)[:12]}"
    if isinstance(value, str):
        return Path(value).name if name in ("source", "grades") else value
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value.isoformat() if isinstance(value, (date, time)) else _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Frozen):
        value = value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        inner = ", ".join(f"{name} = {_toml(entry)}" for name, entry in value.items())
        return f"{{ {inner} }}" if inner else ""
    return json.dumps(value, ensure_ascii=False)


def weight_tables(plan: ScoringPlan, words: Language) -> Iterator[tuple[str, b.Table]]:
    """The weights of the components and of all parts of both axes, in percent, with their titles."""
    columns, number = (words("weights.part"), words("weights.percent")), words.catalogue.number
    shares = plan.composite.shares(outcome=True)
    whole: list[tuple[b.Inline, ...]] = [(words(f"axis.{name}"), number(share, "g")) for name, share in shares.items()]
    tables = [(words("weights.composite"), whole)]
    for axis, parts, omitted in (("reasoning", plan.reasoning, ()), ("evidence", plan.evidence, plan.not_applicable)):
        rows: list[tuple[b.Inline, ...]] = []
        for part in parts:
            twice = (b.small(words("weights.twice")),) if part.name in PROCESS else ()
            rows.append(((words.part(part), *twice), number(part.weight, ".4g")))
        for part in omitted:  # the season has no field for it; its weight is shared by the others
            note = b.small(words("weights.not_applicable", weight=number(part.weight, "g")))
            rows.append(((words.part(part), note), "0"))
        tables.append((words(f"weights.{axis}", words.few(len(parts))), rows))
    for title, rows in tables:
        yield title, b.Table(columns, tuple(rows), frozenset((1,)), "", style="slim")


def _changelog(index: SeasonIndex) -> b.Page:
    """The scoring plans of the package and the season's own, newest first, each compared with the one before it."""
    words, scoring = index.words, index.run.scoring
    plans = [load_scoring(name) for name in scoring_names()]
    if scoring.version not in {plan.version for plan in plans}:
        plans.append(scoring)

    def shown(value: Any) -> str:
        if isinstance(value, list):
            return words.catalogue.names([words.term("axis", str(axis)) for axis in value])
        if isinstance(value, (int, float)):
            return words.catalogue.number(value, "g")
        return words("changelog.absent") if value is None else words.term("scoring.value", str(value))

    def field(name: str) -> str:
        """The title of a field of a scoring plan, with its name."""
        return f"{words(f'scoring.field.{name}')} ({name})" if words.has(f"scoring.field.{name}") else name

    sections: list[b.Section] = []
    for at, plan in enumerate(plans):
        key, version = f"scoring.{plan.version}", clean(plan.version, 40)
        facts = (
            (words("changelog.grader"), clean(plan.grader, 80)), (words("changelog.total"), formula(plan, words)),
            (words("changelog.digest"), code(plan.digest)),
        )  # fmt: skip
        blocks: list[b.Block] = [b.Terms(facts)]
        if not at:
            blocks.append(b.Prose(words("changelog.first")))
        else:
            changes, same = differences(plans[at - 1], plan)
            before = clean(plans[at - 1].version, 40)
            rows = tuple((field(name), shown(old), shown(new)) for name, old, new in changes)
            table = b.Table((words("changelog.what"), before, version), rows, summary="", stacked=True)
            blocks.append(b.Group(words("changelog.against", version=before), (table,)))
            unchanged = words.catalogue.names([words.term("scoring.whole", name) for name in same])
            blocks += [b.Prose(words("changelog.same", fields=unchanged))] if same else []
        title = words(key) if words.has(key) else clean(plan.title, 120)
        tag = words("changelog.here") if plan.version == scoring.version else ""
        sections.append(b.Section(f"v-{len(plans) - at}", f"{version}: {title}", "", tuple(blocks), tag))
    return b.Page("changelog.html", words("changelog.title"), words("changelog.lede"), (*sections[::-1],),
                here="changelog", styles=_RULES)  # fmt: skip


def differences(before: ScoringPlan, after: ScoringPlan) -> tuple[list[tuple[str, Any, Any]], list[str]]:
    """The fields in which two plans differ, and the top-level fields that are equal."""

    def flat(name: str, value: Any) -> dict[str, Any]:
        """The values of a part of a plan by full name; parts of an axis by their own names."""
        if isinstance(value, Mapping):
            return {f"{name}.{key}": entry for key, entry in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            return {f"{name}.{entry['name']}": entry["weight"] for entry in value}
        return {name: value}

    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    fields = [name for name in new if name not in ("version", "title")]
    changed = [
        (name, old_values.get(name), new_values.get(name))
        for top in fields
        for old_values, new_values in [(flat(top, old[top]), flat(top, new[top]))]
        for name in dict.fromkeys((*old_values, *new_values))
        if old_values.get(name) != new_values.get(name)
    ]
    return changed, [name for name in fields if old[name] == new[name]]
