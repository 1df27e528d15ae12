"""Real logs of seven models as horizons: no name gets through, and every step is shown."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from assaymark.importers import import_aitrader
from assaymark.judging import StepRecord, horizon_of
from assaymark.judging import season as judging_season
from assaymark.prompting import judged_rationales

pytestmark = pytest.mark.shared

NAMES = re.compile(
    r"claude|gemini|gpt|deepseek|qwen|glm|minimax|anthropic|open ?ai|alibaba|zhipu|google", re.IGNORECASE
)


def test_no_model_and_no_maker_gets_through(shared):
    folder = shared / "data" / "aitrader"
    found = import_aitrader({path.name: path.read_bytes() for path in folder.iterdir()})
    agents = [decision.agent for decision in found.decisions]
    runs = defaultdict(list)
    for decision in found.decisions:
        runs[decision.episode_id, decision.agent.id].append(decision)
    replaced: Counter[str] = Counter()
    said = stayed = 0
    for decisions in runs.values():
        said += sum(len(NAMES.findall(text.text)) for one in decisions for text in judged_rationales(one))
        records = [StepRecord(day=f"{one.decided_at:%Y-%m-%d %H:%M}", decision=one) for one in decisions]
        shown = horizon_of(records, found.contexts, agents=agents)
        parts = judging_season.split_horizon(shown)
        stayed += sum(line.count for line in shown.audit if line.state == "kept")
        replaced.update({line.name: line.count for line in shown.audit if line.state == "replaced"})
        held = records[0].decision.episode_id == "us"  # Google is among its shares
        kept = {line.name for line in shown.audit if line.state == "kept"}
        assert kept <= ({"Google"} if held else set())
        for part in parts:
            left = [name for name in NAMES.findall(part.body.text) if not (held and name == "Google")]
            assert not left
        assert sum(len(judging_season.read_steps(part.body.text)) for part in parts) == len(decisions)
    assert said > 0
    assert sum(replaced.values()) >= said - stayed > 0
    assert stayed == 13
