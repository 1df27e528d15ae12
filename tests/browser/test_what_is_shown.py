"""Suppressed values are on no page: pages are the same when all their numbers and directions are replaced.

Each run is taken as its pages take it, and all that may not be shown is changed: the direction and the size of every
pair that is not ordered, who leads where nobody may be called first, and the scores of all that share a tier. Ranges
over judges, intervals and p-values stay, and so must every page, figure, alternative text and file beside them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import assay_runs
import bench_runs
import full_runs
import pytest
from made_season import made_catalogue, made_season

from assaymark.claims import phrase
from assaymark.records import AGGREGATE, Claim, Measurement, Verdict, measurement_id
from assaymark.report import AssayRun, portbench, render_pages
from assaymark.report import season as season_pages_door
from assaymark.workflow import RunFolder, study_contents, tracks

Pairs = set[tuple[str, frozenset[str]]]
"""Scores with two names each."""

LEVELS = ("score.effect", "lofo.effect", "rank.first", "bench.level", "season.total", "season.without")
WITHOUT_A_POINT = ("season.axis", "season.outcome", "season.efficiency", "season.composite")


# --- what may not be shown --------------------------------------------------------------------------------------------


def kind_of(claim: Claim) -> str:
    """Return the kind of a claim, from its id, in every track."""
    return claim.id.partition("[")[0].removeprefix("season.")


def unsupported(verdicts: list[Verdict]) -> Pairs:
    """The pairs of which neither the order nor their closeness is supported."""
    pairs = [one for one in verdicts if kind_of(one.claim) in ("above", "within")]
    said_of = [one for one in pairs if one.publication_level != "no-claim"]
    known, kept = ({(one.claim.dimension, frozenset(one.claim.subjects)) for one in of} for of in (pairs, said_of))
    return known - kept


def turned(item: Measurement, pairs: Pairs) -> Measurement:
    """A difference of such a pair in the other direction and of another size."""
    high, low = item.labels["high"], item.labels["low"]
    if (item.labels.get("dimension", AGGREGATE), frozenset((high, low))) not in pairs:
        return item
    made = replace(item, labels={**item.labels, "high": low, "low": high})
    return other_size(made)


def other_size(item: Measurement) -> Measurement:
    """The same on the same side of zero, with all of its numbers larger."""
    value, low, high = (None if one is None else 1.37 * one for one in (item.value, item.low, item.high))
    return replace(item, value=value, low=low, high=high)


def moved(item: Measurement) -> Measurement:
    """A score with another value inside the same interval."""
    if item.value is None:
        return item
    inside = item.low is not None and item.high is not None and item.low < item.value < item.high
    value = (0.3 * item.low + 0.7 * item.value) if inside else item.value + 0.0137
    detail = {**item.detail, "shares": list(item.detail["shares"])[::-1]} if "shares" in item.detail else item.detail
    return replace(item, value=value, detail=detail)


def donors(verdicts: list[Verdict]) -> dict[str, Verdict]:
    """For each unsupported first rank that of another agent on the same score, by the id of its claim."""
    firsts: dict[str, list[Verdict]] = {}
    for one in verdicts:
        # That one cannot be compared, for want of periods or of a score, names it and says nothing of an order.
        tested = one.stability_status != "not tested"
        if kind_of(one.claim) == "first" and one.publication_level == "no-claim" and tested:
            firsts.setdefault(one.claim.dimension, []).append(one)
    pairs = [pair for mine in firsts.values() for pair in zip(mine, mine[1:] + mine[:1], strict=True)]
    return {one.claim.id: donor for one, donor in pairs}


def claims_turned(verdicts: list[Verdict], pairs: Pairs, names: Mapping[str, str]) -> list[Verdict]:
    """The verdicts with such pairs the other way round, and with each unsupported first rank decided as another's."""
    donor, found = donors(verdicts), []
    for one in verdicts:
        rests, claim, made = list(one.measurements), one.claim, one
        if one.claim.id in donor:
            made = donor[one.claim.id]
            kinds = {name.partition("[")[0] for name in rests}
            rests += [name for name in made.measurements if name.partition("[")[0] not in kinds]
        elif (claim.dimension, frozenset(claim.subjects)) in pairs:
            high, low = claim.subjects
            name = measurement_id(claim.id.partition("[")[0], {"dimension": claim.dimension, "high": low, "low": high})
            claim = replace(claim, id=name, subjects=(low, high), statement="Turned the other way round.")
        found.append(replace(made, claim=claim, measurements=tuple(names.get(name, name) for name in rests)))
    return found


def shared(tiers: Mapping[str, tuple[tuple[str, ...], ...]]) -> set[tuple[str, str]]:
    """(score, name) of all that share a tier."""
    return {(scale, name) for scale, found in tiers.items() for tier in found if len(tier) > 1 for name in tier}


def study_turned(run: AssayRun) -> AssayRun:
    """A study in which all that may not be shown is another."""
    from assaymark.report import RunIndex

    pairs, book = unsupported(list(run.verdicts)), RunIndex.of(run)
    members = shared({d: book.summary.tiers.get(d, (book.agents,)) for d in book.dimensions})
    found = []
    for item in run.measurements:
        made = item
        if {"high", "low"} <= item.labels.keys():
            made = turned(item, pairs)
        elif item.name in LEVELS and (item.labels.get("dimension", AGGREGATE), item.labels["agent"]) in members:
            made = moved(item)
        found.append(made)
    names = {before.id: after.id for before, after in zip(run.measurements, found, strict=True)}
    return replace(run, measurements=tuple(found), verdicts=tuple(claims_turned(list(run.verdicts), pairs, names)))


def bench_turned(run: portbench.BenchRun) -> portbench.BenchRun:
    """A benchmark in which all that may not be shown is another."""
    pairs = unsupported(list(run.verdicts))
    members = shared({one.board.name: one.tiers for one in run.leaderboards})
    kept = {one.claim.id for one in run.verdicts if one.publication_level != "no-claim"}

    def item(one: Measurement) -> Measurement:
        labels = one.labels
        if one.name == "contrast":
            return turned(one, pairs)
        if one.name == "bench.sharpe.contrast" and measurement_id("beats", labels) not in kept:
            return other_size(one)
        of_ceps = labels.get("stage") == "CEPS" or one.name == "bench.risk_safe"
        board = labels.get("board") or (labels.get("profile") if of_ceps else None)
        return moved(one) if (board, labels.get("model")) in members else one

    found = [item(one) for one in run.measurements]
    names = {before.id: after.id for before, after in zip(run.measurements, found, strict=True)}
    by_id = {one.id: one for one in found}
    boards = tuple(
        replace(board, levels={name: by_id.get(one.id, item(one)) for name, one in board.levels.items()})
        for board in run.leaderboards
    )
    claims = tuple(claims_turned(list(run.verdicts), pairs, names))
    return replace(run, measurements=tuple(found), verdicts=claims, leaderboards=boards)


def season_turned(run: season_pages_door.SeasonRun) -> season_pages_door.SeasonRun:
    """A season in which all that may not be shown is another; what a judge gave stays."""
    every = [one.verdict for one in run.decided.verdicts]
    pairs = unsupported(every)
    members = {place.agent for place in run.decided.places if not place.shown}
    share = {row.contestant: 1.0 for row in run.table}
    rows = []
    for row in run.table:
        found = row.agreement
        if row.contestant in members and found is not None and row.total is not None and found.high > found.low:
            middle = 0.4 * found.low + 0.6 * found.median
            share[row.contestant] = middle / found.median
            whole = None if row.efficiency is None else row.efficiency * share[row.contestant]
            row = replace(
                row, agreement=replace(found, median=middle), total=row.total * share[row.contestant], efficiency=whole
            )
        rows.append(row)
    totals = {row.contestant: row.total for row in run.table}

    def item(one: Measurement) -> Measurement:
        agent = one.labels.get("agent", "")
        if {"high", "low"} <= one.labels.keys():
            return turned(one, pairs)
        if agent not in members or one.value is None:
            return one
        if one.name in ("season.total", "season.efficiency"):
            return replace(one, value=one.value * share[agent])
        if one.name == "season.without":  # the change of the total stays
            return replace(one, value=one.value + (totals[agent] or 0.0) * (share[agent] - 1))
        return replace(one, value=one.value + 0.37) if one.name in WITHOUT_A_POINT else one

    measured = [item(one) for one in run.measurements]
    names = {before.id: after.id for before, after in zip(run.measurements, measured, strict=True)}
    donor, by_id = donors(every), {one.verdict.claim.id: one for one in run.decided.verdicts}
    decided = []
    for one, verdict in zip(run.decided.verdicts, claims_turned(every, pairs, names), strict=True):
        made = replace(one, verdict=verdict)
        if one.verdict.claim.id in donor:
            made = replace(made, reasons=by_id[donor[one.verdict.claim.id].claim.id].reasons)
        elif verdict.claim.id != one.verdict.claim.id:
            made = replace(made, statement=phrase("claim.says.above", high="Y", low="X", scope=""))
        decided.append(made)
    found = replace(run.decided, verdicts=tuple(decided))
    return replace(run, table=tuple(rows), measurements=tuple(measured), decided=found)


# --- the runs ---------------------------------------------------------------------------------------------------------


def led() -> AssayRun:
    """A study in which nothing is supported, and the leader's own claim rests on more than the others."""
    run = full_runs.halted()
    more = tuple(one.id for one in run.measurements if one.name == "lofo.effect")
    changed = [replace(one, measurements=(*one.measurements, *more)) if one.claim.subjects == ("Marten",) else one
               for one in run.verdicts]  # fmt: skip
    return replace(run, verdicts=tuple(changed))


def season_pages(run: season_pages_door.SeasonRun, languages: Sequence[str] = ("en", "de")) -> dict[str, str]:
    """Every file of its site."""
    return dict(season_pages_door.site_pages(run, [made_catalogue(code) for code in languages]))


def short(run: AssayRun) -> AssayRun:
    """A study with some rows of its fact check, which say nothing of who is ahead."""
    return replace(run, evidence=run.evidence[:40])


def brief(run: portbench.BenchRun) -> portbench.BenchRun:
    """A benchmark with two of its episodes, which say nothing of who is ahead."""
    rest = [replace(one, dates=()) for one in run.results[2:]]
    return replace(run, results=[*run.results[:2], *rest], pool=run.pool[:40])


MADE: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Mapping[str, str]]]] = {
    "study": (lambda: short(full_runs.full()), study_turned, render_pages),
    "study of few claims": (lambda: short(assay_runs.realistic()), study_turned, render_pages),
    "study without a claim": (lambda: short(led()), study_turned, render_pages),
    "season": (partial(made_season, 8, 6), season_turned, season_pages),
    "season of one judge": (partial(made_season, 5, 3, 1), season_turned, partial(season_pages, languages=("en",))),
    "benchmark": (lambda: brief(bench_runs.eight()), bench_turned, portbench.render_benchmark),
    "benchmark of two": (lambda: brief(bench_runs.two()), bench_turned, portbench.render_benchmark),
}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the differing pages, each with the first words that differ."""
    found = [f"{path} is not made" for path in one.keys() ^ other.keys()]
    for path in sorted(one.keys() & other.keys()):
        if one[path] != other[path]:
            at = next((at for at, (a, b) in enumerate(zip(one[path], other[path], strict=False)) if a != b), 0)
            found.append(f"{path}: ...{one[path][max(at - 120, 0) : at + 60]!r} is {other[path][at : at + 60]!r}")
    return found


def asked(name: str, example: Callable[[str], Path], scratch: Path) -> tuple[Any, ...]:
    """A run that was made up, or asked for at the command line; how it is turned, and how its pages are made."""
    if name in MADE:
        make, turn, render = MADE[name]
        return make(), turn, render
    if name == "a demo":
        return study_contents(RunFolder(example("demo").parent / "run"))[0], study_turned, render_pages
    folder = RunFolder(scratch / "run")
    if name == "a season":
        shutil.copytree(example("season").parent / "season", folder.path)
        return tracks.decide_judged_season(folder)[0], season_turned, season_pages
    shutil.copytree(example("portbench"), folder.path)
    return tracks.decide_bench(folder), bench_turned, portbench.render_benchmark


@pytest.mark.parametrize("name", [*MADE, "a demo", "a season", "a benchmark"])
def test_pages_do_not_change_with_what_may_not_be_shown(name, example, tmp_path):
    run, turn, render = asked(name, example, tmp_path)
    other = turn(run)
    assert other.measurements != run.measurements
    assert not differences(dict(render(run)), dict(render(other)))


@pytest.mark.parametrize("name", ["demo", "whole study", "season", "portbench"])
def test_no_file_of_a_run_has_a_sentence_that_is_not_supported(name, example):
    """Whatever lies beside the pages too; certificates and tables hold everything, and the file of verdicts its ids."""
    root = example(name)
    [*found] = (root.parent / "season" if name == "season" else root).rglob("verdicts.json")
    assert found
    said_nowhere = [
        sentence.rstrip(".")
        for path in found
        for one in json.loads(path.read_text(encoding="utf-8"))["verdicts"]
        if one["publication_level"] == "no-claim"
        for sentence in (one["claim"]["statement"], one["claim"]["statement"].replace("'", "’"))
    ]
    assert said_nowhere
    data = ("tables", "certificates", "objects")
    for path in root.rglob("*"):
        if path.suffix in (".html", ".csv", ".svg", ".js", ".txt", ".xml") and not set(path.parts) & set(data):
            text = re.sub(r"\s+", " ", unescape(path.read_text(encoding="utf-8")))
            assert not [one for one in said_nowhere if one in text], path
