"""A set of questions from a market.

The same market and seed give the same set on every machine: each template and day has a generator of its own, seeded
by the sha256 of their names, and numbers are rounded before anything is decided from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from assaymark.benchmark.questions import draws
from assaymark.benchmark.questions.days import Day, day_end, day_of
from assaymark.benchmark.questions.draws import Unsuitable
from assaymark.benchmark.questions.formulas import CHANGES, answer_of, way_of
from assaymark.benchmark.questions.leaks import payload_states, without_answer
from assaymark.benchmark.questions.payloads import (
    SPLITS,
    TEMPLATES,
    Answer,
    Direction,
    Number,
    Payload,
    Regime,
    RegimeView,
    Split,
    Template,
    Weights,
)
from assaymark.benchmark.questions.question import Question
from assaymark.benchmark.questions.schedule import COUNTS, LONGEST_LOOK, chosen_days, generator, shared_out
from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.market import AssetClass, History
from assaymark.portfolio.solution import Floats

_TRIES = 40
_MOST_NEWS = {False: 8, True: 20}  # items of news; T7 is about the whole market


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions and what they were made from.

    ``questions`` are ordered by split, day and template. ``source`` and ``snapshot`` name the market; ``window`` is how
    many daily returns T2 and T3 print, ``horizon`` how far T1 looks ahead, ``lookback`` over how many days T1, T6 and
    T7 look back, all in trading days.
    """

    questions: tuple[Question, ...]
    source: str
    snapshot: str
    seed: int
    window: int
    horizon: int
    lookback: int


def generate_questions(
    history: History,
    *,
    seed: int = 0,
    counts: Mapping[Template, int] = COUNTS,
    window: int = 252,
    horizon: int = 21,
    lookback: int = 60,
    instruments: Collection[str] | None = None,
    splits: Collection[Split] = SPLITS,
) -> QuestionSet:
    """Make a set of questions (PortBench, section 2.2 and Appendix D).

    What stands in a prompt is read from the view as of the close of its day. Only the answer of T1 looks ahead.

    Parameters
    ----------
    history : History
    seed : int
        Another seed is another set of days and instruments.
    counts : mapping of template to int
        Items of each template; shared out between the splits by `assaymark.benchmark.questions.schedule.SHARES`. Half
        of T6 needs a trade, and in half of T4 the required return binds, in every split.
    window : int
        Daily returns behind T2 to T5 (the paper's formula names 252; its sample prints 60).
    horizon : int
        Trading days that T1 looks ahead.
    lookback : int
        Trading days of the summaries in T1, T6 and T7.
    instruments : collection of str, optional
        Only these are asked about; all by default.
    splits : collection of {"train", "val", "test"}, optional
        Only the questions of these are made, and they are the same as in the whole set.

    Raises
    ------
    InputError
        Counts or lengths that cannot be; a market that is too short or has too few classes for what is asked, with what
        is needed.
    UnknownNameError
        The market has no such instrument, or there is no such split.

    Examples
    --------
    >>> from assaymark.market import synthetic_history
    >>> made = generate_questions(synthetic_history(0), counts={"T2": 5, "T6": 4})
    >>> sorted(one.template for one in made.questions)
    ['T2', 'T2', 'T2', 'T2', 'T2', 'T6', 'T6', 'T6', 'T6']
    """
    wanted = shared_out(counts)
    _refuse(history, window, horizon, lookback, instruments, splits)
    days = chosen_days(history, wanted, seed=seed, window=window, horizon=horizon)
    only = None if instruments is None else frozenset(instruments)
    maker = _Maker(history, seed, window, horizon, lookback)
    found: list[Question] = []
    for split, rows in days.items():
        left = {name: wanted[name, split] for name in TEMPLATES if (name, split) in wanted}
        if split not in splits:
            maker.made.update(left)  # ids count on as if these had been made
            continue
        longest = max(window, LONGEST_LOOK)
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
                for one in self.of_day(rng, name, day, row, kind, done[name], due - done[name]):
                    done[name] += 1
                    self.made[name] += 1
                    found.append(self.question(name, split, day, one, equities))
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
            return payload, Direction(way_of(self.forward(row, day.ids[column])))
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
        answer = _rounded(answer_of(drawn))
        if payload_states(drawn, answer):
            raise Unsuitable("its prompt would state its answer")
        return drawn, answer

    def forward(self, row: int, name: str) -> float:
        """The return from the close of a row to the close ``horizon`` rows later."""
        column = self.columns[name]
        found = float(self.closes[row + self.horizon, column] / self.closes[row, column] - 1.0)
        if not np.isfinite(found):
            raise Unsuitable("it stopped trading, or has a gap, where its answer lies")
        return found

    def question(
        self, name: Template, split: Split, day: Day, one: tuple[Payload, Answer], equities: Regime
    ) -> Question:
        """The item, with its context and its id."""
        payload, answer = one
        ids = getattr(payload, "instruments", None) or [getattr(payload, "instrument", "")]
        whole = name == "T7"
        context = day.context([] if whole else ids, regime="" if whole else equities, most=_MOST_NEWS[whole])
        regime = answer.regime if isinstance(answer, RegimeView) and answer.regime else equities
        mark = f"{name}-{day.day:%Y%m%d}-{self.made[name]:04d}"
        return Question(mark, name, split, regime, day.day, payload, without_answer(context, answer), answer)


def _refuse(
    history: History,
    window: int,
    horizon: int,
    lookback: int,
    instruments: Collection[str] | None,
    splits: Collection[Split],
) -> None:
    """Arguments with which no set can be made."""
    least = {"window": (window, 20), "horizon": (horizon, 1), "lookback": (lookback, 2)}
    problems = [
        Problem(name, f"must be {low} or more (got {value})") for name, (value, low) in least.items() if value < low
    ]
    if lookback > max(window, LONGEST_LOOK):
        problems.append(Problem("lookback", f"must be at most {max(window, LONGEST_LOOK)} (got {lookback})"))
    if problems:
        raise InputError("questions", problems)
    known = [one.id for one in history.listings]
    for name in sorted(set(instruments or ()) - set(known)):
        raise UnknownNameError("instrument", name, known)
    for split in sorted(set(splits) - set(SPLITS)):
        raise UnknownNameError("split", split, SPLITS)


def _rounded(answer: Answer) -> Answer:
    """An answer to ten decimals, so that machines which differ in the last bit make the same set."""
    match answer:
        case Number():
            return Number(round(answer.value, 10))
        case Weights():
            return Weights({name: round(value, 10) for name, value in answer.weights.items()})
        case _:
            return answer
