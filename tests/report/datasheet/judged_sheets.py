"""Hand-made datasheets: a reference judge with every section, two peers, a log, a hostile and an empty one.

Run as a script with a folder to write their pages and figures there."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from assaymark.metrology import datasheet, wilson
from assaymark.records import Measurement
from assaymark.report import render_comparison, render_datasheet

MANIFEST = "c03f6e18" * 7 + "9d0041bd"
PROMPTS = {datasheet.BASE: "5d0b91ce" * 7 + "aa1077a2", datasheet.STRICT: "77120b3e" * 8}
LADDER = {0.5: 60, 1.0: 100, 2.0: 80, 3.0: 60, 4.0: 40, 5.0: 20}
HOSTILE = "</style><script>document.title='pwned'</script><img src=x onerror=alert(1)>\u202e\x1b[31m{{7*7}}\ufffe"


def number(name, value, n, n_of="calls", ends=None, state="ok", detail=None, **labels):
    low, high = ends or (None, None)
    return Measurement(
        name=name, labels=labels, value=value, n=n, n_of=n_of, method="made by hand" if value is not None else "none",
        state=state, low=low, high=high, level=0.95 if ends else None, detail=detail or {},
    )  # fmt: skip


def share(name, count, n, n_of="calls", detail=None, **labels):
    return number(
        name, count / n, n, n_of, wilson(count, n, level=0.95), detail={"count": count, **(detail or {})}, **labels
    )


def missing(name, state, n_of="calls", detail=None, **labels):
    return number(name, None, 0, n_of, state=state, detail=detail, **labels)


def decomposition(judge, pairs, prompt=datasheet.BASE, condition="same_subset"):
    """From the pairs in each class: stable, positional, one-sided, other (one call of each names a slot), none."""
    stable, positional, one_sided, other, none = pairs
    n = sum(pairs)
    at = {"judge": judge, "prompt": prompt, "condition": condition}
    named = 2 * stable + 2 * positional + one_sided + other
    found = [
        share("delta0.raw", named, 2 * n, **at), share("delta0.tie_rate", 2 * n - named - other, 2 * n, **at),
        number("delta0.other", other / 2 / n, n, "pairs", (0.0, 0.1), **at),
    ]  # fmt: skip
    parts = {
        "stable": stable, "positional": positional, "one_sided": one_sided, "other_pairs": other, "no_preference": none,
    }  # fmt: skip
    found += [share(f"delta0.{name}", count, n, "pairs", {"pairs": count}, **at) for name, count in parts.items()]
    detail = {"pairs": positional, "one_sided_pairs": one_sided}
    for name, count, n, what in (("flip_rate", positional, stable + positional, "pairs"),
                                 ("slot_1_share", positional * 2 // 3, positional, "positional pairs")):  # fmt: skip
        more, why = (detail, "pair was decided in both orders") if what == "pairs" else (None, "positional pairs")
        state = f"undefined: no {why}"
        found.append(share(f"delta0.{name}", count, n, what, more, **at) if n
                     else missing(f"delta0.{name}", state, what, more, **at))  # fmt: skip
    return found


def ladder(judge, correct, prompt=datasheet.BASE, wrong=0.05):
    """Rates at each step from the calls that pick the better text."""
    found = []
    for delta, count in correct.items():
        n = LADDER[delta]
        bad = round((n - count) * wrong)
        at = {"judge": judge, "prompt": prompt, "delta": f"{delta:g}"}
        found += [
            share("sensitivity", count, n, **at), share("tie_rate", n - count - bad, n, **at),
            share("wrong_rate", bad, n, **at), share("miss_by_tie", n - count - bad, n, **at),
            number("d_prime", 1.2 + delta / 2, n, ends=(0.9 + delta / 2, 1.6 + delta / 2), **at),
        ]  # fmt: skip
        if count + bad:
            found.append(share("conditional_accuracy", count, count + bad, **at))
        else:
            found.append(missing("conditional_accuracy", "undefined: no call had a preference", **at))
    return found


def threshold(judge, value, censored=None, ends=None, prompt=datasheet.BASE, words=(None, None)):
    sign = {"left": "<= ", "right": "> ", None: ""}[censored]
    detail = {
        "censored": censored, "text": f"{sign}{value:.3g}", "low_text": words[0], "high_text": words[1], "knots": [],
    }  # fmt: skip
    return number("threshold", value, 360, ends=ends, detail=detail, judge=judge, prompt=prompt)


def vacuum(judge, counts, graded=(3, 2, 5), filler=(9, 4)):
    kinds = dict(zip(("empty", "whitespace", "identical"), counts, strict=True))
    at = {"judge": judge, "prompt": datasheet.BASE}
    found = [share("dark_current", sum(counts), 120, **at)]
    found += [share("dark_current", count, 40, variant=kind, **at) for kind, count in kinds.items()]
    found += [
        share("graded_vacuum", k, 40, variant=kind, **at)
        for kind, k in zip(("typo", "unit", "synonym"), graded, strict=True)
    ]
    return [*found, share("filler.preference", filler[0], 100, detail={"against": filler[1]}, **at)]


def strict_arm(judge, pairs, correct, before):
    """The strict arm and its shifts; the vacuum was not run under it."""
    found = decomposition(judge, pairs, datasheet.STRICT) + ladder(judge, correct, datasheet.STRICT, wrong=0.0)
    found += [
        missing("dark_current", "not measured: vacuum was not run under strict", judge=judge, prompt=datasheet.STRICT),
        missing("threshold", "not measured: the ladder under strict has the steps 1, 5 only, needs 3", judge=judge,
                prompt=datasheet.STRICT),
        share("pair.invalid_share", 0, 240, judge=judge, prompt=datasheet.STRICT),
        number("criterion.shift", 0.34, 120, "common calls", (0.24, 0.44), judge=judge, condition="same_subset"),
    ]  # fmt: skip
    shift = (before - correct[1.0]) / 100
    at = {"judge": judge, "condition": "ladder", "delta": "1"}
    return [*found, number("criterion.shift", shift, 100, "common calls", (shift - 0.1, shift + 0.1), **at)]


def pointwise(judge):
    found = []
    for dimension, floor, slope, right, length, stuck in (
        ("risk_management", 1.4, 0.62, 41, 0.27, 0),
        ("sizing", 2.2, 0.21, 30, -0.08, 3),
        ("evidence", 1.0, 0.0, 25, 0.0, 40),
    ):
        at = {"judge": judge, "dimension": dimension}
        found += [
            number("point.vacuum_score", floor, 10, "rationales", (max(1.0, floor - 0.3), floor + 0.3), **at),
            number("point.slope", slope, 10, "tasks", (slope - 0.15, slope + 0.15), **at),
            share("point.order", right, 50, "ladder steps", **at),
            number("point.verbosity", length, 10, "tasks", (length - 0.12, length + 0.12),
                   detail={"at_ends": stuck, "pairs": 40}, **at),
        ]  # fmt: skip
    return found


def drift(judge):
    rows = (
        ("dark_current", 0.025, 0.058, (-0.01, 0.08), 0.4),
        ("delta0.positional[condition=same_subset]", 0.083, 0.233, (0.06, 0.24), 0.004),
        ("sensitivity[delta=1]", 0.85, 0.84, (-0.08, 0.06), 1.0),
        ("sensitivity[delta=1,prompt=strict]", 0.66, 0.61, (-0.14, 0.04), 0.9),
    )
    found = [
        number("drift", new - old, 100, "common calls", ends, detail={"old": old, "new": new, "p_holm": p}, judge=judge,
               of=of)
        for of, old, new, ends, p in rows
    ]  # fmt: skip
    shifted = [of for of, _, _, _, p in rows if p <= 0.05]
    detail = {"verdict": "shifted", "shifted": shifted, "alpha": 0.05, "tests": len(rows), "widest": 0.24}
    return [*found, number("drift.verdict", 1.0, len(rows), "compared quantities", detail=detail, judge=judge)]


def kappa(a, b, value=0.41, ends=(0.3, 0.52)):
    return number("between.kappa", value, 1020, "common calls", ends, a=a, b=b)


def kappa_content(a, b, value=0.52, ends=(0.4, 0.63)):
    return number("between.kappa_content", value, 510, "common pairs", ends, a=a, b=b)


CHIPS = (
    "vacuum: nearly clean (clean: at most 2 % of vacuum calls named a slot; nearly clean: at most 10 %; leaky: more)",
    "equal texts: position-led (position-led: at least twice as many positional as stable pairs)",
    "target: sensitive below one requirement (the 75 % threshold)",
    "strict prompt: moves the criterion (costs resolution: the accuracy of decided calls falls)",
)


def sheet(judge, measurements, **more):
    base = {
        "judge": judge, "measurements": tuple(measurements), "sketch": CHIPS,
        "calls": {"all": 860, "ok": 858, "invalid": 2}, "tasks": 10, "source": "run",
        "model": f"reference/{judge}"[:60], "family": "reference", "arms": (datasheet.BASE, datasheet.STRICT),
        "manifest": MANIFEST, "prompts": PROMPTS,
    }  # fmt: skip
    return datasheet.Datasheet(**{**base, **more})


def quay(judge="quay-j", *, planted=True):
    correct = {0.5: 35, 1.0: 84, 2.0: 74, 3.0: 58, 4.0: 40, 5.0: 20}
    found = [
        *vacuum(judge, (2, 1, 4)), *decomposition(judge, (6, 14, 10, 1, 29)),
        *decomposition(judge, (11, 20, 9, 0, 20), condition="different_subset"), *ladder(judge, correct),
        threshold(judge, 0.83, ends=(0.66, 0.97), words=("0.66", "0.97")),
        share(
            "pair.invalid_share", 2, 620, judge=judge, prompt=datasheet.BASE, detail={"reasons": {"no slot named": 2}},
        ),
        *strict_arm(judge, (2, 3, 1, 0, 54), {1.0: 61, 5.0: 20}, 84),
        share(
            "repeat.stability", 330, 360, "questions", {"kappa": 0.86, "kappa_low": 0.8, "kappa_high": 0.91},
            judge=judge,
        ),
        *pointwise(judge), *drift(judge),
    ]  # fmt: skip
    true = {
        "dark_current": 0.06, "delta0.positional": 0.25, "delta0.stable": 0.08, "sensitivity": 0.82, "threshold": 0.9,
    }  # fmt: skip
    ids = {m.id: true[m.name] for m in found if m.name in true and is_main(m.labels)}
    return sheet(judge, found, planted={**ids, "made.up[judge=x]": 0.5} if planted else None, fingerprint="f" * 40)


def is_main(labels):
    """The base arm, one requirement apart, texts that differ in wording only."""
    expected = {"prompt": datasheet.BASE, "delta": "1", "condition": "same_subset"}
    return "variant" not in labels and all(labels.get(key, value) == value for key, value in expected.items())


def north(judge="north-j"):
    correct = {0.5: 43, 1.0: 93, 2.0: 79, 3.0: 60, 4.0: 40, 5.0: 20}
    found = [
        *vacuum(judge, (0, 1, 1), (1, 0, 2), (48, 10)), *decomposition(judge, (18, 3, 6, 0, 33)),
        *ladder(judge, correct), threshold(judge, 0.5, "left", (0.5, 0.61), words=("<= 0.5", "0.61")),
        share("pair.invalid_share", 0, 620, judge=judge, prompt=datasheet.BASE),
        missing("criterion.shift", "not measured: strict arm was not run", judge=judge, condition="same_subset"),
        missing("repeat.stability", "undefined: one trial, needs two", "questions", judge=judge),
    ]  # fmt: skip
    return sheet(judge, found, arms=(datasheet.BASE,), prompts={datasheet.BASE: PROMPTS[datasheet.BASE]})


def strand(judge="strand-j"):
    correct = {0.5: 19, 1.0: 44, 2.0: 46, 3.0: 42, 4.0: 29, 5.0: 14}
    found = [
        *vacuum(judge, (12, 13, 16), (20, 18, 22), (60, 30)), *decomposition(judge, (3, 42, 5, 3, 7)),
        *ladder(judge, correct, wrong=0.9), threshold(judge, 5.0, "right", (3.5, 5.0), words=("3.5", "> 5")),
        share("pair.invalid_share", 3, 620, judge=judge, prompt=datasheet.BASE),
        *strict_arm(judge, (2, 38, 4, 0, 16), {1.0: 40, 5.0: 14}, 44),
        missing("repeat.stability", "undefined: one trial, needs two", "questions", judge=judge),
    ]  # fmt: skip
    return sheet(judge, found)


def clean(judge="still-j"):
    """Nothing in the vacuum, nothing between equal texts, every difference seen: all values at their edges."""
    found = [
        *vacuum(judge, (0, 0, 0), (0, 0, 0), (0, 0)), *decomposition(judge, (0, 0, 0, 0, 60)),
        *ladder(judge, LADDER, wrong=0.0), threshold(judge, 0.5, "left"),
        *strict_arm(judge, (0, 0, 0, 0, 60), {1.0: 0, 5.0: 20}, 100),
    ]  # fmt: skip
    return sheet(judge, found)


def log(judge="gpt-log"):
    base, no_ladder = {"judge": judge, "prompt": datasheet.BASE}, "not measured: the quality ladder was not run under"
    found = [
        missing("dark_current", f"not measured: vacuum was not run under {datasheet.BASE}", **base),
        *decomposition(judge, (412, 96, 52, 7, 233)),
        missing("sensitivity", f"{no_ladder} {datasheet.BASE}", delta="1", **base),
        missing("threshold", f"{no_ladder} {datasheet.BASE}", **base),
        missing("filler.preference", f"not measured: filler was not run under {datasheet.BASE}", **base),
        share("pair.invalid_share", 9, 1600, judge=judge, prompt=datasheet.BASE),
        missing("criterion.shift", "not measured: strict arm was not run", judge=judge, condition="same_subset"),
        share("repeat.stability", 700, 800, "questions", {"kappa": None}, judge=judge),
    ]  # fmt: skip
    calls = {"all": 1600, "ok": 1591, "invalid": 9}
    return sheet(
        judge, found, source="log", manifest="", prompts={}, model="", family="", tasks=80, calls=calls,
        arms=(datasheet.BASE,),
    )  # fmt: skip


def one_order_log(judge="half-log"):
    """A log that showed each pair in one order only."""
    state = "not measured: every pair was shown in one order only, needs both"
    at = {"judge": judge, "prompt": datasheet.BASE, "condition": "same_subset"}
    parts = ("stable", "positional", "one_sided", "other", "no_preference", "other_pairs", "flip_rate", "slot_1_share")
    found = [share("delta0.raw", 350, 400, **at), *(missing(f"delta0.{p}", state, "pairs", **at) for p in parts)]
    return sheet(
        judge, found, source="log", manifest="", prompts={}, model="", family="", tasks=80, arms=(datasheet.BASE,)
    )


def empty(judge="empty-j"):
    return sheet(judge, [], sketch=(), calls={}, tasks=0, manifest="", prompts={}, arms=(), model="", family="")


def hostile():
    found = replace(quay(HOSTILE), sketch=(f"{HOSTILE}: {HOSTILE} ({HOSTILE})",), non_claims=(HOSTILE,))
    measured = [
        *found.measurements, missing(HOSTILE, HOSTILE, HOSTILE, judge=HOSTILE, prompt=HOSTILE, odd=HOSTILE),
        share("dark_current", 3, 40, judge=HOSTILE, prompt=datasheet.BASE, variant=HOSTILE),
        number("point.slope", 0.2, 4, HOSTILE, judge=HOSTILE, dimension=HOSTILE),
        number("drift", 0.2, 4, HOSTILE, (0.1, 0.3), judge=HOSTILE, of=f"{HOSTILE}[a={HOSTILE}]"),
    ]  # fmt: skip
    more = {
        "model": HOSTILE, "family": HOSTILE, "fingerprint": HOSTILE, "manifest": HOSTILE, "prompts": {HOSTILE: HOSTILE},
    }  # fmt: skip
    return replace(found, measurements=tuple(measured), arms=(datasheet.BASE, HOSTILE), **more)


def pages():
    """All pages and figures of the examples, as relative path -> text."""
    made = {}
    judges = (quay(), north(), strand(), clean())
    for one in judges:
        made.update(render_datasheet(one, judges))
    made.update(
        render_comparison(
            judges, agreement=(kappa("north-j", "quay-j"), kappa("quay-j", "strand-j", 0.12, (0.02, 0.22)))
        )
    )
    for other in (log(), one_order_log(), empty(), hostile()):
        made.update({f"other/{path}": text for path, text in render_datasheet(other).items()})
    made.update({f"other/{p}": t for p, t in render_comparison((log(), one_order_log(), empty(), hostile())).items()})
    return made


def words(text: str) -> str:
    text = re.sub(r"<(style|script)>.*?</\1>", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text))).replace("\u00a0", " ")


def prose(text: str) -> str:
    """The words of a page, with no space before a full stop that a tag left."""
    return re.sub(r" ([.,;:)])", r"\1", words(text)).replace("( ", "(")
