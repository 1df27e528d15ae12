"""Control cells judged by panels like ValueBlindBench's (section 5.5): what the judges agree on may be published.

The judges agree well (kappa of honest records about .7), confident but wrong texts score 2.9 points below the honest
mean and terse but right ones 2.8. Inside a cell there is no spread to agree on, so agreement is asked about the
difference. Then one property of the panel at a time is changed, and the verdict on the cell has to follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from assaymark.claims import decide_claims
from assaymark.metrology import ControlCell, ScoreTable, analyse, cell_measurements, table_from_arrow
from assaymark.protocol import Study, parse_study
from assaymark.records import Measurement, Verdict

JUDGES = {"claude-judge": "anthropic", "gpt-judge": "openai", "gemini-judge": "google"}
FAMILIES = tuple(JUDGES.values())
AGENTS = {"claude": 0.2, "gemini": -0.06, "gpt": -0.08, "qwen3": -0.06}
DIMENSIONS = tuple(f"d{k}" for k in range(6))
REGIMES, CYCLES, TEXTS = 5, 20, 50
HONEST, WRONG, TERSE = 4.35, 1.44, 1.54


@dataclass(frozen=True)
class Panel:
    """Three judges: how much of a record's quality each misses, and what each adds to the texts of a cell."""

    noise: float = 0.22
    extra: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    families: Sequence[str] = FAMILIES
    terse: float = TERSE

    def study(self) -> Study:
        judges = "".join(
            f'[[judges]]\nname = "{name}"\nmodel = "made/{name}"\nfamily = "{family}"\n'
            for name, family in zip(JUDGES, self.families, strict=True)
        )
        return parse_study(f'name = "paper-like"\nseed = 1\n{judges}')

    def table(self, names: Mapping[str, Sequence[object]], quality: np.ndarray, extra: Mapping[str, float], rng):
        """Whole scores 1 to 5 of every judge on records of this quality [n, dimensions]."""
        parts = []
        for judge, family in zip(JUDGES, self.families, strict=True):
            error = rng.normal(0, self.noise, (len(quality), 1)) + rng.normal(0, 0.3, quality.shape)
            scores = np.clip(np.floor(quality + extra.get(family, 0.0) + error + 0.5), 1, 5)
            columns = {"judge": [judge] * len(quality), "family": [family] * len(quality), "trial": [1] * len(quality)}
            parts.append(pa.table({**names, **columns, **dict(zip(DIMENSIONS, scores.T, strict=True))}))
        return table_from_arrow(pa.concat_tables(parts), dimensions=DIMENSIONS)

    def honest(self, rng: np.random.Generator) -> ScoreTable:
        keys = list(product(AGENTS, range(REGIMES), range(CYCLES)))
        common = rng.normal(0, 0.6, (len(keys), 1)) + np.array([[AGENTS[agent]] for agent, _, _ in keys])
        names = {
            "trajectory": [f"{a}/{r}/{c}" for a, r, c in keys],
            "agent": [a for a, _, _ in keys],
            "cluster": [f"regime-{r}" for _, r, _ in keys],
            "cycle": [f"{r}#{c}" for _, r, c in keys],
        }
        return self.table(names, HONEST + common + rng.normal(0, 0.3, (len(keys), len(DIMENSIONS))), {}, rng)

    def cell(self, kind: str, mean: float, rng: np.random.Generator) -> ControlCell:
        names = {
            "trajectory": [f"{kind}/{k}" for k in range(TEXTS)],
            "agent": [f"{kind}-writer"] * TEXTS,
            "cluster": [f"regime-{k % REGIMES}" for k in range(TEXTS)],
            "cycle": [f"{kind}#{k}" for k in range(TEXTS)],
        }
        quality = np.full((TEXTS, len(DIMENSIONS)), mean)
        found = self.table(names, quality, self.extra.get(kind, {}), rng)
        return ControlCell(kind, found, (None,) * found.n, ("anthropic",) * found.n)

    def judged(self, seed: int) -> tuple[dict[str, Verdict], dict[str, Measurement]]:
        """Verdicts and measurements of a study with both cells, from the scores on."""
        rng = np.random.default_rng(seed)
        study, honest = self.study(), self.honest(rng)
        cells = [self.cell("cell_a", WRONG, rng), self.cell("cell_b", self.terse, rng)]
        found = [*analyse(honest, study, rng=rng), *cell_measurements(honest, cells, study)]
        cells = [
            one for one in decide_claims(found, study, "0" * 64, variants=False) if one.claim.id.startswith("cell[")
        ]
        return {one.claim.subjects[0]: one for one in cells}, {one.id: one for one in found}


KAPPA = "kappa.mean_pairwise[dimension=aggregate]"


def states(one: Verdict) -> tuple[str, ...]:
    return one.agreement_status, one.stability_status, one.adversarial_status, one.publication_level


@pytest.mark.parametrize("seed", range(6))
def test_both_findings_about_the_cells_are_published(seed):
    verdicts, found = Panel().judged(seed)
    assert found[KAPPA].value == pytest.approx(0.7, abs=0.1)
    # Whatever the judges do, there is nothing to agree about within a cell.
    assert abs(found["cell.kappa[cell=cell_b,dimension=aggregate]"].value) < 0.25
    assert found["cell.gate[cell=cell_b]"].value == pytest.approx(TERSE - HONEST, abs=0.2)
    for cell, words in (("cell_a", "below the bottom quartile"), ("cell_b", "more than 0.5 points below honest ones")):
        assert states(verdicts[cell]) == ("publish", "stable", "passed", "headline")
        assert words in verdicts[cell].claim.statement
        assert found[f"cell.agreement[cell={cell}]"].detail["unanimous"]


@pytest.mark.parametrize("seed", range(3))
def test_that_brevity_costs_nothing_is_published_where_every_judge_shows_it(seed):
    """Equivalence for every family, both ways: not merely a penalty that was not found.
    Kappa is below that of a large difference: half of its weight lies on texts that deserve one score."""
    verdicts, found = Panel(terse=HONEST).judged(seed)
    assert found["cell.gate[cell=cell_b]"].detail["outcome"] == "substance"
    agreement = found["cell.agreement[cell=cell_b]"]
    assert agreement.detail["unanimous"]
    assert 0.2 < agreement.value < found[KAPPA].value
    assert verdicts["cell_b"].stability_status == "stable"
    assert verdicts["cell_b"].publication_level != "no-claim"
    assert "within 0.3 points" in verdicts["cell_b"].claim.statement


def test_that_brevity_costs_nothing_is_no_claim_where_judges_disagree_and_cancel():
    """One judge marks terse texts down by .8, one up: the panel's mean is that of honest records."""
    verdicts, found = Panel(terse=HONEST - 0.3, extra={"cell_b": {"anthropic": -0.5, "openai": 0.7}}).judged(1)
    assert found["cell.gate[cell=cell_b]"].detail["outcome"] == "substance"
    assert states(verdicts["cell_b"])[::3] == ("halt", "no-claim")


@pytest.mark.parametrize(("kind", "other"), [("cell_a", "cell_b"), ("cell_b", "cell_a")])
def test_a_family_that_alone_does_not_see_a_cell_leaves_it_qualified_and_one_that_alone_sees_it_nothing(kind, other):
    """Unanimity is broken, but the others show it without any one family."""
    verdicts, found = Panel(extra={kind: {"google": 2.7}}).judged(2)
    assert found[f"cell.agreement[cell={kind}]"].detail["each"]["google"] > -0.5
    assert states(verdicts[kind])[::3] == ("methodology", "qualified")
    assert (verdicts[kind].stability_status, verdicts[other].agreement_status) == ("stable", "publish")
    verdicts, found = Panel(extra={kind: {"google": 2.8, "openai": 2.8}}).judged(3)
    assert not found[f"cell.agreement[cell={kind}]"].detail["leave_one_out"]
    assert states(verdicts[kind])[::3] == ("halt", "no-claim")
    assert verdicts[kind].stability_status == "judge-dependent"


def test_judges_of_the_cells_own_maker_who_favour_it_are_left_out_and_named():
    """A halo of 1.5 points: the family still sees the difference, and the number is without it."""
    verdicts, found = Panel(extra={"cell_b": {"anthropic": 1.5}}).judged(4)
    assert found["cell.halo[cell=cell_b]"].value == pytest.approx(0.5, abs=0.1)
    assert states(verdicts["cell_b"]) == ("publish", "stable", "construct-sensitive", "qualified")
    assert "family anthropic" in verdicts["cell_b"].condition


def test_judges_without_a_common_view_of_honest_records_still_agree_on_a_large_difference():
    """Kappa of honest records is near 0 and halts every order; over cell and honest records it is that of the cell."""
    verdicts, found = Panel(noise=1.2).judged(5)
    assert found[KAPPA].value < 0.3
    assert {one.publication_level for one in verdicts.values()} == {"headline"}
    alone, _ = Panel(families=("anthropic",) * 3).judged(0)
    assert {one.publication_level for one in alone.values()} == {"no-claim"}, "one judge family can publish nothing"
