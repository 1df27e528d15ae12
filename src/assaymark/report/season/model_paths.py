"""Where the pages of an agent lie: safe as file names everywhere, and no two alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from assaymark.encoding import content_id

FOLDER: Final = "agents"
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_TAKEN: Final = re.compile(
    r".*-[0-9a-f]{8}|.*-(ledger|decisions|checks)(-\d+)?|con|prn|aux|nul|com\d.*|lpt\d.*", re.IGNORECASE
)
_LONG: Final = 80


def agent_paths(names: Iterable[str]) -> Mapping[str, str]:
    """The page of each agent as a path within the site. A name that is no good file name gets its digest behind it.

    >>> found = agent_paths(["Alder", "Agent 9", "<b>", "alder", "x-ledger-2"])
    >>> found["Agent 9"], found["Alder"] != found["alder"]
    ('agents/Agent-9.html', True)
    >>> import re
    >>> all(re.fullmatch(r"agents/[A-Za-z0-9._-]+.html", path) for path in found.values())
    True
    """
    known = list(dict.fromkeys(names))
    stems = {name: re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:_LONG].rstrip("-.") for name in known}
    seen = Counter(stem.lower() for stem in stems.values())
    found = {}
    for name, stem in stems.items():
        plain = _PLAIN.fullmatch(stem) and not _TAKEN.fullmatch(stem) and seen[stem.lower()] == 1
        safe = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-") or "agent"
        found[name] = f"{FOLDER}/{stem if plain else f'{safe}-{content_id(name)[:8]}'}.html"
    return found


def further_path(path: str, what: str, part: int) -> str:
    """Another page of an agent: a part of its ledger, of its decisions or of what does not reconcile.

    >>> further_path("agents/Alder.html", "ledger", 2), further_path("agents/Alder.html", "decisions", 1)
    ('agents/Alder-ledger-2.html', 'agents/Alder-decisions.html')
    """
    stem = path.removesuffix(".html")
    return f"{stem}-{what}-{part}.html" if part > 1 else f"{stem}-{what}.html"
