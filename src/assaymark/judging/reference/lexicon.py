"""Word lists and the counting of words: the reference judges' whole understanding of language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    """The words of a list that is written as text."""
    return frozenset(text.split())


LEXICON: Mapping[str, frozenset[str]] = {
    "hedge": _words(
        "may might could would likely unlikely probably possible possibly potential potentially uncertain uncertainty "
        "roughly approximately appear appears seem seems suggest suggests suggesting perhaps tentative doubt cautious "
        "modest odds chance 可能 或许 大约 不确定 预计"
    ),
    "risk": _words(
        "risk risks risky drawdown drawdowns volatility volatile loss losses lose downside crash shock shocks tail "
        "stress selloff reversal reverse reverses reversion drop drops decline declines hurt hurts hit hits pressure "
        "fade fades crowded overbought correction 风险 波动 回撤 亏损 下跌"
    ),
    "catalyst": _words(
        "catalyst catalysts earnings fomc fed cpi ppi pce gdp payrolls report reports release releases meeting "
        "guidance announcement event events vote hearing statement minutes auction survey results decision "
        "财报 会议 公布"
    ),
    "condition": _words(
        "if unless until invalidate invalidates invalidated invalidation break breaks below above stop trigger "
        "triggers exceed exceeds fall falls close closes 如果 若 除非 止损 跌破"
    ),
    "contrast": _words(
        "however but although though despite whereas while yet offset offsets against instead rather 但 然而 尽管"
    ),
    "constraint": _words(
        "limit limits cap caps capped constraint constraints maximum minimum allowed permitted rule rules increment "
        "increments mandate requirement requirements cluster clusters hurdle budget ceiling floor 限制 上限 约束"
    ),
    "size": _words(
        "weight weights weighted overweight underweight allocation allocations allocate size sized sizing position "
        "positions largest smaller half core satellite tilt tilts sleeve ballast exposure 仓位 比例 配置 权重"
    ),
}
"""Words by what they speak of. One word may speak of several things."""

_WORD = re.compile(r"[a-z]+")
_CHINESE = {topic: tuple(word for word in words if not word.isascii()) for topic, words in LEXICON.items()}


def topic_counts(text: str) -> dict[str, int]:
    """How many words of a text speak of each topic.

    >>> topic_counts("Oil may fall if the Fed meeting disappoints")["catalyst"]
    2
    """
    words = Counter(_WORD.findall(text.lower()))
    counts = {topic: sum(words[word] for word in listed & words.keys()) for topic, listed in LEXICON.items()}
    if not text.isascii():
        for topic, listed in _CHINESE.items():
            counts[topic] += sum(text.count(word) for word in listed)
    return counts


def speaks_of(sentence: str, *topics: str) -> bool:
    """Whether any word of a sentence speaks of any of the topics.

    >>> speaks_of("Oil may fall if the Fed disappoints", "size"), speaks_of("Half of it is gold", "size", "risk")
    (False, True)
    """
    words = set(_WORD.findall(sentence.lower()))
    if any(not words.isdisjoint(LEXICON[topic]) for topic in topics):
        return True
    return not sentence.isascii() and any(word in sentence for topic in topics for word in _CHINESE[topic])
