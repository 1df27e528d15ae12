"""The sentence bench: it shows any sentence of the study, the gates that decide it, and what would help. Its data have
one record for each pair, first rank and equivalence. Both directions of a pair share a record; that of an unsupported
pair has no sentence, no direction, no difference and no point estimate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from assaymark.claims import kind_of, suppressed_phrase
from assaymark.records import AGGREGATE, Level, Verdict
from assaymark.report import text as t
from assaymark.report.blocks import Linked, Page
from assaymark.report.charts.models import Strip, strip_axis
from assaymark.report.inputs import RunIndex, score_words
from assaymark.report.levels import built_in_words, ordered_verdicts, rule_words
from assaymark.report.page import environment, script_data
from assaymark.report.study import checks
from assaymark.report.study.controls import controls
from assaymark.report.text import KnownValue, known
from assaymark.text import clean, count, number, percent, prose

MOST: Final = 400
"""Maximum number of sentences in one bench; with more there is a bench for each score."""

GATES: Final = (
    "Judges agree", "Difference", "Without any one judge", "Length and planted texts", "Judges pass their own test",
)  # fmt: skip
_CHECKS: Final = {
    "Agreement": 0, "Difference": 1, "Own family": 1, "Clusters": 1, "Without any one judge family": 2,
    "Other judges": 2, "Length": 3, "Dimension": 3, "Control texts": 3,
}  # fmt: skip
RELATIONS: Final = {"above": "scores above", "below": "scores below", "first": "ranks first", "within": ""}
FLIP: Final = "source: sign flip"


@dataclass(frozen=True, slots=True)
class SentenceGate:
    """One gate of a sentence: its state ("", "condition", "stops" or "unreached"), its line and its strip."""

    state: str
    line: str = ""
    strip: Strip | None = None
    href: str = ""


@dataclass(frozen=True, slots=True)
class SentenceRecord:
    """Everything that the bench shows of one sentence; ``sentence`` is empty if it is not supported."""

    level: Level
    about: str
    sentence: str
    also: tuple[str, ...]
    built_in: str
    help: tuple[str, ...]
    gates: tuple[SentenceGate, ...]
    href: str


def sentence_record(index: RunIndex, verdict: Verdict) -> SentenceRecord:
    """The record of one verdict."""
    level, supported, kind = verdict.publication_level, verdict.publication_level != "no-claim", kind_of(verdict.claim)
    conditions = [condition.text for condition in verdict.conditions] or [verdict.condition or ""]
    if level == "headline":
        # Other rules under which a supported sentence does not hold.
        worse = [rule_words(rule) for rule, other in sorted(verdict.fragility.items()) if t.RANK[other] < 2]
        rules = f" and none of {t.plural(len(verdict.fragility), 'other rule')}" if verdict.fragility else ""
        others = "market regimes" if index.run.table is None else "items"
        fixes = [f"No single judge{rules}. Other {others} might."]
        if worse:
            fixes = [f"Not supported without a condition under {t.listing(worse, last='or')}."]
    elif not supported and kind == "first":  # one agent's own fields would show that it leads
        fixes = [checks.fix_words(index, "agreement" if "agreement" in checks.blockers(verdict) else "stability")]
    else:
        fixes = [checks.fix_words(index, name, verdict) for name in checks.binding_fields(verdict)]
    # The five gates up to the one that stops; for an unsupported sentence only words that fit both directions.
    by_gate: list[list[checks.Check]] = [[] for _ in GATES]
    for check in checks.checks_of(index, verdict)[0]:
        by_gate[_CHECKS.get(check.name, 4)].append(check)
    steps = list[SentenceGate]()
    for at, gate_checks in enumerate(by_gate):
        if steps and steps[-1].state in ("stops", "unreached"):
            steps.append(SentenceGate("unreached"))
            continue
        effects = [check.effect for check in gate_checks]
        state = next((effect for effect in ("stops", "condition") if effect in effects), "")
        mark = {"stops": "n", "condition": "q"}.get(state, "p")
        # For a gate that is passed, the text of its first check.
        body = "; ".join(_short(check) for check in gate_checks if check.effect == state and state) or (
            str(gate_checks[0].text).partition("; adjusted")[0] if gate_checks else "not tested"
        )
        strip, line, item = None, "", index.gating(verdict.claim.dimension) if at == 0 else None
        if known(item):
            gates = index.study.gates
            cuts = ((gates.halt, f"{gates.halt:g}", True), (gates.publish, f"{gates.publish:g}", False))
            low = min(0.0, item.value, gates.halt if item.low is None else item.low)
            strip = Strip((round(low, 2), 1.0), cuts, (_point(item),), mark)
            if kind != "cell":
                needed = gates.halt if verdict.agreement_status == "halt" else gates.publish
                line = f"{index.gating_words(verdict.claim.dimension)}{t.interval_of(item)}; {number(needed)} needed"
        if at == 0:
            steps.append(SentenceGate(state, line or body, strip, "" if item is None else index.links.get(item.id, "")))
        elif at == 4:
            failed = state if any(check.effect and check.name == "Judges’ own tests" for check in gate_checks) else ""
            people = [_short(c) for c in gate_checks if c.name == "People" and c.text != "not graded by people"]
            line = "; ".join((checks.own_tests_words(index), *people)) if failed or not state else body
            strip = own_tests_strip(index, "q" if checks.failed_judges(index) else "p")
            steps.append(SentenceGate(state, line, strip, "datasheets.html" if index.run.datasheets else ""))
        else:
            strip, line = _gate_strip(index, verdict, at, mark) if supported else (None, "")
            line, items = "; ".join(filter(None, (line, body if state or not line else ""))), list[_Towards]()
            if supported and at == 2:
                items = [o for f in index.study.families for o in _pairs(index, verdict, "lofo.contrast", dropped=f)]
            elif supported:
                items = _pairs(index, verdict, "contrast" if at == 1 else "length.contrast")
            steps.append(SentenceGate(state, line, strip, index.links.get(items[0][1].id, "") if items else ""))
    return SentenceRecord(
        level, prose(suppressed_phrase(verdict.claim), 400), prose(verdict.claim.statement, 400) if supported else "",
        tuple(prose(text, 400) for text in conditions if text) if supported else (), built_in_words(index, verdict),
        tuple(dict.fromkeys(fixes))[:2], tuple(steps), index.claims.get(verdict.claim.id, ""),
    )  # fmt: skip


def _short(check: checks.Check) -> str:
    """A check that stops or conditions a claim, shortened to its value and threshold; its card has all."""
    text = str(check.text)
    if check.name in ("Agreement", "Difference", "Without any one judge family", "Length"):
        return text.partition(": ")[0] if check.name == "Length" else text
    end = {"Control texts": "; ", "Dimension": ", adjusted"}.get(check.name, "\0")
    return f"{check.name.lower()}: {text.partition(end)[0]}"


def _point(item: KnownValue, sign: int = 1) -> tuple[float, float | None, float | None]:
    low, high = sorted(round(sign * end, 3) for end in t.bounds_of(item) or ()) or (None, None)
    return round(sign * item.value, 3), low, high


_Towards = tuple[float, KnownValue]
"""A difference, positive if the agent that a sentence names first is ahead, and its measurement."""


def _pairs(index: RunIndex, verdict: Verdict, name: str, **labels: str) -> list[_Towards]:
    """The differences that a supported sentence is based on."""
    claim, pairs = verdict.claim, list[_Towards]()
    lead, rest = claim.subjects[0], claim.subjects[1:] or [peer for peer in index.agents if peer != claim.subjects[0]]
    for other in rest:
        item = index.contrast(claim.dimension, lead, other, name, **labels)
        if known(item):
            pairs.append((item.value if item.labels["high"] == lead else -item.value, item))
    return pairs


def _gate_strip(index: RunIndex, verdict: Verdict, at: int, mark: str) -> tuple[Strip | None, str]:
    """The strip and the line of a supported sentence at the second, third or fourth gate."""
    kind = kind_of(verdict.claim)
    zero: tuple[tuple[float, str, bool], ...] = ((0.0, "0", False),)
    if at == 1:
        contrasts = _pairs(index, verdict, "contrast")
        if not contrasts:
            return None, ""
        value, item = min(contrasts, key=lambda pair: pair[0])
        sign = 1 if value == item.value else -1
        point = _point(item, sign)
        ends = [value, *(end for end in point[1:] if end is not None)]
        if kind == "within":
            margin = index.study.inference.margin * 4
            zero = ((-margin, f"−{margin:g}", False), (margin, f"{margin:g}", False))
            return Strip(strip_axis(ends, -margin, margin), zero, (point,), mark), f"within {margin:g} needed"
        which = "weakest lead " if kind == "first" else ""
        difference = t.difference(item, sign).replace(" points", "")
        # The p-value without judges from the agents' own makers.
        ps = [q for _, m in _pairs(index, verdict, "recusal.contrast") if (q := t.detail_of(m, "p")) is not None]
        p = f"; without judges of their makers {t.p_words(max(ps))}" if ps else ""
        return Strip(strip_axis(ends, 0.0), zero, (point,), mark), f"{which}{difference}; above 0 needed{p}"
    if at == 2:
        every = (_pairs(index, verdict, "lofo.contrast", dropped=family) for family in index.study.families)
        drops = [min(value for value, _ in contrasts) for contrasts in every if contrasts]
        if not drops or kind == "within":
            return None, ""
        points = tuple((round(drop, 3), None, None) for drop in drops)
        line = f"{', '.join(map(t.signed, drops))}; all above 0 needed"
        return Strip(strip_axis(drops, 0.0), zero, points, mark * len(points)), line
    shares = [share for agent in (verdict.claim.subjects if len(verdict.claim.subjects) > 1 else index.agents)
              if (share := index.value("terse.share", agent=agent)) is not None]  # fmt: skip
    if not shares:
        return None, ""
    cells, most = index.study.cells, max(shares)
    cut = percent(cells.terse_share)
    failing = any(c.outcome in ("failed", "verbosity-bias") for c in controls(index))
    line = f"{percent(most)} of the texts under {cells.terse_tokens} words; {cut} allowed"
    line += "" if failing or mark != "p" else "; planted texts pass"
    point = (round(most, 3), None, None)
    bad = most > cells.terse_share
    return Strip((0.0, 1.0), ((cells.terse_share, cut, False),), (point,), "q" if bad else "p"), line


def own_tests_strip(index: RunIndex, mark: str) -> Strip | None:
    """A strip of the judges' values in the test that the plan limits, with the limit."""
    limits = index.study.datasheets
    failed = [failure.partition(" ")[0] for named in checks.failed_judges(index).values() for failure in named]
    name = next((test for test in (*failed, *(limits.set if limits else ())) if test in checks.TESTS), None)
    if limits is None or name is None or name not in limits.set:
        return None
    measured, _, side = checks.TESTS[name]
    items = [checks.own_test(index, measured, judge.name) for judge in index.study.judges]
    values = [round(m.value, 3) for m in items if known(m)]
    if not values:
        return None
    cut = limits.set[name]
    marks = "".join(mark if side * value > side * cut else "p" for value in values)
    points = tuple((value, None, None) for value in values)
    return Strip(strip_axis(values, cut), ((cut, f"{cut:g}", False),), points, marks)


def agent_verdicts(index: RunIndex) -> tuple[Verdict, ...]:
    """The verdicts that the bench can show: all except those about control texts."""
    return tuple(v for v in ordered_verdicts(index) if kind_of(v.claim) != "cell")


def flip_words(index: RunIndex) -> str:
    """The reason why the sign flip test cannot reject with so few clusters, if it was run: its minimum p-value."""
    contrasts = [item for item in index.by_name.get("contrast", ()) if item.detail.get("p_sign_flip") is not None]
    most = max((int(item.detail.get("clusters", 0)) for item in contrasts), default=0)
    if not most or not any(v.fragility for v in index.run.verdicts):
        return ""
    pairs, least, level = len(index.on(AGGREGATE, "pair")), 2.0 ** (1 - most), index.study.inference.alpha
    return (
        f"With {t.plural(most, 'cluster')} this test cannot reject: {t.p_words(least)} at least, after correction over "
        f"{t.plural(pairs, 'pair')} {t.p_words(min(1.0, least * pairs))}; {f'{level:g}'.removeprefix('0')} needed."
    )


def rule_tally(index: RunIndex, rule: str = "") -> list[int]:
    """Count the claims at each level, under the locked rule or another one. A rule that cannot reject supports none."""
    verdicts = index.run.verdicts
    if rule and not any(rule in v.fragility for v in verdicts):
        return [0, 0, len(verdicts)]
    levels = [v.fragility.get(rule, v.publication_level) if rule else v.publication_level for v in verdicts]
    return [levels.count(level) for level in t.LEVELS]


def bench_data(index: RunIndex, pages: Mapping[str, str], path: str, copying: bool = True) -> dict[str, Any]:
    """The data of the bench's script: sentences on the scores of ``path``, with agents and scores by index."""
    dimensions, agents = list(pages), index.agents
    texts, gates, records = dict[str, int](), dict[str, int](), dict[str, list[Any]]()

    def place(value: Any, into: dict[str, int] = texts) -> int:
        """The index of a value in a table that stores each value once."""
        return into.setdefault(json.dumps(value), len(into))

    def template(text: str, subjects: Sequence[str], score: str) -> int:
        """A text as a template with fields for agents and score, if filling them in restores the text exactly."""
        shown, score_name = [clean(name, 80) for name in subjects], score_words(score)
        pattern = text.replace(f"on {score_name}", "on {s}")
        for at, name in enumerate(shown):
            pattern = pattern.replace(name, f"{{{at}}}")
        back = pattern
        for at, name in enumerate(shown):
            back = back.replace(f"{{{at}}}", name)
        return place(pattern if back.replace("{s}", score_name) == text and "{" not in text else text)

    place("")  # for missing links
    # Every alternative to the locked rule: its id, its words, and why it cannot reject.
    rules = sorted({name for v in index.run.verdicts for name in v.fragility})
    others = [(name, rule_words(name), "") for name in rules]
    if FLIP not in rules and (note := flip_words(index)):
        others.append((FLIP, rule_words(FLIP), note))
    for verdict in agent_verdicts(index):
        kind, dimension = kind_of(verdict.claim), verdict.claim.dimension
        if pages.get(dimension) != path:
            continue
        row, supported = sentence_record(index, verdict), verdict.publication_level != "no-claim"
        # For an unsupported sentence, neither text nor order may depend on its direction.
        names = verdict.claim.subjects if supported else tuple(sorted(verdict.claim.subjects))
        places = [agents.index(name) for name in sorted(names)]
        # The level of an unsupported first rank under another rule would reveal who leads.
        hidden = not supported and kind == "first"
        under = [t.LEVELS.index(verdict.fragility.get(name, verdict.publication_level)) for name, *_ in others]
        levels = "".join(
            "3" if note else "2" if hidden else str(at) for at, (*_, note) in zip(under, others, strict=True)
        )
        shown = []
        for gate in row.gates:
            if gate.state != "unreached":
                strip: list[Any] | int = 0
                if gate.strip is not None:
                    cuts = [[at, words, int(dashed)] for at, words, dashed in gate.strip.cuts]
                    points = [[point[0]] if point[1] is None else list(point) for point in gate.strip.points]
                    strip = [list(gate.strip.axis), cuts, points, gate.strip.marks]
                line, href = place(gate.line), place(gate.href) if gate.href else 0
                shown.append(place([gate.state, line, strip, href], gates))
        page, _, anchor = row.href.partition("#")
        records[".".join(map(str, (kind[0], dimensions.index(dimension), *places)))] = [
            t.LEVELS.index(row.level), template(row.sentence if supported else row.about, names, dimension),
            agents.index(names[0]) if supported and len(names) > 1 else -1,
            [template(text, names, dimension) for text in row.also], [place(text) for text in row.help], shown, levels,
            place(page), anchor, place(row.built_in) if supported and row.built_in else -1,
            # The agents of a template, in the order of the sentence.
            *([[agents.index(name) for name in names]] if supported else []),
        ]  # fmt: skip
    source = t.clipboard_text("#", "#", index.study.title or index.study.name, index.run.locked_at, index.run.plan_hash)
    return {
        "agents": list(agents), "names": [clean(agent, 80) for agent in agents],
        "scores": [[d, score_words(d)] for d in dimensions],
        "texts": list(map(json.loads, texts)), "gates": list(map(json.loads, gates)),
        "records": records, "rules": [["", "the preregistered rule", "", rule_tally(index)],
                                      *([name, words, note, rule_tally(index, name)] for name, words, note in others)],
        "copy": source if copying else "",
        "pages": ["" if page == path else page for page in pages.values()],
    }  # fmt: skip


def names_allowed(index: RunIndex) -> bool:
    """True if agents may be named in the heading and copied: unless only the judges are built in."""
    judges, agents = all_built_in(index)
    return agents or not judges


def all_built_in(index: RunIndex) -> tuple[bool, bool]:
    """Two flags: all judges are built in, and all agents are built in."""
    run = index.run
    graders, makers = {planted.name for planted in run.reference_panel}, {agent.name for agent in run.reference_agents}
    agents = {agent.name for agent in run.study.agents} or set(index.agents)
    return bool(graders) and graders >= {judge.name for judge in run.study.judges}, bool(makers) and makers >= agents


def bench_pages(index: RunIndex) -> dict[str, str]:
    """The page of the bench for each score: one page for all scores if there are few enough sentences."""
    scored, several = [d for d in index.dimensions if index.on(d)], len(agent_verdicts(index)) > MOST
    if index.run.table is not None:
        return {d: f"sentences-{at:03d}.html" if several else "sentences.html" for at, d in enumerate(scored, 1)}
    return {d: f"sentences-{at:03d}.html" if at and several else "index.html" for at, d in enumerate(scored)}


def first_scores(index: RunIndex) -> dict[str, str]:
    """The pages with a bench, each with the first of its scores."""
    return {path: dimension for dimension, path in reversed(bench_pages(index).items())}


def bench_markup(index: RunIndex, path: str) -> Markup:
    """The bench of one page: opened at the first supported pair on the overall score, else at the first sentence."""
    order, every, copying = {"pair": 0, "first": 1, "within": 2}, agent_verdicts(index), names_allowed(index)
    pages, study, run = bench_pages(index), index.study, index.run

    def rank(verdict: Verdict) -> tuple[int, bool, int]:
        claim = verdict.claim
        return -min(t.RANK[verdict.publication_level], 1), claim.dimension != AGGREGATE, order[kind_of(claim)]

    opened = (min(every, key=rank), *(v for v in every if v.publication_level != "no-claim"), *every) if every else ()
    verdict = next((v for v in opened if pages.get(v.claim.dimension) == path), None)
    if verdict is None:
        return Markup("")
    # Agent, relation, other agent and score of the sentence; of an unsupported one in alphabetical order.
    kind, names = kind_of(verdict.claim), verdict.claim.subjects
    if verdict.publication_level == "no-claim" or kind == "within":
        names = tuple(sorted(names))
    other = names[1] if len(names) > 1 else next((agent for agent in index.agents if agent != names[0]), names[0])
    entry, data = sentence_record(index, verdict), bench_data(index, pages, path, copying)
    listed: dict[str, list[tuple[Level, str, str]]] = {}
    for claim, level in ((v.claim, v.publication_level) for v in every):
        words = suppressed_phrase(claim) if level == "no-claim" else claim.statement
        row = (level, prose(words, 400), index.claims.get(claim.id, ""))
        listed.setdefault(claim.dimension, []).append(row)
    condition = " ".join(filter(None, (entry.built_in, *entry.also)))
    copy = t.clipboard_text(entry.sentence, condition, study.title or study.name, run.locked_at, run.plan_hash)
    return Markup(
        environment().get_template("bench.html").render(
            agents=[(name, clean(name, 80)) for name in index.agents],
            chosen=(names[0], "above" if kind == "pair" else kind, other, verdict.claim.dimension), one=entry,
            relations=RELATIONS | {"within": f"scores within {study.inference.margin * 4:g} of"},
            gates=list(zip(GATES, entry.gates, strict=True)),
            scores=[(d, score_words(d)) for d in pages], tags=t.TAGS, rules=data["rules"],
            copy=copy if copying and entry.sentence else "",
            data=script_data(json.dumps(data, separators=(",", ":"))), claims=count(len(run.verdicts)),
            every=[(score_words(dimension), rows) for dimension, rows in listed.items()],
        )
    )  # fmt: skip


def sentence_pages(index: RunIndex) -> Iterator[Page]:
    """A page with a bench for each score that the first page does not cover."""
    for path, dimension in first_scores(index).items():
        if path != "index.html":
            title, lead = f"Sentences on {score_words(dimension)}", "Any sentence on this score, with what decides it."
            if path == "sentences.html":
                title, lead = "Sentences", "Any sentence about these systems, with what decides it."
            yield Page(
                path, title, lead, blocks=(bench_markup(index, path),), up=Linked("Overview", "index.html"),
                here="overview", styles=("bench.css",), scripts=("page.js", "bench.js"),
            )  # fmt: skip
