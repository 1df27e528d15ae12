"""The datasheet of a judge as a record: the run, the measurements, the claims it does not make, and its comparison."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology import checks
from assaymark.metrology.contrasts import cluster_t, holm
from assaymark.metrology.datasheet import estimates
from assaymark.metrology.datasheet.calls import (
    BASE,
    CLASSES,
    OF_PAIR,
    STRICT,
    CallTable,
    call_table,
    key_of,
    pair_class,
)
from assaymark.metrology.datasheet.ladder import criterion_measurements, ladder_measurements
from assaymark.metrology.estimates import number
from assaymark.notebook import Displayable, Heading, Part, display_parts
from assaymark.protocol import DatasheetLimits, JudgeSpec
from assaymark.quantiles import wilson_ends
from assaymark.records import (
    AGGREGATE,
    JSON,
    Measurement,
    PairCall,
    PairCondition,
    Rows,
    SlotVerdict,
    measurement_id,
    record,
)
from assaymark.text import clean, count


def datasheet_measurements(
    calls: Sequence[PairCall], level: float = 0.95, *, rng: np.random.Generator
) -> tuple[Measurement, ...]:
    """Make all measurements of one judge's datasheet (Judge Datasheet, Algorithm 1)."""
    return table_measurements(call_table(calls), rng, level, estimates.reasons_of(calls))


def table_measurements(
    table: CallTable,
    rng: np.random.Generator,
    level: float = 0.95,
    reasons: Mapping[str, Mapping[str, int]] | None = None,
) -> tuple[Measurement, ...]:
    """Make `datasheet_measurements` of checked columns, for logs too long for records in memory."""
    checks.probability("datasheet_measurements", "level", level)
    estimator = estimates.Estimator({"judge": table.judge}, estimates.TaskBootstrap(rng, level), table.digest)
    results: list[Measurement] = []
    for prompt in table.arms:
        for measurements in (estimates.vacuum_measurements, estimates.delta0_measurements,
                             estimates.truth_measurements, ladder_measurements):  # fmt: skip
            results += measurements(table, estimator, prompt)
        results += estimates.reply_measurements(table, estimator, prompt, (reasons or {}).get(prompt, {}))
    results += criterion_measurements(table, estimator)
    return (*results, estimates.stability_measurement(table, estimator))


CLEAN: Final = 0.02
NEARLY_CLEAN: Final = 0.10
QUIET: Final = 0.10
QUIET_RAW: Final = 1 / 3
LED: Final = 2.0
NO_EFFECT: Final = 0.05
LOST: Final = 0.10
LOST_ACCURACY: Final = 0.05

RULES: Final[Mapping[str, str]] = {
    "vacuum": ("clean: at most 2 % of vacuum calls named a slot; nearly clean: at most 10 %; leaky: more"),
    "equal texts": (
        "quiet: stable and positional pairs at most 10 % each, and at most a third of calls named a slot; otherwise "
        "position-led: at least twice as many positional as stable pairs; wording-led: at least twice as many stable "
        "as positional; mixed: neither"
    ),
    "target": (
        "the 75 % threshold: sensitive below one requirement, at one requirement, needs as many requirements as it "
        "takes to reach it, or insensitive where no step reaches it"
    ),
    "strict prompt": (
        "costs resolution: at a common step the accuracy of decided calls falls by more than 5 points, or at the "
        "largest common step sensitivity falls by more than 10; no effect: no tie rate moves by 5 points or more; "
        "moves the criterion: otherwise"
    ),
}
"""The rule behind each chip, in words."""
_PLAIN: Final = (
    ("vacuum calls", "calls on null pairs"), ("vacuum", "null pairs"), ("nearly clean", "hardly a preference"),
    ("clean", "no preference"), ("leaky", "spurious preference"), ("quiet", "no preference"), ("a slot", "a position"),
    ("target: insensitive", "difference noticed: at no step"), ("target: sensitive", "difference noticed:"),
    ("target: needs", "difference noticed: only at"), ("target", "difference noticed"),
    ("threshold: sensitive below", "threshold: below"), (", needs as many", ", only at as many"),
    ("or insensitive where no step reaches it", "or at no step"),
)  # fmt: skip

NON_CLAIMS: Final = (
    "That this judge is right about real rationales: the texts here are built, and only their construction is known.",
    "That another prompt, rubric, decoding setting or version of the model would measure the same.",
    "That one judge is better than another: a datasheet describes, it does not rank.",
    "That a reaction to wording is always an error: it counts as noise only because a checklist is the target here.",
    "That a censored threshold is a number: a bound cannot be compared with another judge's bound.",
    "That a stricter prompt makes a judge more sensitive: it moves the point at which a difference is called a tie.",
    "That a comparator is the truth: it is another judge, read as an upper estimate.",
    "That a judge with a clean datasheet supports any claim made with it downstream.",
)
"""The claims that a datasheet does not make, printed on every datasheet."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A one-word summary of one axis, with its rule and the measurements behind it."""

    axis: str
    outcome: str
    rule: str
    basis: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.axis}: {self.outcome}"

    @property
    def text(self) -> str:
        """The chip with its rule, in words."""
        return f"{self} ({self.rule})"


def chip_words(text: str) -> tuple[str, str]:
    """The chip of a stored sketch in words of the field, and its rule."""
    for stored, plain in _PLAIN:
        text = text.replace(stored, plain)
    words, _, rule = text.partition(" (")
    return clean(words, 80), clean(rule.removesuffix(")"), 400)


def sketch(measurements: Sequence[Measurement]) -> tuple[Chip, ...]:
    """Summarise one judge by the `RULES`: null pairs, equal texts, detection target, strict prompt."""
    value = {m.id: m.value for m in measurements if m.value is not None}
    items = [m for m in measurements if m.id in value]
    prompts = sorted({m.labels["prompt"] for m in measurements if "prompt" in m.labels})
    base = BASE if BASE in prompts or not prompts else prompts[0]

    def find(name: str, **labels: str) -> Measurement | None:
        """Find the measurement with this name and exactly these labels besides the judge, if it has a value."""
        return next((m for m in items if m.name == name and {**m.labels, "judge": ""} == {**labels, "judge": ""}), None)

    def steps(name: str, prompt: str) -> dict[float, Measurement]:
        """Return the measurements of this name along an arm's ladder."""
        return {float(m.labels["delta"]): m for m in items if m.name == name and m.labels.get("prompt") == prompt}

    def chip(axis: str, outcome: str, *basis: Measurement) -> Chip:
        return Chip(axis, outcome, RULES[axis], tuple(m.id for m in basis))

    vacuum, equal, target, strict = (chip(axis, "not measured") for axis in RULES)
    if (dark := find("dark_current", prompt=base)) is not None:
        share = value[dark.id]
        word = "clean" if share <= CLEAN else "nearly clean" if share <= NEARLY_CLEAN else "leaky"
        vacuum = chip("vacuum", word, dark)
    parts = [find(f"delta0.{name}", prompt=base, condition="same_subset") for name in ("raw", "stable", "positional")]
    defined = [part for part in parts if part is not None]
    if len(defined) == len(parts):
        raw, stable, positional = (value[part.id] for part in defined)
        word = "mixed"
        if stable <= QUIET and positional <= QUIET and raw <= QUIET_RAW:
            word = "quiet"
        elif max(stable, positional) > QUIET and positional >= LED * stable:
            word = "position-led"
        elif max(stable, positional) > QUIET and stable >= LED * positional:
            word = "wording-led"
        equal = chip("equal texts", word, *defined)
    if (threshold := find("threshold", prompt=base)) is not None:
        needed = value[threshold.id]
        word = f"needs {math.ceil(needed)} requirements"
        if threshold.detail["censored"] == "right":
            word = "insensitive"
        elif needed <= 1:
            word = f"sensitive {'below' if needed < 1 else 'at'} one requirement"
        target = chip("target", word, threshold)
    if shifts := [m for m in items if m.name == "criterion.shift"]:
        # Steps at which the strict arm is less accurate, rather than only having a higher threshold.
        lost: list[Measurement] = []
        for name, most in (("conditional_accuracy", LOST_ACCURACY), ("sensitivity", LOST)):
            first, second = (steps(name, prompt) for prompt in (base, STRICT))
            common = sorted(first.keys() & second.keys())
            for step in common if name == "conditional_accuracy" else common[-1:]:
                if not lost and value[first[step].id] - value[second[step].id] > most + 1e-9:
                    lost = [first[step], second[step]]
        small = all(abs(value[shift.id]) < NO_EFFECT for shift in shifts)
        word = "costs resolution" if lost else "no effect" if small else "moves the criterion"
        strict = chip("strict prompt", word, *(lost or shifts))
    return vacuum, equal, target, strict


@record
class AnchorPair:
    """The known properties of a pair in the anchor set, without the answers."""

    condition: PairCondition
    task: str
    delta: float = 0.0
    better: Literal["u", "v"] | None = None
    variant: str = ""


@record
class Datasheet(Displayable):
    """The datasheet of one judge: its measurements, summary, prompts and stimuli."""

    judge: str
    measurements: tuple[Measurement, ...]
    sketch: tuple[str, ...]
    calls: Mapping[str, int]
    tasks: int
    source: Literal["run", "log"]
    model: str = ""
    family: str = ""
    fingerprint: str | None = None
    arms: tuple[str, ...] = ()
    manifest: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    non_claims: tuple[str, ...] = NON_CLAIMS
    planted: Mapping[str, float] | None = None
    anchors: Mapping[str, SlotVerdict] = field(default_factory=dict)
    pairs: Mapping[str, AnchorPair] = field(default_factory=dict)
    log: Mapping[str, JSON] = field(default_factory=dict)

    @classmethod
    def of(
        cls, judge: str, measurements: Sequence[Measurement], calls: int, invalid: int, tasks: int, **about: Any
    ) -> Datasheet:
        """Build the datasheet of measurements over ``calls`` calls, with its sketch; ``about`` has the other fields."""
        prompts = dict.fromkeys(m.labels["prompt"] for m in measurements if "prompt" in m.labels)
        chips = sketch(measurements) if measurements else ()
        return cls(
            judge=judge, measurements=tuple(measurements), sketch=tuple(chip.text for chip in chips), tasks=tasks,
            calls={"all": calls, "ok": calls - invalid, "invalid": invalid}, arms=tuple(prompts), **about,
        )  # fmt: skip

    def unlike(self, new: Datasheet) -> str | None:
        """Return the reason why a newer datasheet is not comparable with this one; None if it is."""
        if self.manifest != new.manifest:
            return "the texts differ (another manifest)"
        arms, common = set(self.arms) & set(new.arms), self.pairs.keys() & new.pairs.keys()
        if not arms:
            return "no prompt was used in both"
        if changed := sorted(arm for arm in arms if self.prompts.get(arm) != new.prompts.get(arm)):
            return f"the prompt differs: {', '.join(changed)}"
        if not self.manifest and not common:
            return "nothing shows that the texts are the same (no manifest, no common pairs)"
        differing = sorted(pair for pair in common if self.pairs[pair] != new.pairs[pair])
        return f"pairs of the same name are different pairs, such as {differing[0]}" if differing else None

    def _parts(self) -> Iterator[Part]:
        yield Heading(clean(self.judge, 60))
        yield f"{count(self.tasks)} tasks; calls: {', '.join(f'{key} {n:,}' for key, n in self.calls.items())}"
        yield from (f"{words} ({rule})" if rule else words for words, rule in map(chip_words, self.sketch))
        yield from display_parts(Rows(self.measurements))

    def __repr__(self) -> str:
        return f"Datasheet of {clean(self.judge, 60)}: {count(len(self.measurements))} measurements"


def datasheet_of(
    calls: Sequence[PairCall], *, rng: np.random.Generator, level: float = 0.95, keep_calls: bool = True,
    source: Literal["run", "log"] = "run", **about: Any,
) -> Datasheet:  # fmt: skip
    """Measure and summarise one judge's calls; store the verdicts for later comparison if ``keep_calls``.

    ``about`` are other fields of the datasheet: its model, family, fingerprint, manifest, prompts, planted values.
    """
    table = call_table(calls)
    measurements = table_measurements(table, rng, level, estimates.reasons_of(calls))
    stored, invalid = calls if keep_calls else (), sum(call.verdict == "invalid" for call in calls)
    # Prompts must be recoverable from keys. Pair names may contain "|", so keys are split from the right.
    if bars := sorted({call.prompt for call in stored if "|" in call.prompt}):
        problem = "must not contain '|', which separates the parts of a kept verdict"
        raise InputError("datasheet", [Problem("prompt", f"{problem} (got {prompt!r})") for prompt in bars])
    return Datasheet.of(
        table.judge, measurements, len(calls), invalid, len(table.tasks), source=source, **about,
        anchors={key_of(call): call.verdict for call in stored},
        pairs={call.pair: AnchorPair(**{name: getattr(call, name) for name in OF_PAIR}) for call in stored},
    )  # fmt: skip


def anchored_calls(sheet: Datasheet) -> tuple[PairCall, ...]:
    """Return the calls stored in a datasheet, without their replies."""
    calls, problems = [], []
    for key, verdict in sheet.anchors.items():
        pair, order, prompt, trial = (key.rsplit("|", 3) + [""] * 3)[:4]
        anchor = sheet.pairs.get(pair)
        if anchor is None or order not in ("uv", "vu") or not trial.isdigit():
            problem = "must be pair|uv or vu|prompt|trial of a pair in `pairs`"
            problems.append(Problem(f"anchors[{key!r}]", problem))
            continue
        about = {name: getattr(anchor, name) for name in OF_PAIR}
        calls.append(PairCall(
            pair, order="uv" if order == "uv" else "vu", verdict=verdict, judge=sheet.judge, prompt=prompt,
            trial=int(trial), **about,
        ))  # fmt: skip
    if problems:
        raise InputError(f"datasheet of {sheet.judge}", problems)
    return tuple(calls)


METHOD = "point values of the judge's datasheet against the limits of the plan"


class Demanding(Protocol):
    """A plan that may set limits for its judges: of a study or a season."""

    @property
    def datasheets(self) -> DatasheetLimits | None:
        """The limits; None if the plan requires no datasheets."""
        ...

    @property
    def model_judges(self) -> Sequence[JudgeSpec]:
        """The judges that are models."""
        ...


def limit_measurements(sheets: Mapping[str, Datasheet], study: Demanding) -> Iterator[Measurement]:
    """Measure ``datasheet.gate`` for every judge that is a model: the number of limits that it fails."""
    if (limits := study.datasheets) is None:
        return
    for judge in study.model_judges:
        sheet, failed, detail = sheets.get(judge.name), list[JSON](), dict[str, JSON]()
        state = "not measured: no datasheet of this judge" if sheet is None else "not measured: of another model"
        usable = sheet is not None and sheet.model in ("", judge.model)
        if sheet is not None and usable:
            detail["manifest"], by_id = sheet.manifest, {item.id: item for item in sheet.measurements}
            arm, overall = {"judge": sheet.judge, "prompt": BASE}, {"judge": sheet.judge, "dimension": AGGREGATE}
            places = {
                "dark_current": ("dark_current", arm),
                "positional": ("delta0.positional", {**arm, "condition": "same_subset"}),
                "threshold": ("threshold", arm), "vacuum_score": ("point.vacuum_score", overall),
                "slope": ("point.slope", overall), "verbosity": ("point.verbosity", overall),
            }  # fmt: skip
            # Each failed limit, with the measured value.
            for name, limit in limits.set.items():
                kind, item = "at least" if name == "slope" else "at most", by_id.get(measurement_id(*places[name]))
                if item is None or item.value is None:
                    failed.append(f"{name} {'not measured' if item is None else item.state}, {kind} {limit:g}")
                    continue
                within = item.value >= limit - 1e-9 if name == "slope" else item.value <= limit + 1e-9
                if not within or item.detail.get("censored") == "right":
                    text = str(item.detail.get("text", f"{item.value:.2f}"))
                    text += " points per 100 words" if name == "verbosity" else ""
                    failed.append(f"{name} {text}, {kind} {limit:g}")
        yield number(Measurement, "datasheet.gate", {"judge": judge.name}, len(failed) if usable else None,
                     (len(limits.set), "limits"), METHOD, state, {"failed": failed} | detail)  # fmt: skip


COMPARED: Final = (
    "dark_current", "delta0.stable", "delta0.positional", "delta0.one_sided", "sensitivity", "filler.preference",
    "pair.invalid_share",
)  # fmt: skip
"""The measurements used for a drift verdict, in every arm that both datasheets have."""

_PAIR_NAMES: Final = {"delta0.stable": "stable", "delta0.positional": "positional", "delta0.one_sided": "one-sided"}

Shift = tuple[str, float, float, estimates.Ends, float, int, str, str]
"""One quantity in both datasheets: its label, old, new, ends of new minus old, unadjusted p, n, n_of and method."""


def compare(old: Datasheet, new: Datasheet, *, alpha: float = 0.05) -> tuple[Measurement, ...]:
    """Test a judge for drift since an earlier datasheet, paired by question if both have the calls (Newcombe 1998)."""
    checks.probability("compare", "alpha", alpha)
    reason, shifts = old.unlike(new), list[Shift]()
    if reason is None:
        shifts = list((_paired if old.anchors and new.anchors else _from_counts)(old, new, alpha))
        reason = "no quantity was measured in both"
    adjusted = holm([shift[4] for shift in shifts]).tolist() if shifts else []
    moved = [shift[0] for shift, p in zip(shifts, adjusted, strict=True) if p <= alpha]
    labels = {"judge": new.judge}
    drifts = [
        number(Measurement, "drift", {**labels, "of": of}, after - before, (n, n_of), f"new minus old, {method}", "ok",
               {"old": before, "new": after, "p": p, "p_holm": p_holm}, ends, 1 - alpha)
        for (of, before, after, ends, p, n, n_of, method), p_holm in zip(shifts, adjusted, strict=True)
    ]  # fmt: skip
    detail: dict[str, JSON] = {"verdict": "not comparable", "shifted": list(moved), "alpha": alpha,
                               "tests": len(shifts)}  # fmt: skip
    if shifts:
        detail["verdict"] = "shifted" if moved else "same instrument"
        detail["widest"] = max(max(abs(end) for end in shift[3]) for shift in shifts)
    verdict = number(
        Measurement, "drift.verdict", labels, float(bool(moved)) if shifts else None,
        (len(shifts), "compared quantities"), "any quantity shifted after Holm's adjustment" if shifts else "none",
        f"not measured: not comparable, {reason}", detail,
    )  # fmt: skip
    return *drifts, verdict


def _paired(old: Datasheet, new: Datasheet, alpha: float) -> Iterator[Shift]:
    """Yield every quantity, compared on the questions common to both datasheets."""
    before, after = _answers(anchored_calls(old)), _answers(anchored_calls(new))
    for of in sorted(before.keys() & after.keys()):
        units = sorted(before[of].keys() & after[of].keys())
        if not units:
            continue
        first, second = (np.array([side[of][unit][1] for unit in units]) for side in (before, after))
        tasks = [before[of][unit][0] for unit in units]
        test = cluster_t(second - first, tasks, level=1 - alpha)
        shares, method = (float(first.mean()), float(second.mean())), f"paired by question, {test.method}"
        if test.low is None or test.high is None:  # no task differs from another: Clopper-Pearson over tasks
            change, reach = shares[1] - shares[0], 1 - (alpha / 2) ** (1 / len(set(tasks)))
            ends = change - (1 + change) * reach, change + (1 - change) * reach
            method = f"{method}; each of {len(set(tasks))} tasks one unit"
        else:
            ends = max(-1.0, test.low), min(1.0, test.high)
        kind = "common pairs" if of.startswith("delta0") else "common calls"
        yield of, *shares, ends, test.p, len(units), kind, method


def _answers(calls: tuple[PairCall, ...]) -> dict[str, dict[str, tuple[str, float]]]:
    """Return the units of each compared quantity, each with its task and 1.0 for a hit or 0.0."""
    answers: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    shown: dict[tuple[str, str, int], dict[str, PairCall]] = defaultdict(dict)
    for call in calls:
        arm, chosen = {"prompt": call.prompt}, ""  # the content preferred by the call, if any
        if call.verdict in ("1", "2"):
            chosen = call.order[int(call.verdict) - 1]

        hits = [("pair.invalid_share", call.verdict == "invalid", arm)]
        if call.condition == "vacuum":
            hits.append(("dark_current", bool(chosen), arm))
        elif call.condition == "ladder":
            better = bool(chosen) and chosen == call.better
            hits.append(("sensitivity", better, {"delta": f"{call.delta:g}", **arm}))
        elif call.condition == "filler":
            hits.append(("filler.preference", chosen == "v", arm))
        elif call.condition in estimates.EQUAL:
            shown[call.pair, call.prompt, call.trial][call.order] = call
        for name, hit, labels in hits:
            answers[_label(name, labels)][key_of(call)] = call.task, float(hit)
    for (pair, prompt, trial), both in shown.items():
        if len(both) == 2:
            call = both["uv"]
            word = CLASSES[pair_class(call.verdict, both["vu"].verdict)].split(",")[0]
            for name, answer in _PAIR_NAMES.items():
                of = _label(name, {"condition": call.condition, "prompt": prompt})
                answers[of][f"{pair}|{prompt}|{trial}"] = call.task, float(word == answer)
    return answers


def _label(name: str, labels: Mapping[str, str]) -> str:
    """Return the label of a drift: the measurement id without the judge, and without the prompt for the base arm."""
    shown = {key: labels[key] for key in sorted(labels) if key != "judge" and (key, labels[key]) != ("prompt", BASE)}
    inner = ",".join(f"{key}={value}" for key, value in shown.items())
    return f"{name}[{inner}]" if inner else name


def _from_counts(old: Datasheet, new: Datasheet, alpha: float) -> Iterator[Shift]:
    """Yield every quantity that both datasheets measured, compared by its counts."""
    from scipy.stats import fisher_exact  # here, because it takes every command a third of a second to load

    before, after = (
        {_label(m.name, m.labels): m for m in sheet.measurements if m.name in COMPARED and "variant" not in m.labels}
        for sheet in (old, new)
    )
    for of in sorted(before.keys() & after.keys()):
        a, b = before[of], after[of]
        if a.value is None or b.value is None:
            continue
        sizes = np.array([max(1, round(m.detail.get("effective_n", m.n))) for m in (a, b)])
        hits = np.rint(np.array([a.value, b.value]) * sizes).astype(np.int64)
        p = float(fisher_exact(np.stack([hits, sizes - hits])).pvalue)
        ends = difference_interval(a.value, b.value, int(sizes[0]), int(sizes[1]), alpha)
        units = f"{sizes[0]} and {sizes[1]} independent units"
        method = f"two samples, Fisher's exact test and Newcombe interval on {units}"
        yield of, a.value, b.value, ends, min(1.0, p), b.n, b.n_of, method


def difference_interval(old: float, new: float, n_old: int, n_new: int, alpha: float) -> estimates.Ends:
    """Compute Newcombe's hybrid score interval for a difference of two shares (method 10)."""
    (l1, u1), (l2, u2) = (wilson_ends(p, n, level=1 - alpha) for p, n in ((old, n_old), (new, n_new)))
    difference = new - old
    low = difference - np.hypot(new - l2, u1 - old)
    high = difference + np.hypot(u2 - new, old - l1)
    return float(low), float(high)
