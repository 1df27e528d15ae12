"""A certificate checked: its numbers from its tables, and its verdict from its numbers, without any text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assaymark.claims.candidates import cell_claim, direction, first_claim, kind_of, pair_claim, within_claim
from assaymark.claims.certificates import Findings, Verification, compare_verdicts
from assaymark.claims.evidence import Index, index
from assaymark.claims.orders import Row, row_of
from assaymark.claims.panel import cell_state
from assaymark.claims.reading import SOURCE, Read, read_certificate
from assaymark.claims.recompute import Recomputation
from assaymark.claims.season_certificate import FORMAT as SEASON
from assaymark.claims.season_certificate import verify_season
from assaymark.claims.verdicts import decide
from assaymark.errors import AssayError, InputError, Problem
from assaymark.records import AGGREGATE, JSON, Claim


def verify(certificate: Mapping[str, JSON]) -> Verification:
    """Recompute a certificate from the tables in it, and say what differs (ValueBlindBench section 3.8)."""
    if isinstance(certificate, Mapping) and certificate.get("format") == SEASON:
        return verify_season(certificate)
    read = read_certificate(certificate)
    found = Findings()
    again = Recomputation(read, found)
    items = again.cells([again.one(item) for item in read.measurements])
    again.halos(items)
    again.drops(items)
    found.given("the rules, judges, agents and dimensions, which the hash of the plan stands for, are")
    study, others = read.certificate.study, read.certificate.other_pairs
    try:
        known = index(
            items,
            families=study.families,
            agents=study.agents,
            dimensions=study.dimensions,
            tests=frozenset() if others is None else frozenset(others.tests),
        )
        known = replace(known, rows=_rows(read, known, found), memo={})
        stated, rules = read.certificate.verdict, read.certificate.rules
        verdict = decide(_claim_again(read, known), known, rules, stated.plan_hash, amended=stated.amended)
        found.compare("scope in the tuple", read.certificate.claim_scope, verdict.claim.scope)
        compare_verdicts(stated, verdict, found)
    except AssayError as exc:
        raise InputError(SOURCE, [Problem("", f"lacks what its claim rests on: {exc}")]) from None
    return Verification(not found.differences, tuple(found.differences), tuple(found.notes))


def _rows(read: Read, known: Index, found: Findings) -> dict[str, tuple[Row, ...]]:
    """Every pair as the order procedure sees it: those of the claim from their measurements, the others as stated."""
    stated = read.certificate.other_pairs
    rows: dict[str, tuple[Row, ...]] = {}
    for scale in (AGGREGATE, *read.certificate.study.dimensions):
        if stated is None or scale not in stated.scales:
            continue
        left, columns = read.others(scale), stated.scales[scale]
        if columns is None:
            other = {pair: Row(*pair, testable=False, p={}) for pair in left}
        else:
            other = dict(zip(left, columns.rows(left), strict=True))
        if other:
            found.given("p-values of the pairs that the claim is not about are")
        rows[scale] = tuple(other.get(pair) or row_of(known, known.contrast(scale, *pair)) for pair in read.pairs)
    return rows


def _claim_again(read: Read, known: Index) -> Claim:
    """The claim as it is put on these measurements: its kind, dimension and subjects decide all its words."""
    claim, rules = read.certificate.verdict.claim, read.certificate.rules
    dimension, subjects, kind = claim.dimension, claim.subjects, kind_of(claim)
    if kind == "first":
        return first_claim(dimension, subjects[0], len(known.agents))
    if kind == "cell":
        return cell_claim(cell_state(claim, known), rules.cells)
    pair = direction(dimension, subjects[0], subjects[1], known)
    return within_claim(*pair, rules.margin) if kind == "within" else pair_claim(dimension, *pair)
