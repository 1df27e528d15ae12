"""Company names that the price files do not hold, as the agents themselves wrote them beside the codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_CODE: Final = r"(?P<code>\d{6}\.S[HZ])"
_NAME: Final = r"(?P<name>[\u4e00-\u9fff]{2,6})"
_PATTERNS: Final = (
    re.compile(rf"(?<![\u4e00-\u9fff]){_NAME}\*{{0,2}}\s?[(（]{_CODE}[)）]"),
    re.compile(rf"{_CODE}\s?[(（]{_NAME}[)）]"),
)

LEAST: Final = 3
"""A name must stand beside its code so often, and more often than all others together."""


def names_in(texts: Iterable[str | None]) -> Mapping[str, str]:
    """The name of each code: what stands in brackets beside it, or before it, most of the time.

    A name that would go to two codes goes to neither.

    >>> dict(names_in(["买入 招商银行(600036.SH) 100股", "600036.SH（招商银行）", "- **招商银行** (600036.SH)", None]))
    {'600036.SH': '招商银行'}
    """
    seen: dict[str, Counter[str]] = {}
    for text in texts:
        for pattern in _PATTERNS:
            for found in pattern.finditer(text or ""):
                seen.setdefault(found["code"], Counter())[found["name"]] += 1
    best = {code: names.most_common(1)[0] for code, names in seen.items()}
    names = {code: name for code, (name, n) in best.items() if n >= LEAST and 2 * n > seen[code].total()}
    shared = {name for name, n in Counter(names.values()).items() if n > 1}
    return {code: name for code, name in sorted(names.items()) if name not in shared}
