"""Sections on the plan and the panel: preregistered settings, judges, cost, noise, and gaps in the records."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from assaymark.plan import OrderTest
from assaymark.prompting import judged_text
from assaymark.records import AGGREGATE, grouped
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Inline
from assaymark.report.inputs import RunIndex
from assaymark.report.levels import amended_words
from assaymark.report.study.controls import holdout_name, holdout_state
from assaymark.report.text import known
from assaymark.text import clean, count, money, number, percent, prose


def cost_section(index: RunIndex) -> b.Section | None:
    """The cost by model; None if no paid model was called."""
    title = "What did it cost?"
    if index.run.paid is None:
        answer = "The call log, which knows what was paid, could not be read where this page was made."
        return b.Section("cost", title, answer)
    paid = sorted(index.run.paid, key=lambda paid: paid.model)
    if not paid:
        return None
    rows = []
    for bill in paid:
        inputs, cached, outputs = (count(n) if bill.calls > bill.untold and n is not None else "not reported"
                                   for n in (bill.input_tokens, bill.cached_tokens, bill.output_tokens))  # fmt: skip
        price = ["no price known" if bill.price_of is None else f"of {clean(bill.price_of, 20)}"]
        if bill.price_of is not None and bill.unpriced:
            price.append(f"{t.counted(bill.unpriced, 'call')} without a price")
        if 0 < bill.untold < bill.calls:
            price.append(f"tokens of {t.counted(bill.untold, 'call')} not reported")
        batches = f", {count(bill.in_batches)} in batches" if bill.in_batches else ""
        rows.append((
            b.code(clean(bill.model, 200)), f"{count(bill.calls)}{batches}", inputs, cached, outputs,
            "not known" if bill.unpriced == bill.calls else money(bill.usd), "; ".join(price),
        ))  # fmt: skip
    calls, unpriced = sum(bill.calls for bill in paid), sum(bill.unpriced for bill in paid)
    usd = sum(bill.usd for bill in paid)
    answer = f"{money(usd)} USD for {t.counted(calls - unpriced, 'call')}"
    if unpriced:
        answer += f"; what {count(unpriced)} more cost is not known"
    if unpriced == calls:
        answer = f"{t.counted(calls, 'call')} of paid models; no price of them is known"
    columns = ("Model", "Calls", "Input tokens", "of these cached", "Output tokens", "USD", "Price")
    table = b.Table(columns, tuple(rows), frozenset(range(1, 6)), "", stacked=True)
    note = (
        "List prices times the tokens that the providers counted, for every reply that was kept. Attempts without a "
        "reply are not in it: providers do not say what they cost. The bill is the provider’s."
    )
    return b.section("cost", title, f"{answer}.", table, b.notes([note]))


NEVER_SAID: Final = (
    "Which agent invests best, or will earn more. That a rank would hold under another rubric, in another market, or "
    "in clusters unlike these."
)
_OF_TABLES: Final = "That judges are right. That a rank would hold under another rubric, or in clusters unlike these."
_MEANINGS: Final = tomllib.loads((files("assaymark.report.study") / "fields.toml").read_text(encoding="utf-8"))
NOT_PREREGISTERED: Final = "The scores had been seen when the plan was locked, so no claim is a headline."
_TESTS: Final[Mapping[OrderTest, str]] = {
    "moderated-t": "moderated cluster t",
    "own-variance": "cluster t with each pair’s own variance",
}
_PARTS: Final = (
    "gates", "inference", "claims", "stability", "cells", "datasheets", "missing", "human", "contamination",
    "anchor_probe", "records", "rubric",
)  # fmt: skip


def plan_section(index: RunIndex) -> b.Section:
    """Facts of the plan and the panel, every field of the plan, the rubric, and what is not claimed."""
    run, lines = index.run, list[Inline]([("Plan ", b.code(clean(index.run.plan_hash)))])
    if amended := amended_words(sorted({field for v in run.verdicts for field in v.amended})):
        lines.append((b.bold(amended), " The claims that depend on it say so."))
    fields = b.Table(("Field", "Value", "What it decides"), tuple(_plan_rows(index)), summary="", stacked=True)
    titles = t.listing([index.title(name) for name, _ in run.rubric.dimensions]) or "none"
    rubric = f"Rubric {clean(run.rubric.name, 80)}: {clean(run.rubric.title, 160)}. Dimensions: {titles}."
    item, note = index.get("order.detectable", AGGREGATE), ""
    pairs, could = sum(measurement.name == "contrast" for measurement in run.measurements), t.as_text(item)
    if known(item):
        pair, power = t.detail_of(item, "pair"), t.detail_of(item, "power")
        single = "" if pair is None else f", {number(pair)} for a single pair"
        note = "" if power is None else f"power {percent(power)}"
        could = index.link(item, f"{number(item.value)} points for a leader{single}")
    # The plan's treatment of clusters: as independent or as consecutive in time.
    time, study = index.get("order.autocorrelation", AGGREGATE), index.study
    order = str(study.inference.cluster_order if time is None else time.detail.get("order"))
    relation = {"exchangeable": "taken as independent", "consecutive": "in time order"}.get(order, "not stated")
    worth, overlap = (index.get(name, AGGREGATE) for name in ("panel.effective_judges", "redundancy"))
    independent, errors = t.as_text(worth), "independent judges; needs texts of known quality"
    if known(worth):
        independent, r = index.link(worth, f"{number(worth.value, 1)} independent judges"), t.detail_of(worth, "r")
        errors = "" if r is None else f"their errors correlate at {number(r)}"
    conflict, detail = "none", "no judge shares a family with an agent"
    if shared := [clean(family, 60) for family in study.families if family and family in index.families.values()]:
        of = t.counted(len(study.families), "judge family", "judge families")
        conflict = f"{len(shared)} of {of} also made agents"
        detail = f"judge {'family' if len(shared) == 1 else 'families'} {t.listing(shared)}"
    invalid = sum(run.invalid.values())
    share = f" ({percent(invalid / run.calls, 1)})" if run.calls and invalid else ""
    again = f", {count(run.again)} retried ({percent(run.again / run.calls, 1)})" if run.calls and run.again else ""
    of_plan: list[tuple[str, Inline, str]] = [
        ("Plan hash", b.code(" ".join(textwrap.wrap(clean(run.plan_hash), 8))), ""),
        ("Locked", t.moment(run.locked_at) if run.locked_at else "not locked", ""),
        ("Claims", f"{count(len(run.verdicts))} fixed in advance",
         f"{t.counted(pairs, 'difference')} tested" if pairs else "no difference was tested"),
        ("Preregistered", "yes" if index.preregistered else "no", ""),
        ("Test", _TESTS[study.inference.test], f"clusters {relation}"),
        ("Could detect", could, note),
    ]  # fmt: skip
    of_panel: list[tuple[str, Inline, str]] = [
        ("Judges", f"{count(len(study.judges))} from {t.counted(len(study.families), 'family', 'families')}",
         ", ".join(clean(judge.name, 60) for judge in study.judges)),
        ("Worth", independent, errors),
        ("Conflict", conflict, detail),
        ("Held-out judge", holdout_name(index) or "none", holdout_state(index)),
        ("Overlap", index.link(overlap, t.as_text(overlap)), "mean correlation between two judges’ scores"),
        ("Replies", f"{t.counted(run.calls, 'call')}, {count(invalid)} invalid{share}{again}",
         "retried once where a reply is no JSON; an invalid reply is never retried"),
        ("Billed twice", f"at most {t.counted(run.in_flight_bound, 'call')}",
         "after a hard kill; a drained stop repeats none"),
    ]  # fmt: skip
    noted = [(title, tuple((term, b.with_note(value, below and f" {below}")) for term, value, below in facts))
             for title, facts in (("The plan", of_plan), ("The panel", of_panel))]  # fmt: skip
    facts = (b.Group(title, (b.Terms(rows),)) for title, rows in noted)
    texts = b.table_of(("Dimension", "Mark", "Text"), [
        (index.title(name) if name else "All", clean(kind, 40), clean(text, 4000))
        for name, kind, text in run.rubric.texts
    ], stacked=True)  # fmt: skip
    return b.section(
        "plan", "What was fixed in advance?",
        "Each value below is part of the plan, and the hash covers all of them with the rubric and the prompts.",
        b.notes(lines), b.beside(*facts), b.Group("Show every field", (fields,), folded="phone"), b.notes([rubric]),
        b.Group("Show the rubric", (texts,), folded="phone") if texts else None,
        b.Group("Not claimed here", (b.Prose(NEVER_SAID if run.table is None else _OF_TABLES, "never"),)),
    )  # fmt: skip


def panel_section(index: RunIndex) -> b.Section:
    """The judges of the panel, and the planted properties of built-in ones."""
    rows, planted = [], list[b.Group]()
    views = {view.name: view for view in index.run.reference_panel}
    outside = index.study.stability.probe
    for judge in (*index.study.judges, *((outside,) if outside else ())):
        kin = sorted(clean(agent, 60) for agent, family in index.families.items() if family == judge.family)
        conflict = f"made by the family of {t.listing(kin)}" if kin else "none"
        if judge is outside:
            conflict += "; held-out judge, asked about contested pairs alone"
        name = clean(judge.name, 80)
        rows.append((name, clean(judge.family, 80), b.code(clean(judge.model, 120)), str(judge.trials),
                     invalid_words(index, judge.name), conflict))  # fmt: skip
        if (view := views.get(judge.name)) is not None and view.planted:
            planted.append(planted_group(name, view.question, view.planted))
    columns = ("Judge", "Family", "Model", "Trials", "Invalid replies", "Conflict")
    table = b.Table(columns, tuple(rows), frozenset({3, 4}), "", stacked=True)
    lead = built_in_judges(index)
    return b.section("panel", "Who judged?", lead, table, b.beside(*planted, style="tri") if planted else None)


def planted_group(name: str, question: str, planted: Sequence[str]) -> b.Group:
    """The planted properties of a built-in judge or agent."""
    flaws = b.Items(tuple(clean(flaw, 300) for flaw in planted))
    return b.Group(f"What is planted in {name}?", (b.Prose(clean(question, 300), "cap"), flaws))


def noise_section(index: RunIndex) -> b.Section:
    """The variation of the same judge or agent on the same input, if the records contain repeats."""
    rows, gate = list[tuple[Inline, ...]](), number(index.study.gates.repetition_stability)
    for name, label, meaning in (
        ("noise.repetition_stability", "judge", f"repetition stability; the plan asks for {gate}"),
        ("noise.agent_floor", "agent", "spread of the same agent on the same question, in points"),
    ):
        groups = grouped(  # values undefined for the same reason share a row
            index.all(name), lambda item: item.id if known(item) else f"{t.state_words(item)}|{t.n_words(item)}"
        )
        for group in groups.values():
            subjects = t.listing(sorted({clean(item.labels.get(label, ""), 60) for item in group}))
            ddof = t.listing(sorted({clean(item.labels.get("ddof", "?"), 8) for item in group}))
            about = f"{subjects}, repeated (ddof {ddof})" if label == "judge" else f"{subjects}, replicates"
            rows.append((about, index.link(group[0], t.as_text(group[0], 3)), t.n_words(group[0]), meaning))
    for item in index.all("score.length_correlation"):
        detail = "correlation of the length of a text with its panel score"
        rows.append(("Length and score", index.link(item, t.as_text(item)), t.n_words(item), detail))
    table = b.table_of(("About", "Value", "n", "What it is"), rows, {2}, stacked=True)
    lead = "What the same judge or the same agent does when nothing has changed, where the records can tell."
    return b.section("noise", "How much of it is noise?", lead, table or b.Prose("No noise floor was measured."))


def records_section(index: RunIndex) -> b.Section:
    """Gaps in the records, and the records that were left out."""
    missing, excluded, records = list[str](), sorted(index.run.excluded.items()), index.run.decisions
    silent = sum(not judged_text(decision).strip() for decision in records)
    if silent:
        some, hold = t.words(silent).capitalize(), "holds" if silent == 1 else "hold"
        missing.append(f"{some} of {t.plural(len(records), 'record')} {hold} no text that is judged.")
    for note in index.run.import_notes:  # the import may count the same records under the bare word
        if not (silent and note.partition(" (")[0] == "text"):
            missing.append(t.sentence(prose(note, 600)))
    rows = tuple((clean(reason, 160), count(n)) for reason, n in excluded)
    table = b.Table(("Reason", "Records"), rows, frozenset({1}), "")
    left_out = b.Group("Which records were left out?", (table,)) if rows else b.Prose("No record was left out.")
    lead = "" if missing else "The import reported nothing missing."
    items = b.Items(tuple(missing)) if missing else None
    return b.section("records", "What do the records lack?", lead, items, left_out)


def study_line(index: RunIndex) -> str:
    """The study in one line: its title, agents, decisions, clusters and judges."""
    study, noun = index.study, "decision" if index.run.table is None else "answer"
    judges = f"{t.plural(len(study.judges), 'judge')} from {t.plural(len(study.families), 'family', 'families')}"
    clusters = [t.plural(index.clusters, "cluster")] if index.clusters else []
    parts = [t.plural(len(index.agents), "agent"), t.plural(index.answers, noun), *clusters, judges]
    return f"{clean(study.title or study.name, 160)}: {', '.join(parts)}."


def built_in_judges(index: RunIndex) -> str:
    """The names of the built-in judges in a sentence; empty if there are none."""
    built_in, judges = {view.name for view in index.run.reference_panel}, [judge.name for judge in index.study.judges]
    if built_in and built_in.issuperset(judges):
        return (
            "Every judge is a built-in grader with documented flaws planted in it. "
            "Nothing here describes a language model."
        )
    named = t.listing([clean(name, 60) for name in judges if name in built_in])
    are = "is a built-in grader" if len(built_in) == 1 else "are built-in graders"
    return f"{named} {are} with documented flaws planted, no language model." if built_in else ""


def _plan_rows(index: RunIndex) -> Iterator[tuple[Inline, ...]]:
    """Every field of the plan with its value and its meaning."""
    plan: dict[str, Any] = index.study.model_dump(mode="json")
    meanings = {name: meaning.replace("κ", index.sign) for name, meaning in _MEANINGS.items()}
    # The levels that the share of alpha gives under this plan.
    if dimensions := [d for d in index.dimensions if d != AGGREGATE and index.on(d, "first", "pair")]:
        whole, rest = (t.alpha(index.alpha(d)) for d in (AGGREGATE, dimensions[0]))
        meanings["inference.aggregate_share"] += f": α {whole} for the overall score, {rest} for dimensions"
    market = index.study.substrate is not None
    for agent in index.study.agents:
        shown = clean(f"{agent.model}, family {agent.family}", 200)
        yield b.code(f"agents.{clean(agent.name, 60)}"), shown, "agent that decides on every cycle"
    entries: list[tuple[str, Any]] = []
    for part in (*(("substrate", "controls") if market else ()), *_PARTS, *(("oracle",) if market else ()), "seed"):
        inner = plan[part].items() if isinstance(plan[part], dict) else None
        entries += [(part, plan[part])] if inner is None else [(f"{part}.{name}", value) for name, value in inner]
    for field, value in entries:
        shown = plan_value(value)
        if field == "substrate.date_probe" and isinstance(value, dict):
            asked = value["model"] or "no model"
            shown = clean(f"{asked}, {value['sample']} cycles, level {value['alpha']:g}", 200)
        elif field == "substrate.windows" and isinstance(value, dict):
            shown = clean("; ".join(f"{name} {first} to {last}" for name, (first, last) in value.items()), 400)
        elif field == "stability.probe" and isinstance(value, dict):
            shown = clean(f"{value['name']}, family {value['family']}, model {value['model']}", 200)
        if field != "rubric.text":  # it has a table of its own
            yield b.code(field), shown, meanings.get(field, "")


def plan_value(value: object) -> str:
    """A value of the plan in words."""
    if value is None:
        return "none set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}".replace("-", "−")
    if isinstance(value, dict):
        return ", ".join(f"{clean(str(key), 60)} {plan_value(item)}" for key, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(plan_value(item) for item in value) or "none"
    return clean(str(value), 200)


def invalid_words(index: RunIndex, judge: str) -> str:
    """The number of invalid replies of a judge, and of all its replies."""
    invalid, share = count(index.run.invalid.get(judge, 0)), index.get("judge.invalid_share", judge=judge)
    return index.link(share, f"{invalid} of {count(share.n)} ({percent(share.value, 1)})") if known(share) else invalid
