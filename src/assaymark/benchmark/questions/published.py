"""Question sets as JSON lines: generating, writing and reading them, and reading the PortBench authors' own set."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError

from assaymark.benchmark.questions import payloads as kinds
from assaymark.benchmark.questions import templates as draws
from assaymark.benchmark.questions.answers import read_answer
from assaymark.benchmark.questions.payloads import SPLITS, TEMPLATES, Answer, Context, Payload, Split, Template
from assaymark.benchmark.questions.render import PROMPT_VERSION, template_digest
from assaymark.benchmark.questions.templates import Question
from assaymark.errors import InputError, NotMeasurableError, Problem, check_known
from assaymark.market import CLASSES, AssetClass, History, class_index, fill_gaps, regimes
from assaymark.prompting import Rejected, brief, strict_json
from assaymark.records import JSON, canonical_json, problems_of, to_json, write_atomic

LARGEST_FILE: Final = 1 << 30
"""Maximum size of a file of questions in bytes."""

_KINDS: Mapping[Template, tuple[type[Payload], Answer, str]] = {
    "T1": (kinds.ReturnDirection, kinds.Direction("flat"), "return direction of one instrument"),
    "T2": (kinds.TailRisk, kinds.Number(0.0), "value at risk of one instrument"),
    "T3": (kinds.PositionSize, kinds.Number(0.0), "position size of one instrument"),
    "T4": (kinds.PairAllocation, kinds.Weights({}), "least variance of two instruments, with a required return"),
    "T5": (kinds.SharpeAllocation, kinds.Weights({}), "largest Sharpe ratio of three to six instruments"),
    "T6": (kinds.Rebalancing, kinds.Trade(False), "whether to rebalance, and by which trade"),
    "T7": (kinds.RegimeCall, kinds.RegimeView(None), "regime, and what to do with each class"),
}
"""By template: the payload type, a placeholder answer, and a description."""

_MOST_PROBLEMS = 20


def answer_text(answer: Answer) -> str:
    """Format an answer in the requested form, which `read_answer` parses."""
    match answer:
        case kinds.Direction():
            return answer.way
        case kinds.Number():
            return f"{answer.value:.10f}".rstrip("0")
        case kinds.Weights():
            return ", ".join(f"{name}={value:.10f}" for name, value in answer.weights.items())
        case kinds.Trade(rebalance=True, side=str() as side, instrument=str() as instrument, size=size):
            return f"yes; {side} {size or 0.0:.4f} of {instrument}"
        case kinds.Trade():
            return "yes" if answer.rebalance else "no"
        case kinds.RegimeView():
            changes = ", ".join(f"{name}={change}" for name, change in answer.changes.items())
            return f"regime={answer.regime}; {changes}"


def question_line(question: Question) -> str:
    """Return one question as one line of JSON: its payload, its answer and its prompts."""
    fields = {name: getattr(question, name) for name in ("id", "template", "level", "split", "regime")}
    fields |= {
        "day": question.day.isoformat(), "instruments": list(question.instruments), "prompt": question.prompt("full"),
        "answer": answer_text(question.answer), "truth": to_json(question.answer),
        "payload": to_json(question.payload), "context": to_json(question.context),
    }  # fmt: skip
    if question.template in kinds.ABLATED:
        fields["restricted"] = question.prompt("restricted")
    return canonical_json(fields)


def questions_digest(questions: Iterable[Question]) -> str:
    """Compute the sha256 over the lines of a set; it is the same on every machine."""
    whole = hashlib.sha256()
    for question in questions:
        whole.update(question_line(question).encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()


def write_questions(path: Path, questions: Iterable[Question]) -> str:
    """Write a set as JSON lines, atomically. Returns the sha256 of the file."""
    text = "".join([question_line(question) + "\n" for question in questions]).encode("utf-8", "surrogatepass")
    write_atomic(path, text)
    return hashlib.sha256(text).hexdigest()


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read questions from a file of JSON lines, ours or the authors'. Raises `InputError` with all problems."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(path.name, [f"is larger than {LARGEST_FILE} bytes"])
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as exc:
        raise InputError(path.name, [f"cannot be read: {exc.strerror or exc}"]) from None
    except UnicodeDecodeError as exc:
        raise InputError(path.name, [f"is not UTF-8 text: byte {exc.start}"]) from None
    questions: list[Question] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                fields = strict_json(line)
                if not isinstance(fields, dict):
                    raise InputError("", ["must be an object"])
                questions.append(_question(fields))
            except Rejected as exc:
                problems.append(Problem(f"line {number}", str(exc)))
            except InputError as exc:
                problems += [
                    Problem(f"line {number}, {problem.where}".rstrip(", "), problem.what) for problem in exc.problems
                ]
    counted = Counter(question.id for question in questions)
    twice = [mark for mark, count in counted.items() if count > 1]
    problems += [Problem("id", f"comes more than once: {', '.join(twice[:5])}")] if twice else []
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = [Problem("", f"and {more} more")] if more > 0 else []
        raise InputError(path.name, [*problems[:_MOST_PROBLEMS], *rest])
    if not questions:
        raise InputError(path.name, ["holds no questions; JSON lines are expected, one question a line"])
    return tuple(questions)


def _question(fields: Mapping[str, JSON]) -> Question:
    """Parse a question of ours, which has a payload, or one of the authors' set."""
    ours, problems = "payload" in fields, list[Problem]()
    at = "template_id" if "template_id" in fields and not ours else "template"
    keys = (at, "split", "regime", "day") if ours else (at, "split", "market_regime", "decision_date")
    for name, choices in zip(keys, (TEMPLATES, SPLITS, kinds.REGIME_NAMES), strict=False):
        if fields.get(name) not in choices:
            message = f"must be one of {', '.join(choices)} (got {brief(fields.get(name))})"
            problems.append(Problem(name, message))
    try:
        day = date.fromisoformat(str(fields.get(keys[3])))
    except ValueError:
        message = f"must be a day such as 2025-03-03 (got {brief(fields.get(keys[3]))})"
        problems.append(Problem(keys[3], message))
    if problems:
        raise InputError("", problems)
    template, split, regime = (cast(Any, fields[name]) for name in keys[:3])
    kind, blank, _ = _KINDS[template]
    if ours:
        shape: Any = kind if "text" not in (fields.get("payload") or {}) else kinds.Printed
        question = Question(
            _text_field(fields, "id"), template, split, regime, day, _record_field(shape, fields, "payload"),
            _record_field(Context, fields, "context"), _record_field(type(blank), fields, "truth"),
        )  # fmt: skip
        if fields.get("prompt") != question.prompt("full"):
            message = "is not the one that its payload gives in this version of assaymark"
            raise InputError("", [Problem("prompt", message)])
        return question
    assets = fields.get("assets")
    if not (isinstance(assets, list) and all(isinstance(asset, str) for asset in assets)):
        raise InputError("", [Problem("assets", f"must be a list of names (got {brief(assets)})")])
    mark, text = _text_field(fields, "qa_id" if "qa_id" in fields else "id"), _text_field(fields, "question")
    empty = Question(mark, template, split, regime, day, kinds.Printed(tuple(assets), text), Context(), blank)
    answer, number = fields.get("answer"), fields.get("answer_numeric")
    if template in ("T2", "T3") and isinstance(number, int | float):
        return replace(empty, answer=kinds.Number(float(number)))
    read = read_answer(empty, f"ANSWER: {answer}" if isinstance(answer, str | int | float) else "")
    if read.answer is None:
        raise InputError("", [Problem("answer", f"{read.reason} (got {brief(answer)})")])
    return replace(empty, answer=read.answer)


def _text_field(fields: Mapping[str, JSON], name: str) -> str:
    value = fields.get(name)
    if not (isinstance(value, str) and value):
        raise InputError("", [Problem(name, f"must be a text (got {brief(value)})")])
    return value


_adapter = cache(TypeAdapter[Any])


def _record_field(kind: Any, fields: Mapping[str, JSON], name: str) -> Any:
    try:
        return _adapter(kind).validate_python(fields.get(name))
    except ValidationError as exc:
        problems = [Problem(f"{name}.{problem.where}".rstrip("."), problem.what) for problem in problems_of(exc)]
        raise InputError("", problems) from None


_STATED = re.compile(r"\d+(?:\.\d+)?(?: ?%)?")
_PLACES = 10_000
_FOUR, _SIX = 5e-5, 5e-7  # two numbers are equal if they agree to four decimals; single returns to six


@lru_cache(maxsize=4096)  # many questions share the same context lines
def _numbers(line: str) -> frozenset[int]:
    """Return the numbers of a line that could be part of an answer, as shares, in units of the fourth decimal."""
    numbers = [float(quote.rstrip(" %")) / (100.0 if quote.endswith("%") else 1.0) for quote in _STATED.findall(line)]
    return frozenset([round(number * _PLACES) for number in numbers if number < 2.0])


def _answer_numbers(answer: Answer) -> np.ndarray:
    """Return the numbers of an answer, except 0 and 1, which reveal nothing because every prompt has them."""
    match answer:
        case kinds.Number():
            numbers = [answer.value]
        case kinds.Weights():
            numbers = list(answer.weights.values())
        case kinds.Trade(size=size) if size is not None:
            numbers = [size]
        case _:
            numbers = []
    return np.array([abs(number) for number in numbers if min(abs(number), abs(1.0 - abs(number))) > _FOUR])


def manifest(dataset: QuestionSet) -> dict[str, JSON]:
    """Return the manifest of a set: digest, numbers of items, market, and the parameters of its generation."""
    counted = Counter((question.template, question.split) for question in dataset.questions)
    return {
        "sha256": questions_digest(dataset.questions),
        "items": len(dataset.questions),
        "counts": {name: {split: counted[name, split] for split in SPLITS} for name in TEMPLATES},
        "market": {"source": dataset.source, "snapshot": dataset.snapshot},
        "seed": dataset.seed,
        "window": dataset.window,
        "horizon": dataset.horizon,
        "lookback": dataset.lookback,
        "prompts": {"version": PROMPT_VERSION, "sha256": template_digest()},
    }


def dataset_card(dataset: QuestionSet) -> str:
    """Return the dataset card of a set, in Markdown."""
    asked, facts = dataset.questions, manifest(dataset)
    by_template = {name: [question for question in asked if question.template == name] for name in TEMPLATES}
    rows, regimes, texts = [], [], []
    for name, some in by_template.items():
        splits, labels = Counter(question.split for question in some), Counter(question.regime for question in some)
        rows.append([name, _KINDS[name][2], kinds.LEVELS[name], *(splits[split] for split in SPLITS), len(some)])
        regimes.append([name, *(labels[regime] for regime in kinds.REGIME_NAMES)])
        if some:
            with_text = float(np.mean([bool(question.context.news or question.context.filings) for question in some]))
            characters = float(np.mean([len(question.prompt("full")) for question in some]))
            texts.append([name, f"{100 * with_text:.0f} %", f"{characters:,.0f}"])
    rows.append(["all", "", "", *(sum(question.split == split for question in asked) for split in SPLITS), len(asked)])
    ways = Counter(question.answer.way for question in asked if isinstance(question.answer, kinds.Direction))
    lines = [f"- T1: {', '.join(f'{name} {count}' for name, count in sorted(ways.items()))}."] if ways else []
    tallies = {
        "T3 at the cap of 1": [
            question.answer.value == 1.0
            for question in asked
            if isinstance(question.payload, kinds.PositionSize) and isinstance(question.answer, kinds.Number)
        ],
        "T4 with a required return that binds": [
            draws.binds(question.payload) for question in asked if isinstance(question.payload, kinds.PairAllocation)
        ],
        "T6 that need a trade": [one.answer.rebalance for one in asked if isinstance(one.answer, kinds.Trade)],
    }
    lines += [f"- {label}: {sum(flags)} of {len(flags)}." for label, flags in tallies.items() if flags]
    sizes = ["template", "with news or filings", "mean characters of the full prompt"]
    parts = [
        f"# PortBench questions: {len(asked):,} items",
        f"Made by assaymark from the market `{dataset.source} {dataset.snapshot}`, seed {dataset.seed}.",
        f"Prompts `{PROMPT_VERSION}`. sha256 of the JSON lines: `{facts['sha256']}`.",
        "## Templates and splits\n\n" + _table(["template", "asks for", "level", *SPLITS, "items"], rows),
        "## Regimes\n\n" + _table(["template", *kinds.REGIME_NAMES], regimes),
        "## Text\n\n" + _table(sizes, texts),
        "## Balance of the answers\n\n" + "\n".join(lines),
        _ABOUT.format(window=dataset.window, horizon=dataset.horizon, lookback=dataset.lookback),
    ]
    return "\n\n".join(parts) + "\n"


_ABOUT = """\
## How it was made

Seven templates of PortBench, Appendix D. Splits by year end: train up to 2022, val 2023 and 2024, test from 2025. A
prompt holds only what was known at the close of its decision day; T2 to T5 rest on the last {window} daily returns, T1
looks {horizon} trading days ahead, summaries cover {lookback} trading days. Prompts state no dates. The answers of T2
to T6 follow from the numbers as printed under the full condition; the restricted condition takes the covariance and
the correlation out of T4 and the covariance matrix out of T5. No number of an answer is stated in its own prompt.

## Limits

- Instruments whose price is missing where the answer of T1 lies are not asked about: T1 knows no delisting.
- The regime in T7 is that of equities, save where equities hardly have a regime in a split: another class stands in.
- The class changes of T7 are a fixed table of the paper, not a measured optimum.
- Items of one day share their market. Intervals that treat items as independent are somewhat too narrow.
- T1 asks for what cannot be known: a score far above the share of its most frequent answer is a finding to doubt."""


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


COUNTS: Mapping[Template, int] = MappingProxyType(
    {"T1": 1000, "T2": 1000, "T3": 1000, "T4": 1000, "T5": 1000, "T6": 778, "T7": 491}
)
"""The default number of questions of each template, 6,269 in total (figure 15)."""

SHARES: Mapping[Split, int] = MappingProxyType({"train": 1941, "val": 2700, "test": 1628})
"""Weights of the splits, which are the sizes of the authors' published set."""

LEAST_REGIME: Final = 0.10
"""Minimum share of each regime among the days of a split, if the split has enough days of it."""

LONGEST_LOOK: Final = 252
"""Lookback of a regime in days, and so the minimum history of a question."""

_DAYS = 120  # days of a split with fewer T7; each T7 needs a separate day


def keyed_generator(*names: object) -> np.random.Generator:
    """Return a random generator keyed by these names, the same on every machine."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "big"))))


def split_of(year: int) -> Split:
    """Return the split of a year (PortBench, B.3)."""
    return "train" if year <= 2022 else "val" if year <= 2024 else "test"


def split_counts(counts: Mapping[Template, int]) -> dict[tuple[Template, Split], int]:
    """Distribute the items of each template over the splits in proportion to `SHARES`, in even numbers for T6."""
    message = f"is not a template; templates are {', '.join(TEMPLATES)}"
    problems = [Problem(name, message) for name in counts if name not in TEMPLATES]
    problems += [Problem(name, f"must be 0 or more (got {n})") for name, n in counts.items() if n < 0]
    if counts.get("T6", 0) % 2:
        problems.append(Problem("T6", f"must be even, because half of it needs a trade (got {counts['T6']})"))
    if problems:
        raise InputError("counts", problems)
    numbers = {}
    total = sum(SHARES.values())
    for name, count in counts.items():
        step = 2 if name == "T6" else 1
        exact = {split: count * share / total / step for split, share in SHARES.items()}
        whole = {split: int(value) for split, value in exact.items()}
        short = count // step - sum(whole.values())
        for split in sorted(SPLITS, key=lambda split: whole[split] - exact[split])[:short]:
            whole[split] += 1
        numbers.update({(name, split): step * value for split, value in whole.items() if value})
    return numbers


def choose_days(
    history: History, wanted: Mapping[tuple[Template, Split], int], seed: int, window: int, horizon: int
) -> dict[Split, list[tuple[int, AssetClass]]]:
    """Choose the rows of each split's days and the class of T7; each regime has a minimum share of the days."""
    problems, chosen = [], {}
    back = max(window, LONGEST_LOOK)
    rows = np.arange(back, history.days.size - horizon)
    years = history.days[rows].astype("datetime64[Y]").astype(int) + 1970
    if not any(listing.asset_class == "EQ" for listing in history.listings):
        raise InputError("market", ["questions need the class equity, whose regime they state"])
    index = class_index(fill_gaps(history.bars["close"]), history.listings)
    labels = {kind: regimes(path) for kind, path in index.items()}
    for split in SPLITS:
        most = max((count for (_, part), count in wanted.items() if part == split), default=0)
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
        order = keyed_generator("portbench", seed, "days", split).permutation(there)
        least = max(1, round(count * LEAST_REGIME))
        days: dict[int, AssetClass] = {}
        for name in kinds.REGIME_NAMES:
            # CLASSES begins with equities: other classes are used only for regimes that equities lack.
            of = ((int(row), kind) for kind in CLASSES if kind in labels for row in order if labels[kind][row] == name)
            new = dict(islice(((row, kind) for row, kind in of if row not in days), least))
            days.update(islice(new.items(), max(count - len(days), 0)))
        for row in order:
            if len(days) < count:
                days.setdefault(int(row), "EQ")
        chosen[split] = sorted(days.items())
    if problems:
        raise InputError(f"market {history.source} {history.snapshot}".strip(), problems)
    return chosen


_TRIES = 40


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set of questions with the market and the parameters it was generated from."""

    questions: tuple[Question, ...]
    source: str
    snapshot: str
    seed: int
    window: int
    horizon: int
    lookback: int


def generate_questions(
    history: History, seed: int = 0, *, counts: Mapping[Template, int] = COUNTS, window: int = 252, horizon: int = 21,
    lookback: int = 60, instruments: Collection[str] | None = None, splits: Collection[Split] = SPLITS,
) -> QuestionSet:  # fmt: skip
    """Generate a set of questions (PortBench, section 2.2 and Appendix D). Raises `InputError`."""
    wanted = split_counts(counts)
    least = {"window": (window, 20), "horizon": (horizon, 1), "lookback": (lookback, 2)}
    problems = [
        Problem(name, f"must be {low} or more (got {value})") for name, (value, low) in least.items() if value < low
    ]
    longest = max(window, LONGEST_LOOK)
    if lookback > longest:
        problems.append(Problem("lookback", f"must be at most {longest} (got {lookback})"))
    if problems:
        raise InputError("questions", problems)
    check_known("instrument", {listing.id for listing in history.listings}, *(instruments or ()))
    check_known("split", SPLITS, *splits)
    days = choose_days(history, wanted, seed, window, horizon)
    only = None if instruments is None else frozenset(instruments)
    maker = _QuestionMaker(history, seed, window, horizon, lookback)
    questions: list[Question] = []
    for split, rows in days.items():
        quota = {name: wanted[name, split] for name in TEMPLATES if (name, split) in wanted}
        if split not in splits:
            maker.made.update(quota)  # ids continue as if these had been made
            continue
        views = ((row, kind, draws.view_of(history, row, window=longest, instruments=only)) for row, kind in rows)
        questions += maker.split(split, quota, views, len(rows))
    return QuestionSet(tuple(questions), history.source, history.snapshot, seed, window, horizon, lookback)


class _QuestionMaker:
    """Generator of the questions of one set, day by day, so that one day is in memory at a time."""

    def __init__(self, history: History, seed: int, window: int, horizon: int, lookback: int) -> None:
        self.source, self.seed, self.made = history.source, seed, Counter[Template]()
        self.window, self.horizon, self.lookback = window, horizon, lookback
        whole = history.at_close(history.days[-1]).prices(history.days.size)
        # Columns of the whole market, including instruments that are listed after the day of a question.
        self.columns = {name: at for at, name in enumerate(whole.ids)}
        self.closes = np.full((history.days.size, len(whole.ids)), np.nan)
        self.closes[np.searchsorted(history.days, whole.days)] = whole.values

    def split(
        self, split: Split, quota: Mapping[Template, int], days: Iterator[tuple[int, AssetClass, draws.DayView]], n: int
    ) -> list[Question]:
        """Make the questions of one split: each day has its share of each template plus earlier days' shortfall."""
        questions: list[Question] = []
        done: Counter[Template] = Counter()
        for place, (row, kind, day) in enumerate(days, 1):
            equities = day.regime("EQ")
            for name, whole in quota.items():
                due = whole * place // n
                rng = keyed_generator("portbench", self.seed, name, day.day)
                for payload, answer in self.of_day(rng, name, day, row, kind, done[name], due - done[name]):
                    done[name] += 1
                    self.made[name] += 1
                    mark = f"{name}-{day.day:%Y%m%d}-{self.made[name]:04d}"
                    if name == "T7":
                        context = day.context([], regime="", most=20)
                    else:
                        ids = getattr(payload, "instruments", None) or [getattr(payload, "instrument", "")]
                        context = day.context(ids, regime=equities, most=8)
                    regime = answer.regime if isinstance(answer, kinds.RegimeView) and answer.regime else equities
                    # Drop context lines that happen to contain a number of the answer, as a share or in percent, or an
                    # adjacent value, because nearly equal numbers may be rounded differently.
                    places = (_answer_numbers(answer) * _PLACES).round().astype(int).tolist()
                    giveaways = frozenset(place + step for place in places for step in (-1, 0, 1))
                    about = context.macro, context.news, context.filings
                    cleaned = (tuple([line for line in part if giveaways.isdisjoint(_numbers(line))]) for part in about)
                    bare = Context(context.regime, *cleaned) if giveaways else context
                    questions.append(Question(mark, name, split, regime, day.day, payload, bare, answer))
        short = [f"{n - done[name]} of {n} {name} in {split}" for name, n in quota.items() if done[name] < n]
        if short:
            hint = "; the market has too few instruments or classes that give such questions"
            raise InputError(f"market {self.source}", [f"could not make {', '.join(short)}{hint}"])
        return questions

    def of_day(
        self, rng: np.random.Generator, name: Template, day: draws.DayView, row: int, kind: AssetClass, before: int,
        count: int,
    ) -> Iterator[tuple[Payload, Answer]]:  # fmt: skip
        """Yield up to ``count`` different questions of one template and day."""
        unique: set[Payload] = set()
        for _ in range(_TRIES * count):
            if len(unique) == count:
                return
            try:
                payload, answer = self.draw(rng, name, day, row, kind, (before + len(unique)) % 2 == 1)
            except (draws.Unsuitable, NotMeasurableError, InputError):
                continue
            if payload not in unique:
                unique.add(payload)
                yield payload, answer

    def draw(
        self, rng: np.random.Generator, name: Template, day: draws.DayView, row: int, kind: AssetClass, odd: bool
    ) -> tuple[Payload, Answer]:
        """Draw one payload with its answer. Raises `Unsuitable` if the draw gives no question."""
        if name == "T1":
            column, back = draws.draw_column(rng, draws.draw_class(rng, day)), self.lookback
            closes, at = day.closes[-back - 1 :, column], self.columns[day.ids[column]]
            start, end = round(float(closes[0]), 2), round(float(closes[-1]), 2)
            moved, spread = float(closes[-1] / closes[0]) - 1.0, draws.volatility(day.returns[-back:, column])
            numbers = self.horizon, back, start, end, round(moved, 4), round(spread, 4)
            forward = float(self.closes[row + self.horizon, at] / self.closes[row, at] - 1.0)
            if not np.isfinite(forward):
                raise draws.Unsuitable("it stopped trading, or has a gap, where its answer lies")
            way: kinds.Way = "positive" if forward > draws.FLAT else "negative" if forward < -draws.FLAT else "flat"
            return kinds.ReturnDirection(day.ids[column], *numbers), kinds.Direction(way)
        if name == "T7":
            regime, call = day.regime(kind), draws.regime_call(day, kind, self.lookback)
            todo = {move.asset_class: draws.CHANGES[regime][move.asset_class] for move in call.moves}
            return call, kinds.RegimeView(regime, todo)
        payload = draws.draw(rng, name, day, self.window, self.lookback, odd)
        answer = draws.answer_of(payload)  # rounded to ten decimals, so that all machines make the same set
        if isinstance(answer, kinds.Number):
            answer = kinds.Number(round(answer.value, 10))
        elif isinstance(answer, kinds.Weights):
            answer = kinds.Weights({name: round(value, 10) for name, value in answer.weights.items()})
        tolerance: float = _FOUR
        stated: tuple[float, ...] = ()  # the numbers of the prompt, none of which may equal one of the answer
        match payload:
            case kinds.TailRisk(returns=returns):
                tolerance, stated = _SIX, returns
            case kinds.PositionSize(drawdown=drawdown, returns=returns):
                stated = (drawdown, *returns)
            case kinds.PairAllocation() as one:
                stated = (*one.volatilities, *one.means, one.covariance, one.correlation, one.floor)
            case kinds.SharpeAllocation() as one:
                stated = (*one.means, *(value for row in one.covariance for value in row), one.rf)
            case kinds.Rebalancing() as one:
                stated = (*one.current, *one.target, one.threshold)
        if stated and (np.abs(np.abs(np.array(stated))[:, None] - _answer_numbers(answer)) < tolerance).any():
            raise draws.Unsuitable("its prompt would state its answer")
        return payload, answer
