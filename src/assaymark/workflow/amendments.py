"""What a changed plan leaves behind: one dated, hashed file a change, each naming the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from assaymark.encoding import write_atomic
from assaymark.errors import LedgerError
from assaymark.plan import Frozen
from assaymark.records import JSON, content_id, to_json
from assaymark.workflow.run_folder import RunFolder, read_json, read_text, write_json

FORMAT: Final = "assaymark amendment 1"
_KEYS: Final = frozenset(("format", "number", "date", "reason", "fields", "plan_before", "plan_after", "previous"))


@dataclass(frozen=True, slots=True)
class Amendment:
    """One change of a locked plan: when, why, and which fields went from what to what."""

    number: int
    date: str
    reason: str
    fields: Mapping[str, Mapping[str, JSON]]
    plan_before: str
    plan_after: str
    digest: str

    @property
    def of_rules(self) -> bool:
        """Whether it brought the plan under the rules of another version."""
        return "version" in self.fields


def changed_fields(before: Frozen | Mapping[str, Any], after: Frozen | Mapping[str, Any]) -> dict[str, dict[str, JSON]]:
    """The fields in which two plans differ, by dotted name, with both values; judges are compared by name."""

    def flat(name: str, value: JSON) -> Iterator[tuple[str, JSON]]:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                yield from flat(f"{name}.{key}" if name else key, part)
        else:
            yield name, value

    plans = []
    for plan in (before, after):
        tree = plan.model_dump(mode="json") if isinstance(plan, Frozen) else dict(plan)
        if "judges" in tree:
            tree["judges"] = {judge["name"]: judge for judge in tree["judges"]}
        plans.append(dict(flat("", tree)))
    old, new = plans
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    return {name: {"from": old.get(name), "to": new.get(name)} for name in names}


def record_amendment(
    folder: RunFolder, earlier: Sequence[Amendment], *, now: datetime, reason: str,
    fields: Mapping[str, Mapping[str, JSON]], before: str, after: tuple[str, str],
) -> tuple[str, ...]:  # fmt: skip
    """Write down how the plan changes, before it does: from the hash ``before`` to hash and text of ``after``."""
    raw = {
        "format": FORMAT,
        "number": len(earlier) + 1,
        "date": to_json(now),
        "reason": reason,
        "fields": fields,
        "plan_before": {"hash": before, "text": read_text(folder.plan, "plan")},
        "plan_after": {"hash": after[0], "text": after[1]},
        "previous": earlier[-1].digest if earlier else "",
    }
    write_json(amendment_path(folder, len(earlier) + 1), raw)
    return (*(one.digest for one in earlier), content_id(raw))


def undo_unfinished(folder: RunFolder, stored: Mapping[str, Any]) -> None:
    """Take back an amendment that was killed between its file and the lock, which is ``stored``."""
    path = amendment_path(folder, len(stored.get("amendments", ())) + 1)
    if path.is_file():
        before = read_json(path, "amendment")["plan_before"]
        if before["hash"] == stored["plan_hash"]:
            write_atomic(folder.plan, before["text"])
        path.unlink()


def amendment_path(folder: RunFolder, number: int) -> Path:
    """Where the amendment with this number lies."""
    return folder.amendments / f"{number:04d}.json"


def read_amendments(folder: RunFolder, digests: Sequence[str]) -> tuple[Amendment, ...]:
    """The amendments that a lock names, in their order."""
    found: list[Amendment] = []
    for number, digest in enumerate(digests, start=1):
        path = amendment_path(folder, number)
        raw = read_json(path, "amendment")
        if not isinstance(raw, dict) or raw.keys() != _KEYS or raw["format"] != FORMAT:
            raise LedgerError(f"{path} is damaged, or of another version: it does not say {FORMAT!r}")
        if content_id(raw) != digest:
            raise LedgerError(f"{path} was edited: its sha256 is not the one in {folder.lock}; restore the file")
        before, after = raw["plan_before"]["hash"], raw["plan_after"]["hash"]
        found.append(Amendment(raw["number"], raw["date"], raw["reason"], raw["fields"], before, after, digest))
    return tuple(found)
