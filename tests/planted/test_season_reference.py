"""A whole season, run and judged by reference models: what is planted in its judges is what is measured of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from season_runs import NOW, begun, market, stored

from assaymark.cli import models
from assaymark.records import Measurement
from assaymark.workflow import Store, tracks

STYLES = ("alder", "birch", "cedar", "dogwood", "alder")
FAMILIES = ("north", "north-east", "north-west", "far", "north")
AGENTS = ("momentum", "equal-weight", "contrarian", "minimum-variance", "steward")
SLOPE, PREFERENCE, NOISE, TRIALS = 30.0, 15.0, 4.0, 6
KNOWS = ", ".join(f"{style}={agent}" for style, agent in zip(STYLES[:4], AGENTS[:4], strict=True))

JUDGES = {
    "plain": ("west", "noise = 0.0, slope = 0.0", 1),
    "wordy": ("east", f"noise = 0.0, slope = {SLOPE}", 1),
    "kin": ("north", f'noise = 0.0, slope = 0.0, preference = {PREFERENCE}, kin = "alder"', 1),
    "shaky": ("south", f"noise = {NOISE}, slope = 0.0", TRIALS),
    "knowing": ("middle", f'noise = 0.0, slope = 0.0, knows = "{KNOWS}"', 1),
    "calm": ("centre", "noise = 0.0, slope = 0.0, pivot = 50.0", 1),
}
"""Name to family, planted properties and trials. All six have the opinions of one and the same judge.

Nothing is planted in plain, knowing and calm, so that the median of the others is theirs whoever is measured.
"""


def _season(market_folder: str) -> str:
    """Five agents, each with a style and a family of its own, but for the two of the north."""
    agents = "".join(
        f'\n[[agents]]\nname = "{name}"\nfamily = "{family}"\nmodel = "reference/{name}"\n'
        f'args = {{ style = "{style}" }}\n'
        for name, family, style in zip(AGENTS, FAMILIES, STYLES, strict=True)
    )
    panel = "".join(
        f'\n[[panel]]\nname = "{name}"\nfamily = "{family}"\nmodel = "reference/season-auditor"\n'
        f"trials = {trials}\nargs = {{ offset = 0.0, {planted} }}\n"
        for name, (family, planted, trials) in JUDGES.items()
    )
    return f"""
version = "2"
name = "planted"
prompt = "Grow the book."
universe = 4
[calendar]
first = 2024-01-29
last = 2024-03-15
[market]
source = "{market_folder}"
{agents}{panel}"""


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> tuple[tracks.SeasonMaterial, dict[str, Measurement]]:
    """What was recorded, and what is measured."""
    path = tmp_path_factory.mktemp("planted")
    folder = begun(path / "run", _season(str(stored(path / "m", market()))), models())
    tracks.run_season(folder, models(), now=NOW)
    tracks.judge_season(folder, models())
    material = tracks.season_material(folder)
    found, _ = tracks.season_findings(
        material, tracks.SeasonJudgments.read(Store(folder)), rng=np.random.default_rng(1)
    )
    return material, {one.id: one for one in found}


def test_self_preference_is_recovered(season):
    """15 points on every grade of two agents: nine tenths of it, without the outcome, less what the ledger caps."""
    _, found = season
    kin = found["season.self_preference[judge=kin]"]
    assert (kin.n, kin.n_of, kin.detail["agents"]) == (7, "periods", 2)
    assert kin.value == pytest.approx(0.85 * PREFERENCE, abs=1.5)
    assert kin.low is not None
    assert kin.low > 0


def test_verbosity_is_recovered(season):
    """30 points for 100 tokens a step: as many for each doubling as that makes of the lengths that were written."""
    material, found = season
    tokens = tracks.words_written(material)
    agents = sorted({agent for agent, _ in tokens})
    x = np.log2([tokens[key] for key in tokens])
    y = np.array([SLOPE * tokens[key] / 100 for key in tokens])
    who = np.array([agents.index(agent) for agent, _ in tokens])
    for values in (x, y):
        values -= (np.bincount(who, weights=values) / np.bincount(who))[who]
    expected = float(x @ y / (x @ x))
    wordy = found["season.verbosity[judge=wordy]"]
    assert wordy.value == pytest.approx(expected, rel=0.25)
    assert wordy.low is not None
    assert wordy.low > 0
    plain = found["season.verbosity[judge=plain]"]
    assert plain.value is not None
    assert abs(plain.value) < expected / 5


def test_noise_is_recovered(season):
    """Within three standard errors of a standard deviation from so many differences."""
    _, found = season
    shaky = found["season.judge_noise[judge=shaky]"]
    freedom = shaky.detail["freedom"]
    assert freedom == len(AGENTS) * (TRIALS - 1)
    assert shaky.value == pytest.approx(NOISE, rel=3 / math.sqrt(2 * freedom))
    assert found["season.judge_noise[judge=plain]"].state == "no replicates"


def test_a_judge_that_knows_styles_is_found_and_the_others_are_not(season):
    """It takes one of the two agents of one style for the other, always, and knows the rest."""
    _, found = season
    knowing = found["season.author_probe[judge=knowing]"]
    assert {hits / n for hits, n in knowing.detail["by"].values()} == {0.0, 1.0}
    assert found["season.author_probe[judge=knowing]"].detail["state"] == "above chance"
    assert found["season.author_probe[judge=plain]"].detail["state"] == "not above chance"
