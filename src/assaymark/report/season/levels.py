"""Supported claims of a season with their conditions, unsupported claims, and measurements in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import Final

from assaymark.claims.messages import Phrase, built_in_text, phrase
from assaymark.claims.season_claims import SeasonVerdict
from assaymark.records import Level, Measurement
from assaymark.report import blocks as b
from assaymark.report.blocks import Block, ClaimQuote, Inline, Linked, Prose, Styled, WithheldGroup
from assaymark.report.measurements import MeasurementRow, quantities
from assaymark.report.season.index import AgentIndex, Language, SeasonIndex
from assaymark.report.text import LEVELS, bounds_of, known, limits
from assaymark.text import clean, end_digits

_FRONT: Final = ("first", "beats", "band")
_PAIRS: Final = ("above", "within")
_SHOWN, _GROUPS, _RESTS, _MOST = 20, 2, 6, 4
_ROOM: Final = 160
_SHARED: Final = ("season.kappa", "contrast", "length.contrast")
_UNTESTED: Final = "claim.reason.untested_first"
_NO_LEAD: Final = phrase("claim.reason.no_lead")


def _supported_pairs(single: Sequence[SeasonVerdict], among: Iterable[SeasonVerdict]) -> list[SeasonVerdict]:
    """The supported pairs of agents, if no claim about a single agent is supported; else empty."""
    if any(verdict.verdict.publication_level != "no-claim" for verdict in single):
        return []
    return [verdict for verdict in among if verdict.kind in _PAIRS and verdict.verdict.publication_level != "no-claim"]


def season_tally(index: SeasonIndex) -> list[tuple[Level, str, str]]:
    """Count the claims at each level, as (level, number, words)."""
    counts, words = Counter(verdict.verdict.publication_level for verdict in index.run.decided.verdicts), index.words
    return [(level, words.amount(counts[level]), words(f"level.{level}.tally")) for level in LEVELS]


Line = ClaimQuote | WithheldGroup


def season_levels(index: SeasonIndex) -> tuple[b.ClaimList, ...]:
    """The three levels in order: claims about single agents, else supported pairs; the rest is on another page."""
    verdicts, words, parts = index.run.decided.verdicts, index.words, []
    front = sorted((v for v in verdicts if v.kind in _FRONT), key=lambda v: _FRONT.index(v.kind))
    front += _supported_pairs(front, verdicts)
    for level in LEVELS:
        lines, first = [*islice(_lines(index, level, front), _SHOWN)], _GROUPS
        if level != "no-claim":  # as many as fit above the fold by their approximate heights, at least one
            texts = ((line.sentence, line.condition) for line in lines if isinstance(line, ClaimQuote))
            rows = ((1 + len(quote) // 52, (1 + len(also) // 66) * bool(also)) for quote, also in texts)
            heights = accumulate(21 + 27 * large + 21 * small for large, small in rows)
            first = max(sum(height <= _ROOM for height in heights), 1)
        # Only the page of all claims has the rest.
        rest = sum(verdict.verdict.publication_level == level for verdict in verdicts)
        rest -= sum(line.covers if isinstance(line, WithheldGroup) else 1 for line in lines)
        link: Inline = Linked(words("index.rest", rest), "claims.html") if rest else ""
        parts.append(_level(words, level, lines[:first], lines[first:], link))
    return tuple(parts)


def agent_levels(index: AgentIndex) -> tuple[b.ClaimList, ...]:
    """The levels that have a claim about an agent, or else about supported pairs with it."""
    parts, words = [], index.words
    of_agent = [verdict for verdict in index.run.decided.verdicts if index.agent.name in verdict.verdict.claim.subjects]
    front = [verdict for verdict in of_agent if verdict.kind not in _PAIRS]
    pairs = _supported_pairs(front, of_agent)
    for level in LEVELS:
        if lines := [*_lines(index.season, level, front + pairs)]:
            more, first = len(lines) - _MOST, 1 if level == "no-claim" or pairs else _GROUPS
            rest = Linked(words.say("said.more", more), "claims.html") if more > 0 else ""
            parts.append(_level(words, level, lines[:first], lines[first:_MOST], rest))
    return tuple(parts)


def _lines(index: SeasonIndex, level: Level, verdicts: Iterable[SeasonVerdict]) -> Iterator[Line]:
    """The claims at a level; those without support by subject and first reason, equal ones on a line."""
    claims, words = [verdict for verdict in verdicts if verdict.verdict.publication_level == level], index.words
    if level != "no-claim":
        yield from (season_quote(index, verdict) for verdict in claims)
        return
    # For each claim of a first rank, how many agents it cannot be compared with for lack of common periods.
    untested = [[reason.values["agents"] for reason in verdict.reasons if reason.key == _UNTESTED]
                for verdict in claims if verdict.kind == "first"]  # fmt: skip
    apart = [sum(len(some) for some in named if isinstance(some, tuple)) for named in untested]
    alone = len(apart) > 1 and all(n == len(apart) - 1 for n in apart)
    about = Counter[tuple[str, str]]()
    for claim in claims:
        key = season_subject(claim, words), words.texts(reasons_of(index, claim)[:1])
        if alone and claim.kind == "first":
            key = words.text(phrase("claim.withheld.any_first")), words.text(phrase("claim.reason.untested_any"))
        about[key] += 1
    for (text, reason), n in about.items():
        yield WithheldGroup(text, ((reason, False),) if reason else (), n)


def _level(words: Language, level: Level, shown: Sequence[Line], more: Sequence[Line], rest: Inline) -> b.ClaimList:
    key = "index.more_withheld" if level == "no-claim" else "index.more"
    folded = words(key, len(more)) if more else ""
    return b.ClaimList(level, words(f"level.{level}.title"), tuple(shown), tuple(more), folded, rest)


def level_blocks(parts: Sequence[b.ClaimList]) -> Block:
    """Levels that have claims: the supported ones next to the unsupported ones, or one of the two alone."""
    filled = [part for part in parts if part.claims]
    sides = tuple(tuple(view for view in filled if (view.level == "no-claim") == hidden) for hidden in (False, True))
    return b.Columns(sides, "trio") if all(sides) else b.Group("", tuple(filled))


def reasons_of(index: SeasonIndex, verdict: SeasonVerdict) -> tuple[Phrase, ...]:
    """The reasons of a claim; for an unsupported first rank those that hold for every agent, to hide who leads."""
    if not _unsupported_first(verdict):
        return verdict.reasons
    firsts = index.once(("firsts",), lambda: [*filter(_unsupported_first, index.run.decided.verdicts)])
    reasons = [why for why in verdict.reasons if why.key == _UNTESTED or all(why in other.reasons for other in firsts)]
    if _NO_LEAD in reasons:
        return tuple(reasons)
    # Reasons that stop a claim come before mere conditions.
    weak = [why for why in reasons if why.key == "claim.reason.agreement.methodology"]
    return (*(why for why in reasons if why not in weak), phrase("claim.reason.no_claimed_lead"), *weak)


def _unsupported_first(verdict: SeasonVerdict) -> bool:
    return verdict.kind == "first" and verdict.verdict.publication_level == "no-claim"


def season_subject(verdict: SeasonVerdict, words: Language) -> str:
    """The subject of an unsupported claim."""
    if verdict.withheld is not None:
        return words.text(verdict.withheld)
    return words("claims.about", agents=words.names(sorted(verdict.verdict.claim.subjects)))


def season_quote(index: SeasonIndex, verdict: SeasonVerdict) -> ClaimQuote:
    """A supported claim with its condition and its text for the clipboard; returns do not depend on judges."""
    run, words = index.run, index.words
    judges = {} if verdict.kind == "beats" else {judge.name: judge.built_in for judge in run.plan.panel}
    agents = {agent.name: agent.built_in for agent in index.agents.values()}
    built_in = built_in_text(words.catalogue, judges, agents, verdict.verdict.claim.subjects)
    quote, condition = words.text(verdict.statement), f"{built_in} {words.texts(verdict.condition)}".strip()
    source = {"study": clean(run.plan.title or run.plan.name, 120), "day": words.day(run.locked_at[:10])}
    plan = clean(verdict.verdict.plan_hash)
    copy = words("claims.copied", quote=words.quoted(quote), condition=condition, plan=plan, **source)
    return ClaimQuote(verdict.verdict.publication_level, quote, condition, " ".join(copy.split()))


def claim_card(index: SeasonIndex, decided: SeasonVerdict) -> b.Card:
    """A verdict with its reasons, its checks, its level under other rules, and its measurements."""
    verdict, words, hidden = decided.verdict, index.words, _unsupported_first(decided)
    level = verdict.publication_level
    ids = list(dict.fromkeys(verdict.measurements))
    if hidden:  # measurements that differ by agent would reveal who leads
        ids = [name for name in ids if name.startswith(_SHARED)]
    items = [index.by_id[name] for name in ids[:_RESTS] if name in index.by_id]
    said_of = Prose(season_subject(decided, words), "text") if level == "no-claim" else season_quote(index, decided)
    blocks, reasons = list[Block]([said_of]), tuple(map(words.text, reasons_of(index, decided)))
    blocks += [b.Items(reasons, "whys")] if reasons else []
    checks = {"agreement": verdict.agreement_status, "stability": verdict.stability_status,
              "adversarial": verdict.adversarial_status}  # fmt: skip
    told_of = ((name, f"{words(f'claims.status.{name}')}: {words.term('claims.state', state)}")
               for name, state in checks.items() if not (hidden and name == "stability"))  # fmt: skip
    fields = (b.bold(text) if name in verdict.binding else text for name, text in told_of)
    # The level under each other rule, grouped by level; for an unsupported first rank it would reveal one.
    rules = []
    for other in () if hidden else (level, *(name for name in LEVELS if name != level)):
        if named := [words.term("claims.rule", rule) for rule, to in sorted(verdict.fragility.items()) if to == other]:
            key = "claims.rules.same" if other == level else "claims.rules.other"
            rules.append(words(key, rules=words.catalogue.names(named), level=words(f"level.{other}.tag")))
    blocks += [Prose(b.chained(fields, " · "), "tuple"), *b.notes(tuple(rules))]
    # Its measurements: kind and subject, the value unless it reveals something unsupported, and the row.
    sources = list[Inline]()
    for item in items:
        subjects = sorted(
            baseline_words(value, words) if key == "baseline" else clean(value, 60)
            for key, value in item.labels.items()
            if key not in ("axis", "dimension", "dropped")
        )
        if "dropped" in item.labels:  # a family of judges, which may have the name of an agent
            subjects.append(f"{words('measured.label.dropped')} {clean(item.labels['dropped'], 60)}")
        kind = words.term("measure", item.name.removeprefix("season."))
        linked = f"{kind} ({words.catalogue.names(subjects)})" if subjects else kind
        # Not for an unsupported pair, or an agent that shares its tier.
        shown = level != "no-claim" if "high" in item.labels else not index.hidden(item)
        value = result_words(item, words) if shown else Styled(words("frame.withheld"), "gap")
        sources.append((Linked(linked, index.links[item.id]), ": ", index.spread(item) or value))
    more = len(ids) - len(items)
    sources += [Linked(words("claims.more", more), "measurements.html")] if more else []
    if sources:
        blocks.append(b.Group(words("claims.rests", len(ids)), (b.Items(tuple(sources), "whys"),), folded="closed"))
    return b.Card(level, words(f"level.{level}.tag"), words.term("claims.kind", decided.kind), tuple(blocks))


def baseline_words(name: str, words: Language) -> str:
    """The name of a baseline within a sentence."""
    return words.term("claim.baseline", name.replace(" ", "_").replace("/", "_"))


_PEOPLE: Final = {"human.agreement": "few", "human.sample": "part"}
"""Measurements of human grades whose state has a count, and the key of its words."""


def result_words(item: Measurement, words: Language) -> str:
    """A measurement as a value with its interval and n, or the reason why there is none."""
    if not known(item):
        return reason_words(item, words)
    ends = ends_words(item, words)
    text = formatted_value(item, item.value, words) + (f" ({ends})" if ends else "")
    return words("measured.n", words.amount(item.n), value=text, of=words.of(item.n, item.n_of))


def ends_words(item: Measurement, words: Language) -> str:
    """The interval of a measurement in the format of its kind; empty if there is none."""
    form = quantities("season").get(item.name, {}).get("form", "1")
    shown = [] if (ends := bounds_of(item)) is None else [100 * end if form.endswith("%") else end for end in ends]
    digits = end_digits(*shown, digits=int(form.strip("+%")))
    return limits(item, lambda *ends: words.range(*(formatted_value(item, end, words, digits) for end in ends)), "")


def reason_words(item: Measurement, words: Language) -> str:
    """The reason why a measurement has no value; for a pair that cannot be tested, with its periods."""
    name, _, _ = item.state.partition(" (")
    if item.name.startswith("human.") and words.has(f"state.{name}"):
        return words.term("state", name)
    if item.name in _PEOPLE:
        return words(f"people.{_PEOPLE[item.name]}", item.n)
    return words.term("state", name if name == "cannot be tested" else item.state)


def formatted_value(item: Measurement, value: float, words: Language, digits: int | None = None) -> str:
    """A value of a measurement, or an end of its interval, in the format of its kind."""
    form = quantities("season").get(item.name, {}).get("form", "1")
    written = words.percent if form.endswith("%") else words.number
    return written(value, int(form.strip("+%")) if digits is None else digits, sign=form.startswith("+"))


def localised_row(index: SeasonIndex, measured: MeasurementRow) -> MeasurementRow:
    """A row of `SeasonIndex.measured` in the language of the index: kind and subject, value, and records."""
    (item, row), words = measured, index.words
    title, hidden = words.term("measure", item.name.removeprefix("season.")), index.hidden(item)
    pair = sorted(clean(item.labels[key], 80) for key in ("high", "low") if hidden and key in item.labels)

    def label(key: str, value: str) -> str:
        if key == "baseline":
            return baseline_words(value, words)
        if key == "of" and value == "panel":
            return words("measured.panel")
        group = {"part": "measured.part", "axis": "axis"}.get(key)
        return clean(value, 80) if group is None else words.term(group, value)

    left_out = ("dimension", "high", "low") if pair else ("dimension",)
    about = [
        f"{words.term('measured.label', key)} {label(key, item.labels[key])}"
        for key in sorted(item.labels)
        if key not in left_out
    ]
    about += [words.catalogue.names(pair)] if pair else []
    value, interval = index.spread(item) or words.term("state", hidden), ""
    if not hidden:
        unit = words.term("measured.unit", item.unit) if item.unit not in ("", "share") else ""
        value, ends = reason_words(item, words), ends_words(item, words)
        if known(item):
            value = f"{formatted_value(item, item.value, words)} {unit}".rstrip()
        level = "" if item.level is None else f", {words.percent(item.level, 0)}"
        interval = f"{ends}{level}" if ends else words("state.no interval")
    # The first record of each judge, or of the agent, it was computed from; none of books, datasheets, people.
    agent, grader = item.labels.get("agent") or item.labels.get("of", ""), item.labels.get("judge", "")
    rests_on = quantities("season").get(item.name, {}).get("rests_on", "grades")
    judges = [judge.name for judge in index.run.plan.panel if item.name != "season.without" or judge.name != grader]
    pairs = [(judge, agent if agent in index.agents else "") for judge in judges]
    if rests_on in ("grades by judge", "guesses"):
        pairs = [(grader, agent if agent in index.agents else "")]
    elif rests_on in ("decisions", "none"):
        pairs = [(agent, "")] if rests_on == "decisions" else []
    kind = rests_on.partition(" ")[0]
    records = [
        Linked(words(f"measured.{kind}", who=clean(author, 60)), place)
        for author, of in pairs
        if (place := index.record(kind, author, of))
    ]
    n = f"{words.amount(item.n)} {words.of(item.n, item.n_of)}".strip()
    cells = (title[:1].upper() + title[1:], "; ".join(about) or words("measured.whole"), value, interval, n,
             Styled(str(row.cells[5]), "en"), b.chained(records))  # fmt: skip
    return item, replace(row, cells=cells, key=words.term("measured.group", row.key))
