"""The files of a season's site: valid feeds, a calendar, tables without hidden values, and states of the season."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from datetime import date
from email.utils import parsedate_to_datetime
from functools import cache
from io import StringIO
from xml.etree import ElementTree

import made_season as made
import pytest
from made_season import pages, site
from outline import words

from assaymark.report import season as season_pages

URL = "https://example.org/spring"


@cache
def whole() -> dict[str, str]:
    return site("short")


@cache
def hostile() -> dict[str, str]:
    return pages(replace(made.hostile_season(), url=URL), "en")


def published(run: season_pages.SeasonRun, day: str, **levels: str) -> dict:
    """A publication of an earlier day in which some claims, by the first word of what they are about, differ."""
    found = season_pages.verdict_records(season_pages.SeasonIndex.of(run, season_pages.Language(made.made_catalogue())))
    for line in found["verdicts"]:
        if (level := levels.get(line["about"].partition(":")[0])) is not None:
            line |= {"level": level, "sentence": "SAID THEN", "condition": "", "not_supported": "What it was about"}
    return found | {"day": day}


@pytest.mark.parametrize(("made_site", "folder"), [(whole, ""), (whole, "de/"), (hostile, "")])
def test_feeds_are_valid(made_site, folder):
    root = ElementTree.fromstring(made_site()[f"{folder}feed.xml"])
    assert (root.tag, root.attrib["version"]) == ("rss", "2.0")
    (channel,) = root
    assert re.match(r"https?://|urn:", channel.findtext("link"))
    assert channel.findtext("title")
    assert channel.findtext("description")
    items = channel.findall("item")
    assert len({one.findtext("guid") for one in items}) == len(items) > 3
    assert all(one.findtext("title") and parsedate_to_datetime(one.findtext("pubDate")) for one in items)
    assert all(one.findtext("link", URL).startswith(URL) for one in items)
    feed = json.loads(made_site()[f"{folder}feed.json"])
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert [one["id"] for one in feed["items"]] == [one.findtext("guid") for one in items]
    assert all(one["content_text"] and one["title"] for one in feed["items"])


def test_a_feed_has_every_day_and_every_change_of_the_verdicts_newest_first():
    run = made.made_season(8, 6)
    now = published(run, run.last)
    before = published(run, "2026-01-09", first="no-claim", band="no-claim")
    found = pages(replace(run, publications=(before, now)), "en")
    titles = [one["title"] for one in json.loads(found["feed.json"])["items"]]
    assert next(title for title in titles if title.startswith("Decisions")) == "Decisions of 12 January 2026"
    assert sum(title.startswith("Verdicts after") for title in titles) == 2
    archive = words(found["archive.html"])
    assert "“Alder scores highest.”" in archive
    assert "First publication." in archive
    assert set(re.findall(r'href="(archive/[^"]+)"', found["archive.html"])) <= found.keys()
    assert json.loads(found["archive/001-2026-01-09.json"]) == before


def test_a_sentence_of_before_is_not_said_again_once_it_is_not_supported():
    run = made.made_season(8, 6)
    then = published(run, "2026-01-08", beats="headline")
    found = pages(replace(run, publications=(published(run, "2026-01-07"), then, published(run, run.last))), "en")
    for name in ("feed.xml", "feed.json", "archive.html"):
        assert "SAID THEN" not in found[name]
    assert "Supported then, not now: " in words(found["archive.html"])
    assert "No longer supported: " in words(found["archive.html"])


def test_files_hold_no_total_of_an_agent_that_shares_its_tier_and_no_sentence_that_is_not_supported():
    run = made.made_season(8, 6)
    rows = {row["agent"]: row for row in csv.DictReader(StringIO(whole()["standings.csv"]))}
    totals = {row.contestant: row.total for row in run.table}
    for place in run.decided.places:
        shown = rows[place.agent]["total"]
        assert (float(shown) == totals[place.agent]) if place.shown and totals[place.agent] else shown == ""
    text = made.made_catalogue()
    for one in run.decided.verdicts:
        if one.verdict.publication_level == "no-claim" and one.withheld != one.statement:
            said = text.render(one.statement)
            assert not [name for name, file in whole().items() if said in file and not name.startswith("de/")]
    lines = json.loads(whole()["verdicts.json"])["verdicts"]
    assert len(lines) == len(run.decided.verdicts)
    assert all(("sentence" in line) == (line["level"] != "no-claim") for line in lines)
    steps = list(csv.DictReader(StringIO(whole()["decisions.csv"])))
    assert len(steps) == sum(map(len, run.steps.values()))


@pytest.mark.parametrize("made_site", [whole, hostile])
def test_the_share_picture_has_a_supported_sentence_with_all_of_its_condition(made_site):
    root = ElementTree.fromstring(made_site()["share.svg"])
    said = " ".join(one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "“Alder scores highest.”" in said or made_site is hostile
    assert "foreignObject" not in made_site()["share.svg"]
    (claim,) = re.findall(r'property="og:description" content="([^"]*)"', made_site()["index.html"])
    assert claim
    (picture,) = re.findall(r'property="og:image" content="([^"]*)"', made_site()["index.html"])
    assert picture == ("" if made_site is whole else f"{URL}/") + season_pages.preview_name()
    none = pages(made.made_season(3, 4, 1), "en")["share.svg"]
    assert "No claim is supported yet." in none
    assert "<circle" not in none


def test_the_picture_that_previews_show_is_a_png_of_their_size(tmp_path):
    if season_pages.preview_name() == "share.svg":
        pytest.skip("no font is installed, so the picture of previews is the drawing")
    season_pages.write_site(
        made.made_season(2, 3), tmp_path / "site", [made.made_catalogue(code) for code in ("en", "de")]
    )
    for folder in ("", "de/"):
        head = (tmp_path / "site" / f"{folder}share.png").read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:])) == (1200, 630)


def test_a_season_that_runs_says_when_it_is_decided_next():
    run = made.made_season(2, 6)
    run = made.planned(run, calendar=run.plan.calendar.model_copy(update={"last": date(2026, 1, 30)}))
    ahead = {"planned": 20, "decided_at": "2026-01-12T21:30:00+00:00"}
    market = run.plan.market.model_copy(update={"live": True})
    live = pages(made.planned(replace(run, **ahead, next_decision="2026-01-13T21:30:00+00:00"), market=market), "en")
    first = words(live["index.html"])
    for text in (
        "day 6 of 20", "Next decision 13 January 2026, 21:30 UTC", "Last decision 12 January 2026, 21:30 UTC",
        "Running. Day 6 of 20.",
    ):  # fmt: skip
        assert text in first
    assert '<time datetime="2026-01-13T21:30:00+00:00">' in live["index.html"]
    scripts = re.findall(r"<script>(.*?)</script>", live["index.html"], re.DOTALL)
    assert sum(len(one.encode()) for one in scripts) <= 9_000
    assert "dateTime" in "".join(scripts)
    event = dict(line.split(":", 1) for line in live["calendar.ics"].split("\r\n") if line)
    assert (event["DTSTART"], event["END"]) == ("20260113T213000Z", "VCALENDAR")
    assert event["RRULE"].endswith("UNTIL=20260130T213000Z")
    stopped = words(pages(replace(run, **ahead), "en")["index.html"])
    assert "Stopped. Day 6 of 20." in stopped
    assert "resume with assaymark season run" in stopped
    fewer = replace(run, steps={name: steps[:4] for name, steps in run.steps.items()})
    assert "Partial. 8 of 12 decisions are recorded." in words(pages(fewer, "en")["index.html"])
    assert "progress" not in pages(run, "en")["index.html"].partition("<main")[2]


def test_the_method_is_told_with_its_limits_in_every_language():
    english, german = words(whole()["method.html"]), words(whole()["de/method.html"])
    for title in ("What do these numbers not show?", "How can it go wrong?", "How is a claim decided?"):
        assert title in english
    assert "Wie kann es fehlgehen?" in german
