"""A set of questions from a market."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Final

import numpy as np

from assaymark.benchmark.questions import templates as draws
from assaymark.benchmark.questions.payloads import (
    REGIME_NAMES,
    SPLITS,
    TEMPLATES,
    Answer,
    Direction,
    Number,
    Payload,
    RegimeView,
    Split,
    Template,
    Weights,
)
from assaymark.benchmark.questions.published import payload_states, without_answer
from assaymark.benchmark.questions.templates import (
    CHANGES,
    Day,
    Question,
    Unsuitable,
    answer_of,
    day_end,
    day_of,
    way_of,
)
from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.market import CLASSES, AssetClass, History, class_index, fill_gaps, regimes
from assaymark.portfolio.qp import Floats

COUNTS: Mapping[Template, int] = MappingProxyType(
    {"T1": 1000, "T2": 1000, "T3": 1000, "T4": 1000, "T5": 1000, "T6": 778, "T7": 491}
)
"""How many of each template: 6,269 (figure 15)."""

SHARES: Mapping[Split, int] = MappingProxyType({"train": 1941, "val": 2700, "test": 1628})
"""How items are shared out between the splits: in proportion to the set that the authors published."""

LEAST_REGIME: Final = 0.10
"""Share of the days of a split that each regime gets at least, where the split has so many days of it."""

LONGEST_LOOK: Final = 252
"""Days that a regime looks back, and so the least history of a question."""

_DAYS = 120  # of a split that is asked for fewer T7; each T7 needs a day of its own


def generator(*names: object) -> np.random.Generator:
    """The random numbers that belong to these names, on every machine."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "big"))))


def split_of(year: int) -> Split:
    """The split of a year (PortBench, B.3)."""
    return "train" if year <= 2022 else "val" if year <= 2024 else "test"


def shared_out(counts: Mapping[Template, int]) -> dict[tuple[Template, Split], int]:
    """Items of each template and split: in proportion to `SHARES`, whole, and even for T6."""
    known = f"is no template; templates are {', '.join(TEMPLATES)}"
    problems = [Problem(name, known) for name in counts if name not in TEMPLATES]
    problems += [Problem(name, f"must be 0 or more (got {n})") for name, n in counts.items() if n < 0]
    if counts.get("T6", 0) % 2:
        problems.append(Problem("T6", f"must be even, because half of it needs a trade (got {counts['T6']})"))
    if problems:
        raise InputError("counts", problems)
    found = {}
    total = sum(SHARES.values())
    for name, count in counts.items():
        step = 2 if name == "T6" else 1
        exact = {split: count * share / total / step for split, share in SHARES.items()}
        whole = {split: int(value) for split, value in exact.items()}
        short = count // step - sum(whole.values())
        for split in sorted(SPLITS, key=lambda one: whole[one] - exact[one])[:short]:
            whole[split] += 1
        found.update({(name, split): step * value for split, value in whole.items() if value})
    return found


def chosen_days(
    history: History, wanted: Mapping[tuple[Template, Split], int], *, seed: int, window: int, horizon: int
) -> dict[Split, list[tuple[int, AssetClass]]]:
    """The rows of the days of each split, in order, each with the class whose regime T7 asks for on it.

    Every regime that any class is in has a share of them.
    """
    problems, found = [], {}
    back = max(window, LONGEST_LOOK)
    rows = np.arange(back, history.days.size - horizon)
    years = history.days[rows].astype("datetime64[Y]").astype(int) + 1970
    if not any(one.asset_class == "EQ" for one in history.listings):
        raise InputError("market", ["questions need the class equity, whose regime they state"])
    index = class_index(fill_gaps(history.bars["close"]), history.listings)
    labels = {kind: regimes(path) for kind, path in index.items()}
    for split in SPLITS:
        most = max((count for (_, one), count in wanted.items() if one == split), default=0)
        if not most:
            continue
        alone = wanted.get(("T7", split), 0)
        there = rows[[split_of(int(year)) == split for year in years]]
        if there.size < max(alone, 1):
            when = {"train": "up to 2022", "val": "in 2023 and 2024", "test": "from 2025 on"}[split]
            needs = f"needs {max(alone, 1)} days {when} with {back} days before and {horizon} after them"
            instead = "take a longer market or ask for fewer questions"
            problems.append(Problem(f"split {split}", f"{needs} (got {int(there.size)}); {instead}"))
            continue
        count = min(max(alone, min(most, _DAYS)), there.size)
        order = generator("portbench", seed, "days", split).permutation(there)
        least = max(1, round(count * LEAST_REGIME))
        days: dict[int, AssetClass] = {}
        for name in REGIME_NAMES:
            # CLASSES begins with equities: other classes are asked about only where those do not have the regime.
            of = ((int(row), kind) for kind in CLASSES if kind in labels for row in order if labels[kind][row] == name)
            new = dict(islice(((row, kind) for row, kind in of if row not in days), least))
            days.update(islice(new.items(), max(count - len(days), 0)))
        for row in order:
            if len(days) < count:
                days.setdefault(int(row), "EQ")
        found[split] = sorted(days.items())
    if problems:
        raise InputError(f"market {history.source} {history.snapshot}".strip(), problems)
    return found


_TRIES = 40


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions and what they were made from."""

    questions: tuple[Question, ...]
    source: str
    snapshot: str
    seed: int
    window: int
    horizon: int
    lookback: int


def generate_questions(
    history: History, *, seed: int = 0, counts: Mapping[Template, int] = COUNTS, window: int = 252, horizon: int = 21,
    lookback: int = 60, instruments: Collection[str] | None = None, splits: Collection[Split] = SPLITS,
) -> QuestionSet:  # fmt: skip
    """Make a set of questions (PortBench, section 2.2 and Appendix D)."""
    wanted = shared_out(counts)
    least = {"window": (window, 20), "horizon": (horizon, 1), "lookback": (lookback, 2)}
    problems = [
        Problem(name, f"must be {low} or more (got {value})") for name, (value, low) in least.items() if value < low
    ]
    longest = max(window, LONGEST_LOOK)
    if lookback > longest:
        problems.append(Problem("lookback", f"must be at most {longest} (got {lookback})"))
    if problems:
        raise InputError("questions", problems)
    for what, given, known in (
        ("instrument", set(instruments or ()), [one.id for one in history.listings]),
        ("split", set(splits), SPLITS),
    ):
        for name in sorted(given - set(known)):
            raise UnknownNameError(what, name, known)
    days = chosen_days(history, wanted, seed=seed, window=window, horizon=horizon)
    only = None if instruments is None else frozenset(instruments)
    maker = _Maker(history, seed, window, horizon, lookback)
    found: list[Question] = []
    for split, rows in days.items():
        left = {name: wanted[name, split] for name in TEMPLATES if (name, split) in wanted}
        if split not in splits:
            maker.made.update(left)  # ids count on as if these had been made
            continue
        views = ((row, kind, day_of(history, row, window=longest, instruments=only)) for row, kind in rows)
        found += maker.split(split, left, views, len(rows))
    return QuestionSet(tuple(found), history.source, history.snapshot, seed, window, horizon, lookback)


@dataclass(slots=True)
class _Maker:
    """Makes the questions of one set, day after day, so that one day is in memory at a time."""

    history: History
    seed: int
    window: int
    horizon: int
    lookback: int
    made: Counter[Template] = field(default_factory=Counter)
    closes: Floats = field(init=False)
    columns: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        last = day_end(self.history, self.history.days.size - 1)
        whole = last.prices(self.history.days.size)
        # Columns of the whole market: an instrument may list after the day of a question and before the end.
        self.columns = {name: at for at, name in enumerate(whole.ids)}
        self.closes = np.full((self.history.days.size, len(whole.ids)), np.nan)
        self.closes[np.searchsorted(self.history.days, whole.days)] = whole.values

    def split(
        self, split: Split, left: Mapping[Template, int], days: Iterator[tuple[int, AssetClass, Day]], count: int
    ) -> list[Question]:
        """The questions of one split: every day has its share of each template, and what days before could not make."""
        found: list[Question] = []
        done: Counter[Template] = Counter()
        for place, (row, kind, day) in enumerate(days, 1):
            equities = day.regime("EQ")
            for name, whole in left.items():
                due = whole * place // count
                rng = generator("portbench", self.seed, name, day.day)
                for payload, answer in self.of_day(rng, name, day, row, kind, done[name], due - done[name]):
                    done[name] += 1
                    self.made[name] += 1
                    mark = f"{name}-{day.day:%Y%m%d}-{self.made[name]:04d}"
                    if name == "T7":
                        context = day.context([], regime="", most=20)
                    else:
                        ids = getattr(payload, "instruments", None) or [getattr(payload, "instrument", "")]
                        context = day.context(ids, regime=equities, most=8)
                    regime = answer.regime if isinstance(answer, RegimeView) and answer.regime else equities
                    bare = without_answer(context, answer)
                    found.append(Question(mark, name, split, regime, day.day, payload, bare, answer))
        short = [f"{n - done[name]} of {n} {name} in {split}" for name, n in left.items() if done[name] < n]
        if short:
            what = "; the market has too few instruments or classes that give such questions"
            raise InputError(f"market {self.history.source}", [f"could not make {', '.join(short)}{what}"])
        return found

    def of_day(
        self, rng: np.random.Generator, name: Template, day: Day, row: int, kind: AssetClass, before: int, count: int
    ) -> Iterator[tuple[Payload, Answer]]:
        """Up to so many different questions of one template and day."""
        seen: set[Payload] = set()
        for _ in range(_TRIES * count):
            if len(seen) == count:
                return
            try:
                payload, answer = self.draw(rng, name, day, row, kind, odd=(before + len(seen)) % 2 == 1)
            except (Unsuitable, NotMeasurableError, InputError):
                continue
            if payload not in seen:
                seen.add(payload)
                yield payload, answer

    def draw(
        self, rng: np.random.Generator, name: Template, day: Day, row: int, kind: AssetClass, *, odd: bool
    ) -> tuple[Payload, Answer]:
        """One payload with its answer. Every other T4 binds and every other T6 needs a trade."""
        if name == "T1":
            column = draws.one_instrument(rng, day)
            payload = draws.direction(day, column, horizon=self.horizon, lookback=self.lookback)
            at = self.columns[day.ids[column]]
            forward = float(self.closes[row + self.horizon, at] / self.closes[row, at] - 1.0)
            if not np.isfinite(forward):
                raise Unsuitable("it stopped trading, or has a gap, where its answer lies")
            return payload, Direction(way_of(forward))
        if name == "T7":
            regime = day.regime(kind)
            call = draws.regime_call(day, kind, lookback=self.lookback)
            return call, RegimeView(regime, {one.asset_class: CHANGES[regime][one.asset_class] for one in call.moves})
        make: Mapping[Template, Callable[[], Payload]] = {
            "T2": lambda: draws.tail_risk(rng, day, self.window),
            "T3": lambda: draws.position_size(rng, day, self.window),
            "T4": lambda: draws.pair(rng, day, self.window, binding=odd),
            "T5": lambda: draws.sharpe(rng, day, self.window),
            "T6": lambda: draws.rebalancing(rng, day, due=odd, lookback=self.lookback),
        }
        drawn = make[name]()
        answer = answer_of(drawn)  # to ten decimals: machines that differ in the last bit make the same set
        if isinstance(answer, Number):
            answer = Number(round(answer.value, 10))
        elif isinstance(answer, Weights):
            answer = Weights({name: round(value, 10) for name, value in answer.weights.items()})
        if payload_states(drawn, answer):
            raise Unsuitable("its prompt would state its answer")
        return drawn, answer
