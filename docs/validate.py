"""Fill the tables in docs/validation/ and write docs/validation.md from them.

python docs/validate.py                            every cell that a table lacks (half an hour for all), then the page
python docs/validate.py --cells "nulls/normal*"    only these cells
python docs/validate.py --page                     the page alone, from the tables as they are
python docs/validate.py --sentences                count the labelled sentences again (half a minute), then the page

A cell is one world and one size of study. Its counts are added to its table when it is done, so that a run that was
broken off goes on where it stopped. Equal seeds give equal counts, with any number of jobs.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from itertools import product
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
if __name__ == "__main__":
    # Tables are small: threads of the linear algebra only get in each other's way.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from validation_commands import COMMANDS, COUNTS, command  # noqa: E402
from validation_intervals import KINDS, LEVEL, ranks  # noqa: E402
from validation_people import COUNTS as ANCHORED  # noqa: E402
from validation_people import EFFECTS, LABELS, NEEDED, WORLDS, cells, needed  # noqa: E402
from validation_sentences import UNSEEN, count_sentences  # noqa: E402
from validation_worlds import ALPHA, SHARE, Drawn, World, decide  # noqa: E402

from assaymark.metrology import publish_orders  # noqa: E402
from assaymark.metrology.bootstrap import wilson  # noqa: E402
from assaymark.metrology.contrasts import pairs_of  # noqa: E402

TABLES = DOCS / "validation"
PAGE = DOCS / "validation.md"
SEED = 20
SIZES = (2, 4, 8)
CLUSTERS = (3, 5, 8, 12, 20, 25, 40, 60)
SERIAL_CLUSTERS = (12, 24, 36, 60)
BIAS_CLUSTERS = (5, 12, 20, 40, 60)
POWER_CLUSTERS = (5, 12, 20, 40)
INTERVAL_CLUSTERS = (5, 12, 20, 60)
LOOKS = {f"{g // 2} clusters, then {g}": g for g in (10, 24, 40)}
GAPS = (0.1, 0.2, 0.3, 0.4, 0.5)
SHOWN_GAP = 0.4
SHOWN_GAPS = (0.3, 0.5)
SHOWN_SIZE = 4
"""Cells on the page; the tables have all sizes and gaps."""
CAVEAT = 0.065
"""A cell with a higher share of false claims (of false headlines, under a bias) is marked."""

NOT_COVERED = ("swings of", "likings of every judge")
"""Prefixes of worlds for which the rules promise nothing."""

RANKS = "ranks of six agents, all at once"
STAGES = ("published", "stable", "headline")
RULES = ("alone", "shared", "recusal", "drops", "headline", "headline if twice as long")

Row = dict[str, int]
Cell = Callable[[int, int], Row]
"""Counts of so many studies under a seed."""


def draws(name: str, seed: int, world: World, studies: int) -> Iterator[Drawn]:
    """Studies of one cell, a few hundred at a time."""
    for batch, start in enumerate(range(0, studies, world.at_once)):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), batch])
        yield world.draw(min(world.at_once, studies - start), rng)


# --- worlds -----------------------------------------------------------------------------------------------------------


def _kin(agents: int) -> tuple[str, ...]:
    """One agent in four is of each judge's family, and one of none."""
    families = ("north", "south", "east", "west")
    return tuple(families[k * 4 // agents] for k in range(agents))


def _falling(agents: int, top: float) -> tuple[float, ...]:
    return tuple(np.linspace(top, 0.0, agents).round(3).tolist())


NULLS: Mapping[str, Callable[[int], World]] = {
    "normal": lambda k: World(k),
    "skewed": lambda k: World(k, skew=(-1,) * k),
    "skewed against each other": lambda k: World(k, skew=(-1, 1) * (k // 2)),
    "agents differ in variance": lambda k: World(k, spread=tuple(np.geomspace(0.4, 2.5, k).round(3).tolist())),
    "one erratic agent": lambda k: World(k, spread=(3.0,) + (1.0,) * (k - 1)),
    "uneven clusters": lambda k: World(k, cycles=0),
    "ceiling": lambda k: World(k, centre=4.7, grades=True),
    "one ahead, the others equal": lambda k: World(k, levels=(1.0,)),
    "two equal ahead of the others": lambda k: World(k, levels=(1.0, 1.0)),
    "three dimensions": lambda k: World(k, on=(1.0,) * 3),
}
BIASES: Mapping[str, Callable[[int], World]] = {
    "own family .5": lambda k: World(k, agent_families=_kin(k), own=0.5),
    "length .25 a doubling": lambda k: World(k, slope=0.25, longer=_falling(k, 1.0)),
    "own family and length": lambda k: World(k, agent_families=_kin(k), own=0.5, slope=0.25, longer=_falling(k, 1.0)),
    "one odd judge .5": lambda k: World(k, odd=0.5),
    "one odd judge 1": lambda k: World(k, odd=1.0),
    "six dimensions from one impression": lambda k: World(k, levels=_falling(k, 0.5), on=(1.0,) * 6, halo=1.0),
    "half a halo": lambda k: World(k, levels=_falling(k, 0.6), on=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), halo=0.5),
    "likings of every judge .1": lambda k: World(k, taste=0.1),
    "likings of every judge .2": lambda k: World(k, taste=0.2),
}
WEEKS = World(cluster_sd=0.5, cycle_sd=0.2, judge_sd=0.2)
"""Nearly all of a week's difference is the agents' reaction to it, so that both have the same correlation."""

SERIAL: Mapping[str, Callable[[int], World]] = {
    "correlation .2": lambda k: replace(WEEKS, agents=k, rho=(0.2,) * k),
    "correlation .5": lambda k: replace(WEEKS, agents=k, rho=(0.5,) * k),
    "correlation .7": lambda k: replace(WEEKS, agents=k, rho=(0.7,) * k),
    "correlation .7 of one agent": lambda k: replace(WEEKS, agents=k, rho=(0.7,) + (0.0,) * (k - 1)),
    "swings of some ten weeks under noise": lambda k: replace(WEEKS, agents=k, rho=(0.0,) * k, slow=(0.3, 0.9)),
    "swings of half a year under noise": lambda k: replace(WEEKS, agents=k, rho=(0.0,) * k, slow=(0.3, 0.97)),
}
POWER: Mapping[str, Callable[[float], World]] = {
    "leader of 4": lambda gap: World(4, levels=(gap,), agent_families=_kin(4)),
    "leader of 8": lambda gap: World(8, levels=(gap,), agent_families=_kin(8)),
    "one pair of 8": lambda gap: World(8, levels=(gap / 2,) + (0.0,) * 6 + (-gap / 2,), agent_families=_kin(8)),
    "two agents": lambda gap: World(2, levels=(gap,), agent_families=("north", "west")),
}


# --- counts -----------------------------------------------------------------------------------------------------------


def false(name: str, world: World, studies: int, seed: int) -> Row:
    """Studies with an order that is not true: published, also stable, also a headline; then on dimensions alone."""
    counts = dict.fromkeys(STAGES, 0)
    for drawn in draws(name, seed, world, studies):
        found = decide(drawn, false=True)
        wrong = np.sign(found.gap) * world.truth <= 0
        for stage in STAGES:
            said = getattr(found, stage) & wrong
            counts[stage] += int(said.any(axis=(1, 2)).sum())
            if len(world.on) > 1:
                key = f"{stage} on dimensions"
                counts[key] = counts.get(key, 0) + int(said[:, 1:].any(axis=(1, 2)).sum())
    return counts


def power(name: str, world: World, studies: int, seed: int) -> Row:
    """Studies that make the true claim, as one rule after the other comes in."""
    longer = replace(world, longer=(1.0,) + (0.0,) * (world.agents - 1))
    first, second = pairs_of(world.agents)
    claimed = (first == 0) & ((second == world.agents - 1) | (len(world.levels) == 1))
    counts = dict.fromkeys(RULES, 0)
    for drawn, long in zip(draws(name, seed, world, studies), draws(name, seed, longer, studies), strict=True):
        found = decide(drawn)
        gap, p = drawn.tests(drawn.means.mean(axis=3))
        orders = {
            "alone": found.plain[:, 0],
            "shared": publish_orders(gap[:, 0], p[:, 0], SHARE * ALPHA).published,
            "recusal": found.published[:, 0],
            "drops": found.stable[:, 0],
            "headline": found.headline[:, 0],
            "headline if twice as long": decide(long).headline[:, 0],
        }
        for rule, said in orders.items():
            counts[rule] += int((said & (gap[:, 0] > 0))[:, claimed].all(axis=1).sum())
    return counts


def looks(name: str, world: World, studies: int, seed: int) -> Row:
    """Studies with a stable order on the first half of their clusters, and on either that or all of them."""
    half = replace(world, clusters=world.clusters // 2)
    counts = {"first": 0, "either": 0}
    for drawn in draws(name, seed, world, studies):
        cycles = half.cluster.size
        early = decide(Drawn(half, drawn.scores[:, :cycles], drawn.words[:, :cycles])).stable.any(axis=(1, 2))
        counts["first"] += int(early.sum())
        counts["either"] += int((early | decide(drawn).stable.any(axis=(1, 2))).sum())
    return counts


# --- the cells of every table -----------------------------------------------------------------------------------------


def _false_cells(worlds: Mapping[str, Callable[[int], World]], clusters: Sequence[int]) -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for kind, k, g in product(worlds, SIZES, clusters):
        if k > 2 or "others" not in kind:
            name = f"{kind}, {k} agents, {g} clusters"
            found[name] = partial(false, name, replace(worlds[kind](k), clusters=g))
    return found


def _power_cells() -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for kind, gap, g in product(POWER, GAPS, POWER_CLUSTERS):
        name = f"{kind}, gap {gap}, {g} clusters"
        found[name] = partial(power, name, replace(POWER[kind](gap), clusters=g))
    return found


def _interval_cells() -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for kind, g in product((*KINDS, RANKS), INTERVAL_CLUSTERS):
        if kind == RANKS or g >= KINDS[kind].fewest:
            name = f"{kind}, {g} clusters"
            count = ranks if kind == RANKS else KINDS[kind].count
            found[name] = partial(_counted, count, name, g)
    return found


def _counted(count: Callable[..., Row], name: str, what: int | World, studies: int, seed: int) -> Row:
    return count(what, studies, partial(draws, name, seed))


CELLS: Mapping[str, tuple[int, Mapping[str, Cell]]] = {
    "nulls": (10_000, _false_cells(NULLS, CLUSTERS)),
    "serial": (10_000, _false_cells(SERIAL, SERIAL_CLUSTERS)),
    "biases": (1_000, _false_cells(BIASES, BIAS_CLUSTERS)),
    "power": (1_000, _power_cells()),
    "intervals": (2_000, _interval_cells()),
    "looks": (10_000, {name: partial(looks, name, World(clusters=g)) for name, g in LOOKS.items()}),
    "people": (2_000, dict(cells())),
    "labels": (2_000, {f"lead of {effect}": partial(needed, effect) for effect in EFFECTS}),
    "commands": (100, {name: partial(_counted, command, name, world) for name, world in COMMANDS.items()}),
}
"""Of every table, how many studies a cell has, and its cells."""


# --- running ----------------------------------------------------------------------------------------------------------


def read(table: str, folder: Path = TABLES) -> dict[tuple[str, int], dict[str, str]]:
    """The rows of a table by cell and seed."""
    path = folder / f"{table}.csv"
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as handle:
        return {(row["cell"], int(row["seed"])): row for row in csv.DictReader(handle)}


def run(pattern: str, studies: int | None, seed: int, jobs: int, folder: Path) -> None:
    """Count every cell that its table lacks, and write each as it is done."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        (table, name, studies or size, cell)
        for table, (size, cells) in CELLS.items()
        for name, cell in cells.items()
        if fnmatch(f"{table}/{name}", pattern) and (name, seed) not in read(table, folder)
    ]
    started = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(cell, size, seed): (table, name, size) for table, name, size, cell in wanted}
        try:
            for done, future in enumerate(as_completed(running), start=1):
                table, name, size = running[future]
                _append(folder / f"{table}.csv", {"cell": name, "seed": seed, "studies": size} | future.result())
                left = (time.monotonic() - started) / done * (len(wanted) - done) / 60
                sys.stderr.write(f"{done} of {len(wanted)}, {left:.0f} minutes left: {table}/{name}\n")
        finally:
            pool.shutdown(cancel_futures=True)
    for table in CELLS:
        _in_order(table, folder)


def _append(path: Path, row: Mapping[str, object]) -> None:
    """One more row at the end of a table."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, _columns(path.stem), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def _columns(table: str) -> list[str]:
    """The columns of a table; those that a cell does not have stay empty."""
    counts: dict[str, Sequence[str]] = {
        "power": RULES,
        "intervals": ("made", "covered"),
        "looks": ("first", "either"),
        "commands": COUNTS,
        "people": ANCHORED,
        "labels": NEEDED,
    }
    return ["cell", "seed", "studies", *counts.get(table, (*STAGES, *(f"{stage} on dimensions" for stage in STAGES)))]


def _in_order(table: str, folder: Path) -> None:
    """Write a table again with its rows in the order of its cells."""
    rows, part = read(table, folder), folder / "part" / f"{table}.csv"
    if rows:
        part.parent.mkdir(exist_ok=True)
        part.unlink(missing_ok=True)
        for name, key in product(CELLS[table][1], rows):
            if key[0] == name:
                _append(part, rows[key])
        part.replace(folder / part.name)
        part.parent.rmdir()


# --- the page ---------------------------------------------------------------------------------------------------------


def page(text: str, folder: Path = TABLES) -> str:
    """The page with every table between its marks written again."""
    for part, lines in PARTS.items():
        start, end = f"<!-- {part}: generated by docs/validate.py -->", f"<!-- end of {part} -->"
        head, rest = text.split(start)
        text = head + start + "\n\n" + "\n".join(lines(folder)) + "\n\n" + end + rest.split(end)[1]
    return text


def _count(rows: Mapping[tuple[str, int], Mapping[str, str]], name: str, *columns: str) -> list[float]:
    """Shares of studies, in percent."""
    row = rows[name, SEED]
    return [100 * int(row[column]) / int(row["studies"]) for column in columns]


def _false_part(table: str, worlds: Sequence[str], clusters: Sequence[int], folder: Path) -> Iterator[str]:
    """A row for each world of four agents, three shares for each number of clusters."""
    rows = read(table, folder)
    # Length and impressions leave claims, which say so in their conditions; headlines are what they keep out.
    held = STAGES[2:] if table == "biases" else STAGES[1:]
    yield from _head(["scenario, 4 agents"], [f"{g} clusters" for g in clusters])
    for kind in worlds:
        shares = [_count(rows, f"{kind}, {SHOWN_SIZE} agents, {g} clusters", *STAGES) for g in clusters]
        marked = [
            " → ".join(f"{x:.1f}" for x in row) + (" †" if row[-len(held)] > 100 * CAVEAT else "") for row in shares
        ]
        yield f"| {kind} | {' | '.join(marked)} |"
    yield ""
    for stage in held:
        covered = [row for (name, seed), row in rows.items() if seed == SEED and not name.startswith(NOT_COVERED)]
        worst = max(covered, key=lambda row: int(row[stage]) / int(row["studies"]))
        low, high = wilson(int(worst[stage]), int(worst["studies"]))
        share = f"{_count(rows, worst['cell'], stage)[0]:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        yield f"Highest *{stage}* rate in any covered cell: {share} ({worst['cell']})."
        yield ""
    yield f"{int(worst['studies']):,} studies per cell."


def _head(names: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join([*names, *numbers])} |"
    yield f"|{'---|' * len(names)}{'---:|' * len(numbers)}"


def _cost_part(folder: Path) -> Iterator[str]:
    """Rows of the power that is left as one rule after the other is added."""
    rows = read("power", folder)
    yield from _head(["claim", "clusters"], ["test alone", "with dimensions", "judges recused", "every family left out",
                                             "headline", "headline if twice as long"])  # fmt: skip
    for kind, g in product(POWER, POWER_CLUSTERS):
        shares = _count(rows, f"{kind}, gap {SHOWN_GAP}, {g} clusters", *RULES)
        yield f"| {kind} | {g} | {' | '.join(f'{x:.0f}' for x in shares)} |"


def _power_part(folder: Path) -> Iterator[str]:
    """Test alone and headline, by gap and clusters."""
    rows = read("power", folder)
    yield from _head(["claim", "gap"], [f"{g} clusters" for g in POWER_CLUSTERS])
    for kind, gap in product(POWER, SHOWN_GAPS):
        names = [f"{kind}, gap {gap}, {g} clusters" for g in POWER_CLUSTERS]
        shares = [_count(rows, name, "alone", "drops", "headline") for name in names]
        yield f"| {kind} | {gap} | {' | '.join(' → '.join(f'{x:.0f}' for x in row) for row in shares)} |"


def _interval_part(folder: Path) -> Iterator[str]:
    rows = read("intervals", folder)
    yield from _head(["interval"], [f"{g} clusters" for g in INTERVAL_CLUSTERS])
    for kind in (*KINDS, RANKS):
        shown = []
        for g in INTERVAL_CLUSTERS:
            row = rows.get((f"{kind}, {g} clusters", SEED))
            covered, made = (0, 0) if row is None else (int(row["covered"]), int(row["made"]))
            low = made and wilson(covered, made, level=0.999)[1] < LEVEL
            shown.append(f"{100 * covered / made:.1f}{' ‡' if low else ''}" if made else "")
        yield f"| {kind} | {' | '.join(shown)} |"


def _look_part(folder: Path) -> Iterator[str]:
    rows = read("looks", folder)
    yield from _head(["study"], ["after the first look", "after either look"])
    for name in LOOKS:
        yield f"| {name} | {' | '.join(f'{x:.1f}' for x in _count(rows, name, 'first', 'either'))} |"


def _people_part(folder: Path) -> Iterator[str]:
    """Coverage of people's intervals, corrected by judges and alone."""
    rows = read("people", folder)
    yield from _head(["judges", "interval"], [f"{n} cycles" for n in LABELS])
    for world, (column, words) in product(WORLDS, (("covered", "corrected"), ("covered alone", "people alone"))):
        found = [rows[f"{world}, {n} labels", SEED] for n in LABELS]
        shares = [100 * int(row[column]) / int(row["made"]) for row in found]
        yield f"| {world} | {words} | {' | '.join(f'{x:.1f}' for x in shares)} |"


def _confirmed_part(folder: Path) -> Iterator[str]:
    """False orders that judges publish and people confirm, and true ones that people confirm."""
    rows = read("people", folder)
    yield from _head(["judges", "ranking"], [f"{n} cycles" for n in LABELS])
    for world in WORLDS:
        true = WORLDS[world].gap > 0
        kinds = (("true", "published", "confirmed"),) if true else ()
        for order, before, after in (*kinds, ("false", "false", "wrong")):
            shares = [_count(rows, f"{world}, {n} labels", before, after) for n in LABELS]
            yield f"| {world} | {order} | {' | '.join(' → '.join(f'{x:.1f}' for x in row) for row in shares)} |"


def _label_part(folder: Path) -> Iterator[str]:
    """Labels that planning asks for, and how often so many confirm the order."""
    yield from _head(["lead"], ["with judges", "people alone", "saved", "confirmed with judges", "confirmed alone"])
    for (name, _), row in read("labels", folder).items():
        of, labels, alone = int(row["studies"]), int(row["labels"]), int(row["labels alone"])
        shares = [f"{100 * int(row[column]) / of:.0f} %" for column in ("confirmed", "confirmed alone")]
        saved = f"{100 - 100 * labels / alone:.0f} %" if alone else ""
        reached = [
            str(labels or "not reached"),
            str(alone or "not reached"),
            saved,
            shares[0],
            shares[1] if alone else "",
        ]
        yield f"| {name.removeprefix('lead of ')} | {' | '.join(reached)} |"


def _sentence_part(folder: Path) -> Iterator[str]:
    with (folder / "sentences.csv").open(newline="", encoding="utf-8") as handle:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(handle)]
    yield from _head(
        ["part"], ["sentences", "comparisons", "recall", "precision", "marks", "recall unseen", "precision unseen"]
    )
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    for name, row in [*((str(row["part"]), row) for row in rows), ("all", total)]:
        right, found = row["right"], row["found"]
        shares = [right / row["compare"], right / found, row["marks"] / row["sentences"]]
        unseen = [f"{100 * share:.1f} %" for share in UNSEEN.get(name, ())] or ["", ""]
        cells = [str(row["sentences"]), str(row["compare"]), *(f"{100 * share:.1f} %" for share in shares), *unseen]
        yield f"| {name} | {' | '.join(cells)} |"


PARTS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "nulls": partial(_false_part, "nulls", tuple(NULLS), CLUSTERS),
    "serial": partial(_false_part, "serial", tuple(SERIAL), SERIAL_CLUSTERS),
    "biases": partial(_false_part, "biases", tuple(BIASES), BIAS_CLUSTERS),
    "costs": _cost_part,
    "power": _power_part,
    "intervals": _interval_part,
    "looks": _look_part,
    "people": _people_part,
    "confirmed": _confirmed_part,
    "labels": _label_part,
    "sentences": _sentence_part,
}


def main() -> None:
    """Read the options, fill the tables, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="*", help='which, as TABLE/CELL, such as "nulls/*, 8 agents, *"')
    parser.add_argument("--studies", type=int, help="of each cell; default: those of the page")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=TABLES, help="folder of the tables")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--sentences", action="store_true", help="count the labelled sentences alone")
    given = parser.parse_args()
    if given.sentences:
        count_sentences(given.out / "sentences.csv")
    if given.studies and given.out == TABLES:
        parser.error("the page needs its own number of studies; give --out for others")
    if not given.page and not given.sentences:
        run(given.cells, given.studies, given.seed, given.jobs, given.out)
    lacking = [name for table, (_, cells) in CELLS.items() for name in cells if (name, SEED) not in read(table)]
    if lacking:
        sys.exit(f"the page is left as it is: the tables lack {len(lacking)} cells, such as {lacking[0]}")
    if given.out == TABLES:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
