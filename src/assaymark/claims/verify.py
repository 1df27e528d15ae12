"""A certificate checked: its numbers from its tables, and its verdict from its numbers, without any text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assaymark.claims.candidates import (
    cell_claim,
    first_claim,
    kind_of,
    measured_order,
    pair_claim,
    ranking_claim,
    tie_claim,
)
from assaymark.claims.cell_verdicts import cell_state
from assaymark.claims.evidence import HOLM_FIELDS, Index, family_of, index
from assaymark.claims.pairs import classes_of, direction
from assaymark.claims.reading import SOURCE, Certificate, Read, read_certificate
from assaymark.claims.recompute import Findings, about, cells_again, drops_again, halos_again, recompute
from assaymark.claims.verdicts import decide
from assaymark.errors import AssayError, InputError, Problem
from assaymark.records import JSON, Claim, Verdict


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate's verdict follows from its own tables.

    ``differences`` say in words what does not; ``notes`` what the tables cannot show and was taken as given.
    """

    ok: bool
    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()


def verify(certificate: Mapping[str, JSON]) -> Verification:
    """Recompute a certificate from the tables in it, and say what differs (ValueBlindBench section 3.8).

    Each kappa is computed again from its contingency tables, each contrast, probe and control cell from its cluster
    sums, Holm over the stated family; then the claim is decided again on those numbers, and its tuple, reasons,
    condition and fragility are compared with the stated ones. Tests that need random draws (the bootstrap above 8
    clusters, the sign flip above 16) and intervals of kappa are taken as given, and ``notes`` say so. That the tables
    are those of the plan's records is not for a certificate to show: compare its plan hash with the lock.

    Parameters
    ----------
    certificate : mapping of str to JSON
        As `certificate` makes it, or as read from its file.

    Returns
    -------
    Verification

    Raises
    ------
    InputError
        Not a certificate: fields are missing, unknown or of the wrong kind, or it lacks a measurement that its claim
        rests on. All problems at once.

    Examples
    --------
    >>> from assaymark.errors import InputError
    >>> try:
    ...     verify({"format": "assaymark certificate 1"})
    ... except InputError as error:
    ...     print(error.problems[0])
    format: input should be 'assaymark certificate 2' (got 'assaymark certificate 1')
    """
    read = read_certificate(certificate)
    rules = read.certificate.rules
    found = Findings()
    items = [recompute(item, rules, found) for item in read.measurements]
    items = cells_again(items, rules, found)
    halos_again(items, found)
    drops_again(items, rules, found)
    known = index(items, read.elsewhere)
    try:
        _compare_family(read, known, found)
        _compare_verdict(read.certificate, known, found)
    except AssayError as exc:
        raise InputError(SOURCE, [Problem("", f"lacks what its claim rests on: {exc}")]) from None
    return Verification(not found.differences, tuple(found.differences), tuple(found.notes))


def _compare_family(read: Read, known: Index, found: Findings) -> None:
    """Holm-adjusted p-values of the listed contrasts, in the family that the certificate states."""
    family, claim = read.certificate.holm_family, read.certificate.claim
    if family is None:
        return
    members = known.members(family.name)
    found.compare("Holm family", family.name, family_of(claim.dimension))
    for test, p in family.elsewhere.items():
        found.compare(f"size of the Holm family ({test})", family.size, len(members) + len(p))
    for key in members:
        item = known.contrasts[key].measurement
        for test in family.measured:
            stated = item.detail.get(HOLM_FIELDS[test])
            if stated is not None:
                adjusted = known.adjusted(key[0], item.labels["high"], item.labels["low"], test)
                found.compare(f"p of the {about(item)} after Holm ({test})", stated, adjusted)


def _compare_verdict(stated: Certificate, known: Index, found: Findings) -> None:
    """The verdict on the recomputed numbers against the stated one."""
    rules = stated.rules.rules
    claim = _claim_again(stated, known)
    if claim is None:
        found.differences["the agents of the claim form no class on the certificate's own numbers"] = None
        return
    again = decide(claim, known, rules, stated.plan_hash, amended=stated.amended)
    for name, one, other in _fields(stated, again):
        found.compare(name, one, other)
    _compare_lists("reasons", stated.reasons, again.reasons, found)
    _compare_lists("binding fields", stated.binding, again.binding, found)
    _compare_lists("measurements it rests on", stated.rests_on, again.measurements, found)
    _compare_lists("amended fields", stated.amended, again.amended, found)
    for rule in dict.fromkeys([*stated.fragility, *again.fragility]):
        found.compare(f"level under {rule}", stated.fragility.get(rule), again.fragility.get(rule))


def _fields(stated: Certificate, again: Verdict) -> list[tuple[str, JSON, JSON]]:
    one, other = stated.claim, again.claim
    return [
        ("claim id", one.id, other.id),
        ("statement", one.statement, other.statement),
        ("dimension", one.dimension, other.dimension),
        ("subjects", ", ".join(one.subjects), ", ".join(other.subjects)),
        ("whether an order is asserted", one.asserts_order, other.asserts_order),
        ("scope", one.scope, other.scope),
        ("scope in the tuple", stated.stated.claim_scope, other.scope),
        ("agreement", stated.stated.agreement_status, again.agreement_status),
        ("stability", stated.stated.stability_status, again.stability_status),
        ("adversarial", stated.stated.adversarial_status, again.adversarial_status),
        ("publication level", stated.stated.permitted_publication_level, again.publication_level),
        ("condition", stated.condition, again.condition),
    ]


def _compare_lists(what: str, stated: Sequence[str], found: Sequence[str], findings: Findings) -> None:
    if list(stated) == list(found):
        return
    for at in range(max(len(stated), len(found))):
        one, other = (side[at] if at < len(side) else None for side in (stated, found))
        findings.compare(what, one, other)


def _claim_again(stated: Certificate, known: Index) -> Claim | None:
    """The claim as it is put on these measurements: its kind, dimension and subjects decide all its words."""
    claim = stated.claim
    kind, dimension, subjects = kind_of(claim), claim.dimension, claim.subjects
    if kind == "first":
        return first_claim(dimension, subjects[0], len(known.agents))
    if kind == "pair":
        return pair_claim(dimension, *direction(dimension, subjects[0], subjects[1], known))
    if kind == "ranking":
        return ranking_claim(dimension, measured_order(dimension, known))
    if kind == "cell":
        return cell_claim(cell_state(claim, known), stated.rules.cells)
    groups = classes_of(dimension, known, stated.rules.rules)
    group = next((one for one in groups if set(one.agents) == set(subjects)), None)
    return None if group is None else tie_claim(dimension, group)
