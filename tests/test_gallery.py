"""The gallery of re-issued leaderboards: pages are what the script makes, and each number is computed a second way."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import math
import sys
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nct, t, ttest_rel
from statsmodels.stats.multitest import multipletests

import assaymark

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "gallery"
PACKAGE = Path(assaymark.__file__).parent / "workflow" / "mt_bench_repro"


def loaded(path: Path) -> ModuleType:
    """A file of the project that is no module of the package."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look themselves up
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    return loaded(ROOT / "docs" / "gallery.py")


@pytest.fixture(scope="module")
def packaged(gallery) -> tuple[dict[str, str], str]:
    entries, drawn = gallery.packaged()
    return {one.slug: one.page for one in entries}, drawn


def page(slug: str) -> str:
    """A page with single spaces between its words."""
    return " ".join(lined(slug).split())


def lined(slug: str) -> str:
    return (PAGES / f"{slug}.md").read_text(encoding="utf-8")


def cells(slug: str, head: str) -> list[list[str]]:
    """The rows of the table that starts with a head."""
    _, _, rest = lined(slug).partition(f"| {head} |")
    rows = [line for line in rest.splitlines()[2:] if line.startswith("|") or not line]
    return [[one.strip() for one in line.strip("|").split("|")] for line in rows[: rows.index("")]]


def orders(slug: str) -> dict[str, str]:
    """The value of each system in the order of a page."""
    return {row[1]: row[2] for row in cells(slug, "rank | system")}


def shown(values: pd.Series, form: str = ".2f") -> dict[str, str]:
    """Values as a page shows them, the highest first."""
    ordered = values.sort_values(ascending=False)
    return {name: format(value, form).replace("-", "−") for name, value in ordered.items()}


def test_pages_are_what_the_script_makes_and_have_a_scope_and_a_source(packaged):
    pages, drawn = packaged
    assert {slug: lined(slug) for slug in pages} == pages
    assert (ROOT / "docs" / "assets" / "real-judges.svg").read_text(encoding="utf-8") == drawn
    for path in PAGES.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not any(f"/{name}/" in text for name in ("work", "tmp", "home", "root"))
        assert str(ROOT) not in text
        if path.stem != "index":
            assert text.index("## What this is not") < text.index("## Source")
            assert f"({path.name})" in page("index")


def test_what_the_readme_says_of_real_judges_is_on_the_page():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    rows = cells("mt-bench-repro", "rank | system")
    tiers = [int(row[3]) for row in rows]
    assert (len({*tiers}), sum("no ranking" in row[5] for row in rows)) == (4, 3)
    assert tiers == sorted(tiers), "whoever is in a higher tier has the higher plain mean"
    assert "four tiers, do not rank three of the six systems" in text
    assert page("mt-bench-repro").count("on English, and below it on Korean.”") == 2
    places = [float(row[3].rstrip("%")) for row in cells("mt-bench-repro", "judge | pairs in both orders")]
    assert f"In {min(places):.0f} to {max(places):.0f} % of pairs" in text
    liked = [row[0] for row in cells("mt-bench-repro", "judge | in") if row[1] == "share of wins" and "(+" in row[2]]
    assert len(liked) == 1
    assert "docs/assets/real-judges.svg" in text
    assert len([*PAGES.glob("*.md")]) - 1 == 1 + 6


def test_plain_means_unreadable_replies_and_position_bias_of_the_package_in_pandas():
    grades = pd.read_parquet(PACKAGE / "grades.parquet")
    read, lost = grades[grades.score >= 1], grades[grades.score < 1]
    assert orders("mt-bench-repro") == shown(read.groupby("system").score.mean())
    tongues = read.groupby(["system", "language"]).score.mean().unstack()
    for name, english, _, korean, _ in cells("mt-bench-repro", "system | English, plain mean"):
        assert (english, korean) == tuple(f"{tongues.loc[name, one]:.2f}" for one in ("English", "Korean"))
    korean = f"{(lost.language == 'Korean').sum()} of the {len(lost)} unreadable replies are in Korean"
    assert korean in page("mt-bench-repro")
    failed = {row[0]: row[1] for row in cells("mt-bench-repro", "judge | replies without a readable score")}
    assert failed == {judge: str(count) for judge, count in lost.groupby("judge").size().items()}
    spread = tongues.agg(np.ptp)
    assert spread["Korean"] > spread["English"]
    pairs = pd.read_parquet(PACKAGE / "orders.parquet")
    both = pairs[pairs.winner_ab.isin(["A", "B", "tie"]) & pairs.winner_ba.isin(["A", "B", "tie"])]
    same = (both.winner_ab == both.winner_ba) & (both.winner_ab != "tie")
    shares = same.groupby([both.judge, both.language]).mean().unstack()
    for judge, english, korean in cells("mt-bench-repro", "judge | same position won, English"):
        assert (english, korean) == tuple(f"{shares.loc[judge, one]:.1%}" for one in ("English", "Korean"))


def test_the_season_page_follows_from_its_figures(gallery):
    printed = loaded(ROOT / "tests" / "seeds" / "test_season_scores.py").AGREEMENT
    assert printed == gallery.SEASON
    rows = {row[0]: row for row in cells("season-leaderboard", "contestant")}
    for name, (low, middle, high) in printed.items():
        above = {other for other, (_, _, top) in printed.items() if top < middle}
        assert rows[name][1:5] == [str(low), str(middle), str(high), str(high - low)]
        assert {one for one in rows[name][5].split(", ") if one != "none"} == above
        assert 45 <= low <= 66 < high
    assert max(low for low, _, _ in printed.values()) <= min(high for *_, high in printed.values())
    assert "The ranges of 10 of 10 pairs overlap" in page("season-leaderboard")


# --- pages from extracts ----------------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        yield from (json.loads(row) for row in rows)


def needed(difference: np.ndarray[Any, Any]) -> int:
    """Clusters from which a paired t test finds a difference with power .8: an independent search."""
    effect = abs(difference.mean()) / difference.std(ddof=1)

    def power(n: int) -> float:
        cut = t.ppf(0.975, n - 1)
        return float(nct.sf(cut, n - 1, effect * math.sqrt(n)))

    low, high = 3, 100_000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= 0.8 else (middle + 1, high)
    return low


def check_pairs(slug: str, table: pd.DataFrame, unit: str) -> None:
    """The number of pairs that differ, and what it would take for the first two, from ``item``, ``cluster``, agents."""
    agents = [one for one in table.columns if one not in ("item", "cluster")]
    p, gaps = [], {}
    for a, b in combinations(agents, 2):
        both = table.dropna(subset=[a, b]).groupby("cluster")[[a, b]].mean()
        if len(both) >= 3:
            p.append(ttest_rel(both[a], both[b]).pvalue)
            gaps[frozenset((a, b))] = (both[a] - both[b]).to_numpy()
    clear = int((multipletests(p, method="holm")[1] <= 0.05).sum())
    text, first = page(slug), gaps[frozenset([*orders(slug)][:2])]
    assert f"correction: {clear} of {len(p)} differ at 5 %" in text
    assert f"{abs(first.mean()):,.2f} {unit} on average over {len(first):,}" in text
    assert f"(standard deviation {first.std(ddof=1):,.2f})" in text
    if not clear:
        told = int(text.split("power of 0.8 from about ")[1].split()[0].replace(",", ""))
        assert told == pytest.approx(needed(first), rel=0.02, abs=2)


@pytest.mark.shared
def test_the_pages_of_the_extracts_are_what_the_script_makes(shared, gallery, packaged):
    made = {one.slug: one.page for one in (make(shared / "data") for make in gallery.OF_DATA)}
    assert {slug: lined(slug) for slug in made} == made
    assert made.keys() | packaged[0].keys() == {path.stem for path in PAGES.glob("*.md")} - {"index"}


@pytest.mark.shared
def test_capitalbench_in_pandas(shared):
    @cache
    def grown_of(name: str) -> pd.Series:
        entry, exit_ = (_closes(contexts[name].get(f"{when}_prices.csv")) for when in ("entry", "exit"))
        return exit_ / entry - 1

    contexts = {row["round_id"]: row for row in lines(shared / "data" / "capitalbench" / "contexts.jsonl.gz")}
    found = []
    for row in lines(shared / "data" / "capitalbench" / "decisions.jsonl.gz"):
        made = row["submission"]
        if not made["round_id"].endswith("1W"):
            continue
        grown = grown_of(made["round_id"])
        weights = pd.Series({one["option_id"]: one["allocation_pct"] for one in made.get("portfolio", ())}, dtype=float)
        weights = weights if len(weights) else pd.Series({made["selected_option_id"]: 100.0})
        alpha = (weights * grown.reindex(weights.index)).sum(skipna=False) - 100 * grown.get("SP500", np.nan)
        found.append((made["round_id"], made["model_id"], alpha))
    frame = pd.DataFrame(found, columns=["item", "agent", "score"]).dropna()
    assert orders("capitalbench") == shown(frame.groupby("agent").score.mean())
    frame["cluster"] = pd.to_datetime(frame["item"].str[3:13]).dt.strftime("%G-%V")
    assert f"{len(frame)} decisions in {frame['item'].nunique()}" in page("capitalbench")
    check_pairs("capitalbench", frame.pivot(index=["item", "cluster"], columns="agent", values="score").reset_index(),
                "points")  # fmt: skip


def _closes(text: str) -> pd.Series:
    found = pd.read_csv(io.StringIO(text or "option_id,adj_close\n"))
    return found.set_index("option_id").adj_close.astype(float)


@pytest.mark.shared
def test_alpha_arena_in_pandas(shared):
    with gzip.open(shared / "data" / "nof1" / "trades.json.gz", "rt") as stream:
        trades = pd.DataFrame(json.load(stream)["trades"])
    daily = trades.assign(day=trades.exit_human_time.str[:10]).pivot_table(
        index="day", columns="model_id", values="realized_net_pnl", aggfunc="sum", fill_value=0
    )
    closed = {row[0]: row[2] for row in cells("alpha-arena", "model | closed trades")}
    assert closed == {name: f"{daily[name].sum():,.0f}".replace("-", "−") for name in closed}
    check_pairs("alpha-arena", daily.reset_index(names="item").assign(cluster=daily.index), "USD a day")


@pytest.mark.shared
def test_ai_trader_in_pandas(shared, gallery):
    prices = pd.read_csv(shared / "data" / "aitrader" / "prices_us_hourly.csv.gz").set_index(["symbol", "ts"]).open
    rows = [row for row in lines(shared / "data" / "aitrader" / "decisions.jsonl.gz") if row["track"] == "agent_data"]
    value = pd.Series({
        (row["model"], row["step"]): sum(n if name == "CASH" else n * prices[name, row["step"]]
                                         for name, n in row["positions_after"].items() if n) for row in rows
    }).sort_index()  # fmt: skip
    daily = value.groupby(lambda key: (key[0], key[1][:10])).last()
    daily.index = pd.MultiIndex.from_tuples(daily.index)
    books = daily.unstack(0)
    ends = {row[0]: row[1] for row in cells("ai-trader", "model | return to 2025-11-07, %")}
    assert ends == shown(books.loc["2025-11-07"] / 100 - 100)
    published = pd.Series(gallery.AITRADER)
    assert orders("ai-trader") == shown(published)
    apart = (books.loc["2025-10-30"] / 100 - 100 - published).abs().max()
    assert f"within {apart:.2f} points of the published" in page("ai-trader")
    returns = pd.DataFrame({name: 100 * (books[name].dropna() / books[name].dropna().shift(fill_value=10_000) - 1)
                            for name in books})  # fmt: skip
    check_pairs("ai-trader", returns.reset_index(names="item").assign(cluster=returns.index), "points a day")


@pytest.mark.shared
def test_llmbar_in_pandas(shared):
    found = {}
    for subset in ("Natural", "Adversarial_Neighbor"):
        for judge in ("ChatGPT", "GPT-4"):
            with gzip.open(shared / "data" / "llmbar" / f"{subset}__{judge}__Vanilla.json.gz", "rt") as stream:
                for k, one in enumerate(json.load(stream)):
                    both = one["results"][0].values()
                    found[subset, judge, k] = [str(one["label"]) == order["winner"] for order in both]
    frame = pd.DataFrame.from_dict(found, orient="index", columns=["first", "second"])
    frame.index = pd.MultiIndex.from_tuples(frame.index, names=["subset", "judge", "item"])
    share = frame.mean(axis=1).sort_index()
    assert orders("llmbar") == shown(share.groupby("judge").mean(), ".3f")
    for subset, judge, *row in cells("llmbar", "subset | judge"):
        part = share[subset.replace(", ", "_"), judge]
        wanted = [part.mean(), *((part == value).mean() for value in (1, 0.5, 0))]
        assert [one.split()[0] for one in row[:4]] == [f"{100 * value:.1f}" for value in wanted]
    wide = share.unstack("judge").reset_index(drop=True)
    check_pairs("llmbar", wide.assign(item=wide.index, cluster=wide.index), "of calls")


@pytest.mark.shared
def test_position_bias_logs_in_pandas(shared):
    log = pd.read_csv(shared / "data" / "judge_verdicts" / "pba_full_verdicts.csv")
    log = log[log.bench == "MTBench"]
    won = log.verdict.map({"1": 1.0, "2": 0.0, "tie": 0.5})
    sides = pd.concat([won.groupby(log.slot1_model).agg(["sum", "count"]), (1 - won).groupby(log.slot2_model).agg(
        ["sum", "count"])]).groupby(level=0).sum()  # fmt: skip
    assert orders("position-bias-logs") == shown(sides["sum"] / sides["count"], ".3f")
    assert ((log.slot1_model == "vicuna-13b-v1.3") | (log.slot2_model == "vicuna-13b-v1.3")).all()
    keyed = log.assign(pair=[" ".join(sorted(both)) for both in zip(log.slot1_model, log.slot2_model, strict=True)],
                       winner=np.where(log.verdict == "1", log.slot1_model, np.where(
                           log.verdict == "2", log.slot2_model, log.verdict)))  # fmt: skip
    groups = ["judge", "question_id", "pair"]
    usable = keyed.verdict.isin(["1", "2", "tie"]).groupby([keyed[name] for name in groups]).transform("sum")
    seen = keyed[usable == 2].groupby(groups).agg(verdicts=("verdict", list), winners=("winner", "nunique"))
    for judge, of, text, place, first in cells("position-bias-logs", "judge | pairs in both orders"):
        verdicts = seen.loc[judge].verdicts
        same = verdicts.map(lambda one: one in (["1", "1"], ["2", "2"]))
        stable = seen.loc[judge].winners.eq(1) & verdicts.map(lambda one: "tie" not in one)
        assert (of, text, place) == (f"{len(verdicts):,}", f"{stable.mean():.1%}", f"{same.mean():.1%}")
        assert first == f"{verdicts[same].map(lambda one: one[0] == '1').mean():.1%}"
    assert {int(row[3]) for row in cells("position-bias-logs", "rank | system")} == {1}
