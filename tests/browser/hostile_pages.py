"""Pages of every track in which whatever comes from outside tries to run, to load, to break out, or to be endless."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

import assay_runs
import bench_runs
import full_runs
import judged_sheets
import made_season
import test_agents_section
from browsing import write_pages

from assaymark.report import portbench, render_comparison, render_datasheet, render_pages
from assaymark.report import season as season_pages

FIRES: Final = "window.__canary=1"
_AWAY: Final = "//canary.invalid/"

# Names are cut after some 60 characters, so what comes first in each of them counts most.
PAYLOADS: Final[Mapping[str, str]] = {
    "elements": (
        f"</p><script>{FIRES}</script><img src=x onerror={FIRES}></script></style></title></textarea></svg></pre>"
        f"<svg onload={FIRES}><script>{FIRES}</script><animate onbegin={FIRES} attributeName=x dur=1s></svg>"
        f"<details open ontoggle={FIRES}><iframe srcdoc='<script>parent.{FIRES}</script>'></iframe>"
        f"<meta http-equiv=refresh content='0;url={_AWAY}'><link rel=stylesheet href={_AWAY}a.css><base href={_AWAY}>"
        f"<style>@import '{_AWAY}b.css';body{{display:none}}</style><object data={_AWAY}></object>"
    ),
    "attributes": (
        f'" autofocus onfocus="{FIRES}" style="position:fixed;inset:0" x="\' onmouseover=\'{FIRES}\' tabindex=0 y=\''
        f"` onclick={FIRES} javascript:{FIRES}// <a href=javascript:{FIRES}>x</a> data:text/html,<script>{FIRES}"
    ),
    "ends": (
        f"--><script>{FIRES}</script><!-- ]]><script>{FIRES}</script> {{{{ 7*7 }}}}{{% raw %}} &lt;b&gt; \\u003cscript>"
        "\u202e\u2066\u2067\u061c\ufeff\u200b\u2060\u00ad\U000e0041\x00\x07\x1b[31m\x85\u2028\ud800 " + "W" * 3000
    ),
}

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\u00ad\u200b-\u200d\u2060-\u2064\U000e0000-\U000e007f]"
)
_POLICY: Final = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>\n?')


def hostile_pages(root: Path, payload: str) -> None:
    """Studies, benchmarks, datasheets and a season with a payload wherever a text of somebody else stands."""
    with (
        patch.object(assay_runs, "CANARY", payload), patch.object(bench_runs, "HOSTILE", payload),
        patch.object(judged_sheets, "HOSTILE", payload), patch.object(made_season, "HOSTILE", payload),
    ):  # fmt: skip
        write_pages(root / "study", render_pages(assay_runs.hostile.__wrapped__()))
        whole = full_runs.hostile_full.__wrapped__()
        write_pages(root / "full", render_pages(replace(whole, evidence=whole.evidence[:40])))
        write_pages(root / "agents", render_pages(test_agents_section.hostile()))
        write_pages(root / "benchmark", portbench.render_benchmark(bench_runs.hostile.__wrapped__()))
        sheets = (judged_sheets.hostile(), judged_sheets.quay())
        write_pages(root / "judges", render_comparison(sheets))
        for sheet in sheets:
            write_pages(root / "judges", render_datasheet(sheet, sheets))
        season_pages.write_site(made_season.hostile_season(), root / "season", [made_season.made_catalogue("en")])


def unseen(text: str) -> set[str]:
    """Characters that are not seen and change how others are read, as they stand in a page."""
    return {f"U+{ord(one):04X}" for one in _UNSEEN.findall(text)}


def without_policy(text: str) -> str:
    """A page as it would be if nobody had thought of a policy."""
    return _POLICY.sub("", text)
