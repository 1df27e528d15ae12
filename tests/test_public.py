"""The public names: all are listed and described, stay as they were promised, and nothing private is borrowed."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "assaymark"

# Importable exactly so for as long as the major version stands: these names, parameters and defaults. Functions may
# take more, if that has defaults, and results may say more.
PROMISED = {
    "assaymark.metrology": """
        weighted_kappa(a, b, *, categories=5)
        mean_pairwise_kappa(ratings, *, categories=5)
        fleiss_kappa(ratings, *, categories=5)
        round_half_up(x)
        repetition_stability(trials, *, ddof=1)
        bootstrap_kappa(ratings, clusters, *, categories=5, level=0.95, resamples=10_000, rng=None)
        Interval(low, high, method)
        holm(p)
        wilson(successes, n, *, level=0.95)
        minimum_detectable_effect(n, *, sd=1.0, alpha=0.05, power=0.8, comparisons=1)
        leave_one_family_out(scores, families)
        self_preference(scores, agent_families, judge_families)
        SelfPreference(judge, own, others, gap, n_own)
        effective_judges(errors)
        d_prime(hits, signals, false_alarms, noises)
        decompose(first, second)
        Decomposition(raw_false_preference, stable, positional, one_sided, no_preference, other, other_pairs, n_pairs)
        detection_threshold(deltas, p_correct, n, *, target=0.75)
        Threshold(value, censored)
    """,
    "assaymark.claims": """
        agreement_status(kappa, *, publish=0.4, halt=0.2)
        cell_b_outcome(delta, significant)
        publication_level(agreement, stability, adversarial, *, asserts_order, significance_tested=True)
    """,
    "assaymark.judging": """
        band(score)
        composite(reasoning, evidence, process, outcome=None)
        total_score(judge_composites, efficiency=None)
        efficiency(quality, seconds)
        anonymise(text, names, *, keep=())
        Anonymised(text, replaced, kept)
        numeric_ledger(decision, context)
    """,
    "assaymark.portfolio": """
        max_sharpe(mu, cov, *, rf=0.0, allowed=None)
        min_variance(cov)
        equal_risk_contribution(cov)
        inverse_volatility(cov)
        Solution(weights, status)
        backtest(targets, returns, *, cost_bps=15.0)
        Backtest(nav, turnover, cost)
        performance(nav, *, rf=0.04, periods=252)
        Performance(total_return, cagr, volatility, sharpe, sortino, max_drawdown, calmar)
    """,
    "assaymark.benchmark": """
        ceps(stages, *, penalty=0.1)
        s1_score(views, truth)
        s2_score(signals, truth)
        weight_accuracy(w, w_star)
        intra_class_score(w, corr, classes)
        inter_class_score(w, corr, classes)
        s3_score(w, w_star, corr, classes, *, alpha=0.5)
        s4_score(turnover, turnover_star)
        s5_score(rebalance, rebalance_star, var, var_star, drawdown, drawdown_star)
        Profile(name, equity_cap, bond_floor, drawdown_tolerance, var_limit)
        exposures(w, classes)
        profile_alignment(equity_crypto, bond_cash, var, profile)
        adaptation_score(pas)
        stress_gate(drawdowns, tolerance)
    """,
}
CONSTANTS = {"assaymark.benchmark": ("CONSERVATIVE", "BALANCED", "AGGRESSIVE")}
PROMISES = [(place, line.strip()) for place, text in PROMISED.items() for line in text.strip().splitlines()]


def test_what_is_promised_is_kept():
    for place, promise in PROMISES:
        name, _, _ = promise.partition("(")
        module = importlib.import_module(place)
        assert name in module.__all__
        value, scope = getattr(module, name), {}
        exec(f"def {promise}: ...", scope)
        found, promised = inspect.signature(value).parameters, inspect.signature(scope[name]).parameters
        assert [one for one in found if one in promised] == list(promised), promise
        for parameter in promised.values():
            one = found[parameter.name]
            assert (one.kind, one.default) == (parameter.kind, parameter.default), promise
        further = [parameter for one, parameter in found.items() if one not in promised]
        assert isinstance(value, type) or all(one.default is not inspect.Parameter.empty for one in further), promise
    for place, names in CONSTANTS.items():
        assert set(names) <= set(importlib.import_module(place).__all__)


@pytest.fixture(scope="module")
def listed(docs_script) -> ModuleType:
    return docs_script("names")


def test_the_public_names_are_those_of_the_page(listed):
    kept, now = listed.PAGE.read_text(encoding="utf-8"), listed.page()
    lines = difflib.unified_diff(kept.splitlines(), now.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))]
    how = "what others can import has changed; if that is meant, run `python docs/names.py` and say it in CHANGELOG.md"
    assert not changed, f"{how}:\n" + "\n".join(changed)


def test_what_is_public_is_there_once_and_is_said_what_it_is(listed):
    problems = []
    for place in listed.places():
        names = listed.names_of(importlib.import_module(place))
        problems += [f"{place}.{name} is listed twice" for name in sorted(set(names)) if names.count(name) > 1]
        problems += [f"{place}.{one.name} has no docstring" for one in listed.public(place) if not one.first]
    assert problems == []


def test_the_package_alone_gives_its_version_and_takes_nothing_along():
    asked = (
        "import sys, assaymark; print([n for n in vars(assaymark) if n[0] != '_'], assaymark.__all__, "
        "[n for n in sys.modules if n.partition('.')[0] in ('numpy', 'scipy', 'pyarrow', 'pydantic')])"
    )
    made = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[] ['__version__', 'check'] []"


def test_no_module_takes_what_another_keeps_to_itself():
    problems, files = [], sorted(SOURCE.rglob("*.py"))
    for path in files:
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        ours = [one for one in tree if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("assaymark")]
        taken = [f"{node.module}.{alias.name}" for node in ours for alias in node.names]
        private = [name for name in taken if any(part[0] == "_" and part[1] != "_" for part in name.split("."))]
        problems += [f"{path.relative_to(SOURCE)} takes {name}" for name in private]
    assert files
    assert problems == []
