"""A certificate read back: every field of the right kind, or all that is wrong with it at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from assaymark.claims.certificates import PARTS, SECTIONS
from assaymark.claims.evidence import HOLM_FIELDS, P_FIELDS, Elsewhere
from assaymark.claims.instruments import OnFailure
from assaymark.claims.rules import Rules, Test
from assaymark.errors import InputError, Problem
from assaymark.metrology.cell_rules import cell_outcome
from assaymark.protocol import Cells
from assaymark.records import (
    JSON,
    AdversarialStatus,
    AgreementStatus,
    Claim,
    Level,
    Measurement,
    Scope,
    StabilityStatus,
    canonical_json,
    parse,
    problems_of,
    record,
)

SOURCE: Final = "certificate"

_Probability = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0, le=10**12)]  # above, sums of products would no longer be exact
_Sum = Annotated[float, Field(ge=-1e12, le=1e12)]
_Entries = tuple[dict[str, JSON], ...]


@record
class StatedTuple:
    """The five fields of the verdict, as the certificate states them."""

    claim_scope: Scope
    agreement_status: AgreementStatus
    stability_status: StabilityStatus
    adversarial_status: AdversarialStatus
    permitted_publication_level: Level


@record
class StatedRules:
    """The plan's rules, as the certificate states them."""

    publish: float
    halt: float
    alpha: _Probability
    cell_alpha: _Probability
    level: Annotated[float, Field(gt=0, lt=1)]
    gating_test: Literal["auto", "cluster-t", "bootstrap", "sign-flip"]
    cells: Cells
    on_failure: OnFailure | None
    judges: dict[str, str]
    families: tuple[str, ...]

    @property
    def rules(self) -> Rules:
        """The rules that the claim is decided under."""
        return Rules(self.publish, self.halt, self.alpha, cells=self.cells, cell_alpha=self.cell_alpha,
                     on_failure=self.on_failure)  # fmt: skip

    def outcome(self, cell: str, value: float, p: float, p_holm: float, *, flat: bool) -> str:
        """What the plan's rule says of a control cell."""
        return cell_outcome(cell, value, p, p_holm, flat=flat, cells=self.cells, alpha=self.cell_alpha)


@record
class StatedFamily:
    """The Holm family of the claim's contrasts; ``elsewhere`` holds the p-values of those that are not listed."""

    name: Literal["aggregate", "dimensions"]
    size: _Count
    gating: tuple[str, ...]
    measured: tuple[Test, ...]
    elsewhere: dict[Test, tuple[_Probability, ...]]


@record
class Certificate:
    """A whole certificate, its measurements still in their sections."""

    format: Literal["assaymark certificate 2"]
    software: str
    plan_hash: str
    claim: Claim
    stated: StatedTuple
    binding: tuple[str, ...]
    condition: str | None
    reasons: tuple[str, ...]
    fragility: dict[str, Level]
    amended: tuple[str, ...]
    rests_on: tuple[str, ...]
    rules: StatedRules
    agreement: _Entries
    levels: _Entries
    contrasts: _Entries
    drops: _Entries
    probe: _Entries
    cells: _Entries
    style: _Entries
    instruments: _Entries
    holm_family: StatedFamily | None


@dataclass(frozen=True, slots=True)
class Read:
    """A certificate whose fields are all of the right kind, with its measurements in order."""

    certificate: Certificate
    measurements: tuple[Measurement, ...]

    @property
    def elsewhere(self) -> Elsewhere:
        """What the certificate states of the whole analysis beyond its own measurements."""
        families, family = self.certificate.rules.families, self.certificate.holm_family
        if family is None:
            return Elsewhere(families)
        return Elsewhere(families, family.elsewhere, frozenset(family.gating), frozenset(family.measured))


_KINDS: Final[Mapping[str, Any]] = {
    "pairs": dict[str, float | None],
    "tables": dict[str, list[list[_Count]]],
    "cluster_sums": dict[str, tuple[_Sum, Annotated[int, Field(ge=1, le=10**12)]]],
    "half_even": float | None,
    "family": str | None,
    "triggered": bool,
    "failed": list[str],
    **dict.fromkeys(("clusters", "below", "tokens", "ddof"), _Count),
    **dict.fromkeys(("outcome", "primary", "judge"), str),
    "gating": Literal["cluster-t", "bootstrap", "sign-flip"],
    **dict.fromkeys((*P_FIELDS.values(), *HOLM_FIELDS.values()), _Probability | None),
}
_DETAILS: Final[Mapping[str, TypeAdapter[Any]]] = {name: TypeAdapter(kind) for name, kind in _KINDS.items()}
_LABELS: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    "kappa.mean_pairwise": (frozenset({"dimension"}), frozenset({"dimension", "format"})),
    "kappa.other_ddof": (frozenset({"dimension"}), frozenset({"dimension", "format"})),
    "cell.kappa": (frozenset({"cell", "dimension"}),),
    "score.effect": (frozenset({"dimension", "agent"}),),
    "contrast": (frozenset({"dimension", "high", "low"}),),
    "lofo.effect": (frozenset({"dimension", "dropped", "agent"}),),
    "lofo.contrast": (frozenset({"dimension", "dropped", "high", "low"}),),
    "probe.contrast": (frozenset({"dimension", "high", "low"}),),
    "cell.gate": (frozenset({"cell"}),),
    "cell.halo": (frozenset({"cell"}),),
    "cell.drop": (frozenset({"cell", "dropped"}),),
    "terse.share": (frozenset({"agent"}),),
    "length_matched.contrast": (frozenset({"dimension", "high", "low"}),),
    "datasheet.gate": (frozenset({"judge"}),),
}
_FIXED: Final = ("value", "low", "high", "level", "n", "n_of", "method", "state")
_ID: Final = re.compile(r"([a-z_.]+)\[(.*)\]", re.DOTALL)


def read_certificate(certificate: Mapping[str, JSON]) -> Read:
    """A certificate with every field checked for its kind.

    Raises
    ------
    InputError
        Fields are missing, unknown, of the wrong kind or contradict each other: all of it at once.
    """
    if not isinstance(certificate, Mapping):
        raise InputError(SOURCE, [Problem("", f"must be a JSON object (got {type(certificate).__name__})")])
    raw = {("stated" if key == "tuple" else str(key)): value for key, value in certificate.items()}
    try:
        found = parse(Certificate, canonical_json(raw), source=SOURCE)
    except InputError as exc:
        problems = [
            Problem(f"tuple{p.where[6:]}" if p.where.startswith("stated") else p.where, p.what) for p in exc.problems
        ]
        raise InputError(SOURCE, problems) from None
    except (TypeError, ValueError, RecursionError) as exc:
        raise InputError(SOURCE, [Problem("", str(exc))]) from None
    problems = _wrong_subjects(found.claim)
    measurements = []
    for section in SECTIONS:
        for at, entry in enumerate(getattr(found, section)):
            item, wrong = _measurement(entry, section, f"{section}.{at}")
            problems += wrong
            measurements += [] if item is None else [item]
    problems += _twice(measurements)
    if problems:
        raise InputError(SOURCE, problems)
    return Read(found, tuple(measurements))


def _wrong_subjects(claim: Claim) -> list[Problem]:
    """A claim of another kind than its subjects can bear."""
    head = claim.id.partition("[")[0]
    least, most = {"first": (1, 1), "above": (2, 2), "cell": (1, 1)}.get(head, (2, None))
    count = len(set(claim.subjects))
    if count == len(claim.subjects) and least <= count <= (most or count):
        return []
    what = f"a claim {head!r:.40} has {least if most else 'two or more'} different subjects"
    return [Problem("claim.subjects", f"{what} (got {', '.join(claim.subjects) or 'none'})")]


def _measurement(entry: Mapping[str, JSON], section: str, where: str) -> tuple[Measurement | None, list[Problem]]:
    """One measurement of a section, or what is wrong with it."""
    name, labels = _parts_of(entry.get("id"))
    if name not in SECTIONS[section]:
        kinds = ", ".join(SECTIONS[section])
        return None, [Problem(f"{where}.id", f"must name one of {kinds} (got {entry.get('id')!r:.80})")]
    detail = {key: value for key, value in entry.items() if key not in (*_FIXED, "id")}
    problems = [
        Problem(f"{where}.{key}", "is not a part of this measurement")
        for key in detail
        if key not in PARTS.get(name, ())
    ]
    for key in detail.keys() & _DETAILS.keys():
        problems += _wrong_detail(key, detail[key], f"{where}.{key}")
    fixed = {"value": None, "n_of": "", "method": "", **{key: entry[key] for key in _FIXED if key in entry}}
    stated = {**fixed, "name": name, "labels": labels, "detail": detail}
    try:
        item = parse(Measurement, canonical_json(stated), source=where)
    except InputError as exc:
        return None, [*problems, *(Problem(f"{where}.{p.where}", p.what) for p in exc.problems)]
    problems += _wrong_labels(item, where)
    if not problems and entry["id"] != item.id:
        problems.append(Problem(f"{where}.id", f"must be {item.id} (got {entry['id']!r:.80})"))
    if (item.value is None) == (item.state == "ok"):
        problems.append(Problem(f"{where}.state", f"a measurement without a value says why (got {item.state!r:.80})"))
    return (None if problems else item), problems


def _parts_of(name: JSON) -> tuple[str, dict[str, str]]:
    """The name and labels in a measurement's id, which hold none of the signs that part them; nothing of another text.

    >>> _parts_of("contrast[dimension=aggregate,high=b,low=a]")
    ('contrast', {'dimension': 'aggregate', 'high': 'b', 'low': 'a'})
    """
    match = _ID.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return "", {}
    labels = (pair.partition("=") for pair in match[2].split(",") if pair)
    return match[1], {key: value for key, _, value in labels}


def _wrong_labels(item: Measurement, where: str) -> list[Problem]:
    wanted = _LABELS[item.name]
    if frozenset(item.labels) in wanted:
        return []
    listed = " or ".join(", ".join(sorted(labels)) for labels in wanted)
    return [Problem(f"{where}.labels", f"must be {listed} (got {', '.join(sorted(item.labels)) or 'none'})")]


def _wrong_detail(key: str, value: JSON, where: str) -> list[Problem]:
    try:
        _DETAILS[key].validate_json(canonical_json(value), strict=True)
    except ValidationError as exc:
        return [Problem(".".join(part for part in (where, p.where) if part), p.what) for p in problems_of(exc)]
    if key != "tables":
        return []
    square = {name: bool(cells) and all(len(row) == len(cells) for row in cells) for name, cells in value.items()}
    return [Problem(f"{where}.{name}", "must be a square of counts") for name, fine in square.items() if not fine]


def _twice(measurements: list[Measurement]) -> list[Problem]:
    ids = [item.id for item in measurements]
    return [Problem(name, "is there twice") for name in sorted({name for name in ids if ids.count(name) > 1})]
