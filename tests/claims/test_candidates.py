from __future__ import annotations

from assaymark.claims import candidate_claims, suppressed_phrase
from assaymark.protocol import Claims


def test_default_candidates_cover_every_agent_and_pair_of_every_dimension():
    claims = candidate_claims(Claims(), ["b", "a", "c"], ["d1", "d2"], [])
    assert len(claims) == 3 * (3 + 3) + 3
    assert len({claim.id for claim in claims}) == len(claims)
    assert [claim.scope for claim in claims[:4]] == ["aggregate-ranking"] * 3 + ["pairwise-contrast"]
    assert [claim.id.partition("[")[0] for claim in claims[6:9]] == ["within"] * 3
    assert claims[9].scope == "dimension-ranking"


def test_a_pair_is_claimed_in_its_measured_direction():
    claims = candidate_claims(Claims(first=False), ["a", "b"], [], [("aggregate", "b", "a")])
    assert [claim.subjects for claim in claims] == [("b", "a")] * 2


def test_the_plan_may_narrow_the_list():
    claims = candidate_claims(Claims(pairs=False, dimensions=("d1",)), ["a", "b"], ["d1", "d2"], [])
    assert {(claim.dimension, len(claim.subjects)) for claim in claims} == {("d1", 1)}


def test_a_withheld_claim_never_states_its_order():
    claims = candidate_claims(Claims(), ["zeta", "alpha"], [], [("aggregate", "zeta", "alpha")])
    pair = next(claim for claim in claims if len(claim.subjects) == 2)
    assert "above" in pair.statement
    assert suppressed_phrase(pair) == "Any ranking of alpha and zeta on the overall score."
