"""Pairs of answers as scores: the share of comparisons that an agent won, and what became of both orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assaymark.importers.roles import NAMES, Bools, Cells, Floats, Ints, Scored, coding, listed

_TIES: Final = ("tie", "tied", "draw", "both", "equal", "same", "c", "inconsistent", "tie (bothbad)", "bothbad", "0")
_FIRST: Final = ("a", "1", "first", "left", "[[a]]", "assistant_a")
_SECOND: Final = ("b", "2", "second", "right", "[[b]]", "assistant_b")
_TEXTS: Final = {f"{what}_{side}": float(side in "a1") for what in ("agent", "model", "system") for side in "ab12"}
_SWAPPED: Final = ("ba", "b,a", "swapped", "true", "yes", "2", "reversed", "vu", "1_swapped")
_STRAIGHT: Final = ("ab", "a,b", "original", "false", "no", "1", "0", "uv", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOrders:
    """Pairs that a judge saw in both orders: how many, and what became of them."""

    both: int
    same_text: int
    same_place: int
    first_place: int
    one_tie: int


def shares_of_wins(cells: Cells, *, twice: bool) -> tuple[Scored, dict[str, PairOrders]]:
    """Shares of comparisons won: the orders of a pair are averaged first, then its opponents; a tie is one half."""
    columns = ("order_1", "order_2") if twice else ("winner",)
    cells.need("item", "agent_a", "agent_b", "judge", *columns)
    cells.problems.refuse()
    judges, judge = cells.coded("judge", name=True)
    sides = [cells.coded(role, name=True) for role in ("agent_a", "agent_b")]
    items, item = cells.coded("item")
    cells.problems.refuse()
    agents = sorted({*sides[0][0], *sides[1][0]})
    place = {name: k for k, name in enumerate(agents)}
    first, second = (np.array([place[name] for name in names])[codes] for names, codes in sides)
    own = np.flatnonzero(first == second)
    cells.problems.rows(own, lambda row: (cells.at(row, "agent_b"), "an agent is compared with itself"))
    swapped = np.zeros(first.size, dtype=bool)
    if "order" in cells.roles and not twice:
        words = cells.column("order")
        swapped, known = shown_swapped(words)
        cells.problems.rows(
            np.flatnonzero(~known),
            lambda row: (cells.at(row, "order"), f"must be ab or ba (got {words[row].as_py()!r:.60})"),
        )
    turned = [np.zeros_like(swapped), ~swapped] if twice else [swapped]
    value = np.concatenate(
        [_won(cells, role, first, second, agents, way) for role, way in zip(columns, turned, strict=True)]
    )
    rows = np.arange(item.size)
    if twice:
        swapped = np.repeat([False, True], item.size)
        first, second, judge, item, rows = (np.tile(one, 2) for one in (first, second, judge, item, rows))
    _note_unread(cells, columns, value)
    cells.problems.refuse()
    of_low = np.where(first < second, value, 1 - value)  # what the agent gets whose name comes first
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = (first > second) ^ swapped
    a, usable = len(agents), ~np.isnan(of_low)
    pair = ((judge * len(items) + item) * a + low) * a + high
    again = usable.sum() - np.unique(pair[usable] * 2 + order[usable]).size
    if again:
        cells.filled.append(f"{again:,} comparisons repeat one of the same judge in the same order and are averaged")
    keys, by_order = _means(pair[usable] * 2 + order[usable], of_low[usable])
    keys, by_pair = _means(keys // 2, by_order)
    owner = keys // (a * a) * a
    ends = np.concatenate([owner + keys // a % a, owner + keys % a])
    cell, share = _means(ends, np.concatenate([by_pair, 1 - by_pair]))
    where, at = np.unique(judge * len(items) + item, return_index=True)
    made = Scored(
        items=items, item=cell // a % len(items), agents=agents, agent=cell % a, judges=judges,
        judge=cell // a // len(items), trial=np.ones(cell.size, dtype=np.int64), dimensions=["share of wins"],
        scores=share[:, None], row=rows[at[np.searchsorted(where, cell // a)]],
    )  # fmt: skip
    seen = pair * item.size + rows if twice else pair  # both orders of a row are of one sitting
    return made, _orders(judges, judge[usable], seen[usable], order[usable], of_low[usable])


def shown_swapped(words: pa.Array | pa.ChunkedArray) -> tuple[Bools, Bools]:
    """Which rows show the second text first, and which of the words say so or the contrary; 1 beside 0 is a flag."""
    lower = pc.utf8_lower(words)
    flag = bool(pc.any(pc.equal(lower, "0")).as_py())
    swapped = [*_SWAPPED, "1"] if flag else list(_SWAPPED)
    found = (pc.is_in(lower, pa.array(one)) for one in (swapped, [*swapped, *_STRAIGHT]))
    turned, known = (one.to_numpy(zero_copy_only=False) for one in found)
    return turned, known


def _means(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """The distinct keys, and the mean of the values of each."""
    found, at = np.unique(keys, return_inverse=True)
    return found, np.bincount(at, weights=values) / np.bincount(at)


def _won(cells: Cells, role: str, first: Ints, second: Ints, agents: Sequence[str], turned: Bools) -> Floats:
    """What a verdict gives the agent in ``agent_a``: 1, one half, 0 or NaN; ``turned``: its text was shown second."""
    words, codes = coding(cells.column(role))
    place = {name: k for k, name in enumerate(agents)}
    named = np.array([place.get(word.translate(NAMES), -1) for word in words])[codes]
    # What a verdict's label gives the text that was shown first: 1, one half, 0, NaN where it is none of them.
    slots: list[float] = []
    for word in words:
        plain = word.strip().lower()
        if plain in (*_FIRST, *_SECOND):
            slots.append(float(plain in _FIRST))
        else:
            slots.append(0.5 if plain in _TIES else float("nan"))
    slot = np.array(slots)
    if np.isin(slot, (0.0, 1.0)).any():
        shown = "agent_b's" if turned.all() else "agent_b's in rows that say so" if turned.any() else "agent_a's"
        cells.filled.append(f"{cells.roles[role]} names places: the first is the text that was shown first, {shown}")
    by_place = np.where(turned, 1 - slot[codes], slot[codes])
    content = np.array([_TEXTS.get(word.strip().lower(), np.nan) for word in words])[codes]
    by_place = np.where(np.isnan(content), by_place, content)
    return np.where(named == first, 1.0, np.where(named == second, 0.0, np.where(named >= 0, np.nan, by_place)))


def _note_unread(cells: Cells, columns: Sequence[str], value: Floats) -> None:
    """Say which verdicts could not be read; where none could, that is a problem."""
    unread = Counter[str]()
    for role, values in zip(columns, np.split(value, len(columns)), strict=True):
        words, codes = coding(cells.column(role))
        counts = np.bincount(codes[np.isnan(values)], minlength=len(words)).tolist()
        unread.update({word or "empty": n for word, n in zip(words, counts, strict=True) if n})
    lost, seen = unread.total(), listed([f"{word:.40} {n:,}" for word, n in sorted(unread.items())])
    if lost == value.size:
        what = f"no verdict of {lost:,} can be read ({seen}); the name of either agent, A, B and tie can"
        cells.problems.add(cells.roles[columns[0]], what)
    elif lost:
        cells.left.append(f"{lost:,} of {value.size:,} comparisons have no verdict that can be read: {seen}")


def _orders(judges: Sequence[str], judge: Ints, pair: Ints, order: Bools, of_low: Floats) -> dict[str, PairOrders]:
    """What became of the pairs that each judge saw in both orders; repeats of one order count in equal shares."""
    keys, at = np.unique(pair, return_inverse=True)
    with np.errstate(invalid="ignore"):
        (won, tie, lost), (won_too, tie_too, lost_too) = (
            [
                np.bincount(at[those], of_low[those] == value, keys.size) / np.bincount(at[those], minlength=keys.size)
                for value in (1.0, 0.5, 0.0)
            ]
            for those in (~order, order)
        )
    both, owner = ~np.isnan(won) & ~np.isnan(won_too), np.zeros(keys.size, dtype=np.int64)
    owner[at] = judge
    kinds = {
        "same_text": won * won_too + lost * lost_too, "same_place": won * lost_too + lost * won_too,
        "first_place": won * lost_too, "one_tie": tie * (1 - tie_too) + (1 - tie) * tie_too,
    }  # fmt: skip
    counts = {
        name: np.rint(np.bincount(owner[both], share[both], len(judges))).astype(int).tolist()
        for name, share in kinds.items()
    }
    of_both = np.bincount(owner[both], minlength=len(judges)).tolist()
    return {
        name: PairOrders(both=of_both[k], **{kind: found[k] for kind, found in counts.items()})
        for k, name in enumerate(judges)
        if of_both[k]
    }
