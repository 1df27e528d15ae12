"""The pages of a study: self-contained HTML without network access, with one card for every claim. Everything from
records is escaped by the templates, and scripts are allowed by their hashes. The card of an unsupported claim has no
sentence, no direction and nothing that distinguishes one agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.claims import ClaimKind, certificate_name, kind_of, suppressed_phrase
from assaymark.records import AGGREGATE, Level, Measurement, sha256_text
from assaymark.report import blocks as b
from assaymark.report import measurements as measures
from assaymark.report.blocks import Block, Inline
from assaymark.report.inputs import AssayRun, RunIndex, judged_range, ranked_alone, score_words, supported_orders
from assaymark.report.levels import (
    amended_words,
    built_in_words,
    claim_quote,
    leaderboard_section,
    ordered_verdicts,
    rule_words,
)
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, by_file, with_pager
from assaymark.report.records.calls import OVERVIEW, RECORDS, Lineage, ReadCalls
from assaymark.report.records.judgments import Calls, StudyProvenance, lineage
from assaymark.report.study.agreement import agreement_section, ranks_section, single_section, stability_section
from assaymark.report.study.bench import FLIP, first_scores, flip_words, sentence_pages
from assaymark.report.study.checks import checks_of, explanations_section
from assaymark.report.study.claim_map import map_page
from assaymark.report.study.controls import controls_section, holdout_group, people_section
from assaymark.report.study.cycle import CLOSES, agents_section, example_closes, example_page
from assaymark.report.study.overview import overview
from assaymark.report.study.plan import cost_section, noise_section, panel_section, plan_section, records_section
from assaymark.report.text import LEVELS, RANK, TAGS, cell_title, counted, listing, moment, plural, short_hash, words
from assaymark.text import clean, count, prose, span

_NAV: Final = (
    Link("overview", "index.html", "Overview"),
    Link("claims", "claims.html", "Sentences"),
    Link("agents", "agents.html", "Agents"),
    Link("agreement", "agreement.html", "Agreement"),
    Link("facts", "fact-check.html", "Fact check"),
    Link("map", "claim-map.html", "Claim map"),
    Link("measurements", "measurements.html", "Measurements"),
    Link("plan", "plan.html", "Plan"),
)
_PLAN: Final = ("What was fixed before the scores were seen, and who judged.", "The rules that the scores were put to.")
_CARDS: Final = 120_000
"""Maximum bytes of cards on one page: with its frame a page stays below 200 KB."""

_CARD_BYTES, _LINKS, _RULED = 300, 12, 6
_NAMED: Final = ("agent", "judge", "a", "b", "format", "cell", "split")
_KINDS: Final[Mapping[ClaimKind, str]] = {
    "first": "first rank", "pair": "ranking of two agents", "within": "two agents within the margin",
    "cell": "control texts",
}  # fmt: skip
# The measurements behind an unsupported claim are listed only as far as they are the same for every agent.
_SHOWN_UNSUPPORTED: Final[Mapping[ClaimKind, tuple[str, ...]]] = {
    "first": ("kappa.", "contrast", "cell."),
    "pair": (
        "kappa.", "contrast", "lofo.contrast", "recusal.", "length.", "judges.", "dimension.", "order.", "probe.",
        "cell.", "terse.", "length_matched.",
    ),
    "within": ("kappa.", "contrast", "lofo.contrast", "recusal.", "length.", "cell.", "terse."),
    "cell": ("cell.", "kappa."),
}  # fmt: skip

_OF_AGENTS: Final = frozenset(("score.effect", "lofo.effect", "single.level", "rank.first"))
"""Scores and ranks of single agents; a rank is not a score, so it is never replaced by the range of the judges."""

_AGREED: Final = ("kappa.mean_pairwise", "cell.agreement", "cell.kappa")


def render_pages(run: AssayRun, site: Site = ALONE) -> Mapping[str, str]:
    """Every page of a run, as relative path -> HTML. Equal runs give equal bytes.

    Examples
    --------
    >>> from assaymark.protocol import JudgeSpec, Study
    >>> from assaymark.report import RubricView
    >>> study = Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/j", family="f"),))
    >>> run = AssayRun(study=study, plan_hash="0" * 64, locked_at=None, verdicts=(), measurements=(), decisions=(),
    ...                rubric=RubricView(name="v1.0", title="A rubric", dimensions=()), evidence=())
    >>> sorted(path for path in render_pages(run) if path.startswith(("c", "i", "l", "m")))
    ['claim-map.html', 'claims.html', 'controls.html', 'index.html', 'ledger/page-001.html', 'measurements.html']
    """
    return dict(each_page(run, site))


def each_page(
    run: AssayRun, site: Site = ALONE, read: ReadCalls | None = None, calls: Calls = "all", *, brief: bool = False
) -> Iterator[tuple[str, str]]:
    """The pages of `render_pages`, one at a time, and those of single calls if there is a ledger to read. A run with
    judgments has pages of them and of decisions below ``judgments/`` and ``decisions/``. A ``brief`` report has no
    cards of claims and no rows of measurements; its sentences state what decides them."""
    index, frame = RunIndex.of(run), study_frame(run, site, brief)
    if brief:
        yield from ((page.path, frame.page(page)) for page in _pages(index, (), {}))
        yield from frame.files()
        return
    trail = StudyProvenance.of(run) if run.judgments else None
    rows = measures.fact_check_rows(index, {} if trail is None else trail.decisions)
    sources: Lineage = (lambda _: ()) if trail is None else lineage(trail, run.evidence)
    measured = measures.measurement_parts(study_measurements(index, sources))
    # Claims link to measurements, and pages to both.
    index = replace(index, links=measures.measurement_links(measured), cache={})
    parts = by_file("claims", cards(index), _CARDS,
                    lambda row: len(str(row[1]).encode(errors="surrogatepass")) + _CARD_BYTES)  # fmt: skip
    places = {claim: f"{name}#{card.id}" for name, group in parts.items() for claim, card in group}
    index = replace(index, claims=places)
    if trail is not None:
        yield from trail.pages(frame, read, calls)
    for page in _pages(index, rows, {path: [card for _, card in group] for path, group in parts.items()}):
        yield page.path, frame.page(page)
    yield from measures.measurement_pages(frame, measured)
    yield from frame.files()
    if closes := example_closes(index):
        yield CLOSES, closes


def _pages(index: RunIndex, rows: Sequence[b.PageRow], claims: Mapping[str, Sequence[b.Card]]) -> Iterator[b.Page]:
    """Every page of blocks: the first one, then one for each topic that it links to."""
    # The other pages as (whether it exists, words, path, description).
    run, table = index.run, index.run.table is not None
    when = f"locked {moment(run.locked_at).partition(',')[0]}" if run.locked_at else "not locked"
    listed, controls = bool(claims) or not table, not table or bool(run.study.cells_judged)
    ways = [
        (listed, "All sentences", "claims.html", f"{count(len(run.verdicts))}, with reasons"),
        (True, "Agents", "agents.html", f"{count(len(index.agents))}, ranks and conduct"),
        (True, "Agreement", "agreement.html", counted(len(run.study.judges), "judge")),
        (True, "Stability", "stability.html", "rankings without each judge"),
        (controls, "Control texts", "controls.html", "texts of known quality"),
        (not table, "Fact check", "fact-check.html", f"{counted(len(rows), 'number')} in the texts"),
        (not table and bool(run.datasheets), "Judges’ own tests", "datasheets.html",
         counted(len(run.datasheets), "datasheet")),
        (not table and bool(run.judgments), "Records", OVERVIEW, f"{counted(run.calls, 'call')}, prompt and reply"),
        (not table, "Claim map", "claim-map.html", "every experiment"),
        (listed, "Measurements", "measurements.html", f"{count(len(run.measurements))}, with n and method"),
        (True, "Plan", "plan.html", "the rules, and their defaults" if table else when),
    ]  # fmt: skip
    deeper = [
        ("Any sentence", path, "with what decides it" if path == "sentences.html" else f"on {score_words(dimension)}")
        for path, dimension in reversed(first_scores(index).items()) if table
    ] + [(words, path, intro) for there, words, path, intro in ways if there]  # fmt: skip
    yield overview(index, deeper)
    yield from sentence_pages(index)
    lead = (
        "Every candidate of the plan with its checks, in the order in which they are decided. A claim that is not "
        "supported is named without the direction that the panel saw."
    )
    verify = b.code("assaymark claim --verify certificate.json")
    for path, shown, links in with_pager(claims.items()):
        filters = b.row_filters([card.level for card in shown], TAGS)
        listing = b.CardList(tuple(shown), filters, "claims", "claim-rows")
        yield b.Page(path, "All sentences", lead, (), (listing,), links,
                   here="claims", foot=("To check a certificate without any text of the agents: ", verify))  # fmt: skip
    if not table:
        yield map_page(index, index.links)
    pages: list[tuple[str, str, str, tuple[b.Section | None, ...]]] = [
        ("agents", "Agents", "How the agents rank, and what they were shown and did.",
         (leaderboard_section(index), ranks_section(index), agents_section(index))),
        ("agreement", "Agreement of the judges", "How far the judges agree, together and one by one.",
         (agreement_section(index), people_section(index), single_section(index), noise_section(index))),
        ("stability", "Stability of the rankings", "What a ranking needs in addition to a significant difference.",
         (stability_section(index, holdout_group(index)), explanations_section(index), rules_section(index))),
    ]  # fmt: skip
    if controls:
        pages.append(("controls", "Control texts", "Texts whose right treatment is known.", (controls_section(index),)))
    more = () if table else (panel_section(index), cost_section(index), records_section(index))
    pages.append(("plan", "Plan", _PLAN[table], (plan_section(index), *more)))
    if not table:
        intro = "The numbers in the texts against what their authors could see."
        pages.append(("fact-check", "Fact check", intro, (measures.evidence_section(index),)))
    for name, title, intro, sections in pages:
        there = tuple(section for section in sections if section is not None)
        styles = {"agreement": ("judges.css",), "stability": ("rules.css",)}.get(name, ())
        yield b.Page(f"{name}.html", title, intro, there, here="facts" if name == "fact-check" else name, styles=styles)
    if not table:
        yield from measures.fact_check_pages(rows)
        if (example := example_page(index)) is not None:
            yield example


def study_frame(run: AssayRun, site: Site = ALONE, brief: bool = False) -> Frame:
    """The frame of every page of a study, including the datasheets of its judges."""
    title, mark = run.study.title or run.study.name, short_hash(clean(run.plan_hash))
    if run.table is not None:
        omitted = {"facts", "map", *(("claims", "measurements") if brief else ())}
        nav = tuple(link for link in _NAV if link.key not in omitted)
        return Frame(clean(run.study.title or f"Table {run.table.source}", 120), mark, nav, site)
    records = (Link(RECORDS, OVERVIEW, "Records"),) if run.judgments else ()
    judges = (Link(JUDGES, "datasheets.html", "Judges"),) if run.datasheets else ()
    return Frame(clean(title, 120), mark, (*_NAV[:-1], *records, _NAV[-1], *judges), site)


def cards(index: RunIndex) -> tuple[tuple[str, b.Card], ...]:
    """A card for every verdict, with the id of its claim; measurements link to their rows."""
    listed: list[tuple[str, b.Card]] = []
    effects = {"stops": b.bold("Stops here."), "condition": b.bold("Condition.")}
    for verdict in ordered_verdicts(index):
        level, claim, kind = verdict.publication_level, verdict.claim, kind_of(verdict.claim)
        claimed, (tests, unreached) = level != "no-claim", checks_of(index, verdict)
        # The id of a card; a hash of the claim id would reveal the direction of a pair.
        anchor = f"k{sha256_text('|'.join((kind, claim.dimension, *sorted(claim.subjects))))[:10]}"
        blocks: list[Block] = [] if claimed else [b.Prose(prose(suppressed_phrase(claim), 400), "up")]
        if claimed:
            needed = (prose(condition.text, 400) for condition in verdict.conditions)
            conditions = list(filter(None, (built_in_words(index, verdict), *needed)))
            quote = claim_quote(index, verdict, f"q{anchor}")
            blocks.append(replace(quote, condition="") if conditions else quote)
            blocks += [b.Prose(b.bold("Say also:"), "also"), b.Items(tuple(conditions), "whys")] if conditions else []
        checks: list[Inline] = [
            (f"{check.name}: ", check.text, *((" ", effects[check.effect]) if check.effect else ())) for check in tests
        ]
        checks += [f"Not reached: {', '.join(unreached).lower()}"] if unreached else []
        blocks += [b.Prose(b.bold("Checks"), "also"), b.Items(tuple(checks), "whys")]
        if amended := amended_words(verdict.amended):
            blocks.append(b.Prose(b.bold(amended), "why"))
        # The level under each other rule, rules with one level together.
        rules: Inline = "" if verdict.fragility else "No other rule was tried."
        if verdict.fragility and not claimed and kind == "first":
            rules = "Not shown: it would show who leads."
        elif verdict.fragility:
            by_level: dict[Level, list[str]] = {}
            for rule, other in sorted(verdict.fragility.items()):
                by_level.setdefault(other, []).append(rule_words(rule))
            each = sorted(by_level, key=lambda name: (name != level, RANK[name]))
            rules = b.chained((f"Holds: {listing(by_level[one])}" if one == level else
                            (b.Mark(one, TAGS[one]), f": {listing(by_level[one])}") for one in each), ". ")  # fmt: skip
        facts: list[tuple[str, Inline]] = [("Other rules", rules)]
        # The measurements behind a claim, kind by kind, each linked to its row.
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in dict.fromkeys(verdict.measurements):
            item = index.by_id.get(name)
            if item is not None and name in index.links and (claimed or name.startswith(_SHOWN_UNSUPPORTED[kind])):
                groups.setdefault(item.name, []).append((_label_words(index, item, claim.dimension), index.links[name]))
        if groups:
            kinds = ((f"{measurement_title(name, index.sign)}: ",
                      b.chained(b.Linked(words, link) for words, link in sorted(ways)[:_LINKS]),
                      f" and {len(ways) - _LINKS} more" if len(ways) > _LINKS else "")
                     for name, ways in groups.items())  # fmt: skip
            total = "" if kind != "first" else "What differs from agent to agent is left out: it would show who leads."
            if claimed:
                total = f"{count(n)} in all." if (n := len(set(verdict.measurements))) > 1 else ""
            sources = b.chained(kinds, ". ")
            facts.append(("Rests on", (sources, b.small(f" {total}")) if total else sources))
        # The file of the certificate; for a pair its name reveals the order.
        file: Inline = b.code(clean(f"certificates/{certificate_name(verdict)}", 200))
        if kind == "within" or (kind == "pair" and not claimed):
            file = ("in ", b.code("certificates/"), "; its name has the direction in it")
        about = f"{_KINDS[kind]}, {index.title(claim.dimension)}"
        card = b.Card(level, TAGS[level], about, tuple(blocks), (*facts, ("Certificate", file)), anchor)
        listed.append((claim.id, card))
    return tuple(listed)


def study_measurements(index: RunIndex, lineage_of: Lineage = lambda _: ()) -> tuple[measures.MeasurementRow, ...]:
    """All measurements; unsupported differences are hidden, and scores within a tier are ranges of judges."""
    orders = {d: {frozenset(pair) for pair in supported_orders(index, d)} for d in index.dimensions}
    alone = {d: ranked_alone(index, d) for d in index.dimensions}

    def shown(key: str, value: str) -> str:
        if key == "dimension":
            return index.title(value)
        return clean(cell_title(value) if key == "cell" else value, 80)

    def hidden(item: Measurement) -> str:
        dimension = item.labels.get("dimension", AGGREGATE)
        if {"high", "low"} <= item.labels.keys():
            ordered = frozenset((item.labels["high"], item.labels["low"])) in orders.get(dimension, ())
            return "" if ordered else "not shown: no supported ranking"
        if item.name in _OF_AGENTS and item.labels.get("agent") not in alone.get(dimension, ()):
            bounds = None if item.name == "rank.first" else judged_range(index, dimension, item.labels.get("agent", ""))
            reason = "the agent shares its tier" if index.on(dimension, "pair") else "no ranking on it was tested"
            return f"not shown: {reason}" if bounds is None else f"{span(*bounds)}, range of the judges; {reason}"
        return ""

    kinds = measures.quantities("study")
    ours = {name: {**kinds[name], "title": measurement_title(name, index.sign)} for name in _AGREED}
    return measures.table_rows(index.run.measurements, {**kinds, **ours}, hidden, lineage_of, shown)


def measurement_title(name: str, sign: str = "κ") -> str:
    """The title of a kind of measurement; an unknown one keeps its name. ``sign`` is the symbol of agreement."""
    title = measures.quantities("study").get(name, {}).get("title", clean(name, 60))
    return title.replace("κ", sign) if name in _AGREED else title


def _label_words(index: RunIndex, item: Measurement, dimension: str) -> str:
    """The labels that distinguish a measurement from its neighbours; two agents in alphabetical order."""
    labels = item.labels
    pair = sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels)
    words = [" and ".join(pair)] if pair else []
    words += [f"without judge family {clean(labels['dropped'], 60)}"] if "dropped" in labels else []
    words += [clean(labels[key], 60) for key in _NAMED if key in labels]
    about = labels.get("dimension", dimension)
    return ", ".join([*words, index.title(about)] if about != dimension or not words else words)


def rules_section(index: RunIndex) -> b.Section | None:
    """First supported claims under each other rule, and how many would move; None without, or if none is testable."""
    verdicts = [] if index.untestable else [v for v in index.run.verdicts if v.fragility]
    names = sorted({rule for v in verdicts for rule in v.fragility})
    if not names:
        return None
    # The level of an unsupported claim under another rule would reveal its direction.
    ordered, rows = ordered_verdicts(index), list[tuple[Inline, ...]]()
    supported = [v for level in LEVELS[:2] for v in ordered if v.publication_level == level and v.fragility]
    for verdict in supported[:_RULED]:
        level, href = verdict.publication_level, index.claims.get(verdict.claim.id, "")
        text = prose(verdict.claim.statement, 400).removesuffix(".")
        cells: list[Inline] = [(text, " ", b.Linked("Rests on", href)) if href else text, b.Mark(level, TAGS[level])]
        for rule in names:
            other = verdict.fragility.get(rule)
            cells.append("not tried" if other is None else "holds" if other == level else b.Mark(other, TAGS[other]))
        rows.append(tuple(cells))
    levels, moves = [v.publication_level for v in verdicts], []
    for rule in names:
        steps = [RANK[v.fragility.get(rule, v.publication_level)] - RANK[v.publication_level] for v in verdicts]
        ways = ((sum(step < 0 for step in steps), "lower"), (sum(step > 0 for step in steps), "higher"))
        moves.append(", ".join(f"{count(n)} {way}" for n, way in ways if n) or "all hold")
    locked = ", ".join(f"{count(levels.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in levels)
    rows.append((f"All {count(len(verdicts))} claims", locked, *moves))
    moved = sum(any(level != v.publication_level for level in v.fragility.values()) for v in verdicts)
    under = f"under {'the one other rule' if len(names) == 1 else f'any one of {words(len(names))} other rules'}"
    verdict_words = plural(moved, "verdict").capitalize() if moved else "No verdict"
    columns = ("Claim", "Locked rule", *(rule[:1].upper() + rule[1:] for rule in map(rule_words, names)))
    reason = "" if FLIP in names else flip_words(index)
    return b.Section(
        "rules", "What would change under another rule?",
        f"{verdict_words} of {count(len(verdicts))} would change {under}, which the plan did not lock.",
        (b.Table(columns, tuple(rows), summary="", stacked=True, style="frag"),
         *b.notes([f"Not counted: {rule_words(FLIP)}. {reason}" if reason else ""])),
    )  # fmt: skip
