"""The rules page says every field of a season file, in every language, and nothing of the machine."""

from __future__ import annotations

from types import UnionType
from typing import Union, get_args, get_origin

import pytest
from season_runs import season_text

from assaymark.claims import catalogue, languages
from assaymark.plan import Frozen
from assaymark.protocol import DatasheetLimits
from assaymark.workflow import tracks

PANEL = """
[[panel]]
name = "reader"
family = "north"
model = "reference/reader"
trials = 3
args = { noise = 0.5 }

[datasheets]
verbosity = 0.15
"""


def lines(text: str) -> dict[tuple[str, str], str]:
    return {(one.group, one.name): one.value for one in tracks.season_rules(tracks.parse_season(text))}


def fields(kind: type[Frozen], group: str = tracks.OWN) -> set[tuple[str, str]]:
    """Every field of the file with its table, by the types alone."""
    found = set()
    for name, field in kind.model_fields.items():
        union = get_origin(field.annotation) in (Union, UnionType)
        kinds = get_args(field.annotation) if union else (field.annotation,)
        inner = next((one for one in kinds if isinstance(one, type) and issubclass(one, Frozen)), None)
        if inner is None:
            found.add((group, field.alias or name))
        else:
            found |= fields(inner, name)
    return found


def test_every_field_has_a_line_and_no_line_has_no_field():
    found = set(lines(season_text() + PANEL))
    wanted = fields(tracks.Season) - {(tracks.OWN, name) for name in ("agents", "panel", "strategies")}
    assert wanted >= {("rules", "cost_bps"), ("judging", "alpha"), ("engine", "attempts"), ("datasheets", "slope")}
    assert found == wanted | {("agents", "one"), ("agents", "two"), ("panel", "reader")}
    assert {name for group, name in fields(tracks.Season) if group == "datasheets"} == set(DatasheetLimits.model_fields)


@pytest.mark.parametrize("language", languages())
def test_every_line_says_what_it_means(language):
    words = catalogue(language)
    for text in (season_text() + PANEL, season_text()):
        for one in tracks.season_rules(tracks.parse_season(text)):
            assert words.render(one.meaning).endswith("."), one
    strategies = season_text(prompt="").replace(
        "[[agents]]", "[strategies]\none = 'Buy.'\ntwo = 'Sell.'\n\n[[agents]]", 1
    )
    found = [one for one in tracks.season_rules(tracks.parse_season(strategies)) if one.group == "strategies"]
    assert [one.name for one in found] == ["one", "two"]
    assert len({one.value for one in found}) == 2
    assert words.render(found[0].meaning)


def test_values_stand_as_in_the_file():
    found = lines(season_text(rules="cost_bps = 2.5\nfractional = false\nfill = 'close'") + PANEL)
    assert found.items() >= {
        ("rules", "cost_bps"): "2.5", ("rules", "fractional"): "false", ("rules", "fill"): "close",
        ("rules", "max_weight"): "", ("season", "capital"): "100000", ("calendar", "decide_at"): "21:30:00",
        ("datasheets", "verbosity"): "0.15",
        ("panel", "reader"): 'model = "reference/reader", family = "north", trials = 3, args = { noise = 0.5 }',
    }.items()  # fmt: skip


def test_no_path_and_no_long_text_is_on_the_page():
    head = "market = {source = '/home/somebody/snapshots/spring-2024'}\nuniverse = ['AAA', 'BBB']"
    found = lines(season_text(head=head, prompt="A secret recipe. " * 40))
    assert found["market", "source"] == "spring-2024"
    assert found["season", "universe"] == "AAA, BBB"
    assert found["season", "prompt"].startswith("sha256 ")
    assert not any("secret" in value or "somebody" in value for value in found.values())


def test_what_only_our_broker_goes_by_is_not_said_of_records_of_others():
    season = tracks.parse_season(season_text())
    records = season.market.model_copy(update={"source": "records", "format": "aitrader", "track": "us"})
    found = {(one.group, one.name) for one in tracks.season_rules(season.model_copy(update={"market": records}))}
    assert found < set(lines(season_text()))
    assert not {("rules", "fill"), ("season", "bars"), ("market", "live"), ("calendar", "decide_at")} & found
    assert {("market", "format"), ("calendar", "first"), ("judging", "period"), ("season", "capital")} <= found
