"""What agents did, apart from how good it was: answers in the form asked for, limits kept, time and length.

None of it is graded by a judge, and none of it is a ranking: an agent that keeps every limit may still reason badly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.intervals import wilson
from assaymark.records import JSON, Measurement, content_id

_WILSON: Final = (
    "Wilson interval, which takes decisions as independent; decisions of one cluster hang together, so detail has the "
    "cluster t interval beside it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """One question that was put to an agent, and what came back.

    Parameters
    ----------
    agent, cluster : str
        Who was asked, in which cluster (regime).
    usable : bool
        Whether the answer had the form that was asked for.
    flags : tuple of str
        What is to be said of it, such as ``refused`` or ``rejected-order``.
    checks : tuple of (rule, kept), or None
        Every numeric limit held against the book after the orders; None where there is no book or no answer.
    seconds : float or None
        Of the call; None where nobody took the time.
    output_tokens : int or None
        As the provider counted them; None where it did not.
    tokens : int
        Length of the text that is judged, in words as `terse.share` counts them.
    """

    agent: str
    cluster: str
    usable: bool
    flags: tuple[str, ...] = ()
    checks: tuple[tuple[str, bool], ...] | None = None
    seconds: float | None = None
    output_tokens: int | None = None
    tokens: int = 0


def conduct_measurements(asked: Iterable[Conduct], *, level: float = 0.95) -> Iterator[Measurement]:
    """How the agents of a study behaved: five measurements for each of them, agents in alphabetical order.

    ``agent.answered`` is the share of questions that were answered in the form asked for, and ``agent.limits_kept`` the
    share of usable decisions whose orders keep every numeric limit. ``agent.seconds``, ``agent.output_tokens`` and
    ``agent.text_tokens`` are medians over usable decisions, with their quartiles in ``detail``.

    Parameters
    ----------
    asked : iterable of Conduct
        Every question, those without a usable answer included.
    level : float
        Coverage of the intervals, strictly between 0 and 1.

    Yields
    ------
    Measurement
        With a named state where nothing was counted or timed.

    Examples
    --------
    >>> two = [Conduct(agent="ash", cluster="calm", usable=True, checks=(("min_cash", True),), tokens=80),
    ...        Conduct(agent="ash", cluster="calm", usable=False, flags=("refused",))]
    >>> for item in conduct_measurements(two):
    ...     print(item.id, item.value, item.n, item.state)
    agent.answered[agent=ash] 0.5 2 ok
    agent.limits_kept[agent=ash] 1.0 1 ok
    agent.seconds[agent=ash] None 0 no timing: no usable decision has a time
    agent.output_tokens[agent=ash] None 0 not counted: no usable decision has a token count of its provider
    agent.text_tokens[agent=ash] 80.0 1 ok
    """
    by_agent: dict[str, list[Conduct]] = {}
    for one in asked:
        by_agent.setdefault(one.agent, []).append(one)
    for agent in sorted(by_agent):
        own = sorted(by_agent[agent], key=lambda one: one.cluster)
        inputs = content_id(sorted(content_id(one) for one in own))
        usable = [one for one in own if one.usable]
        yield _answered(agent, own, level, inputs)
        yield _kept(agent, usable, level, inputs)
        for name, unit, absent, read in _MEDIANS:
            yield _median(name, agent, [read(one) for one in usable], unit, absent, inputs)


_MEDIANS: Final[Sequence[tuple[str, str, str, Callable[[Conduct], float | None]]]] = (
    ("agent.seconds", "seconds", "no timing: no usable decision has a time", lambda one: one.seconds),
    (
        "agent.output_tokens",
        "tokens",
        "not counted: no usable decision has a token count of its provider",
        lambda one: one.output_tokens,
    ),
    ("agent.text_tokens", "words", "undefined: no usable decision", lambda one: one.tokens),
)
"""Name, unit, the state without any value, and where the value is read."""


def flagged_measurements(texts: Iterable[tuple[str, str, bool]], *, level: float = 0.95) -> Iterator[Measurement]:
    """``agent.flagged_texts``: the share of each agent's decisions with instruction-like text; nothing if none has any.

    Parameters
    ----------
    texts : iterable of (agent, cluster, whether it is flagged)
        One for each honest decision.
    level : float
        Coverage of Wilson's interval.

    Examples
    --------
    >>> for item in flagged_measurements([("ash", "calm", True), ("ash", "calm", False), ("elm", "calm", False)]):
    ...     print(item.id, item.value, item.n)
    agent.flagged_texts[agent=ash] 0.5 2
    agent.flagged_texts[agent=elm] 0.0 1
    """
    found = sorted(texts)
    if not any(flag for *_, flag in found):
        return
    for agent in sorted({agent for agent, *_ in found}):
        own = [(cluster, flag) for one, cluster, flag in found if one == agent]
        yield _share(
            "agent.flagged_texts",
            agent,
            [flag for _, flag in own],
            [cluster for cluster, _ in own],
            n_of="decisions",
            method=f"decisions whose texts address the judge or imitate its prompt over all decisions, {_WILSON}",
            detail={},
            level=level,
            inputs=content_id(own),
        )


def _answered(agent: str, own: Sequence[Conduct], level: float, inputs: str) -> Measurement:
    flags = Counter(flag for one in own for flag in one.flags)
    return _share(
        "agent.answered",
        agent,
        [one.usable for one in own],
        [one.cluster for one in own],
        n_of="questions",
        method=f"answers in the form asked for over all questions, {_WILSON}",
        detail={"flags": dict(sorted(flags.items()))},
        level=level,
        inputs=inputs,
    )


def _kept(agent: str, usable: Sequence[Conduct], level: float, inputs: str) -> Measurement:
    held = [(one.cluster, one.checks) for one in usable if one.checks is not None]
    broken = Counter(rule for _, checks in held for rule in sorted({rule for rule, kept in checks if not kept}))
    return _share(
        "agent.limits_kept",
        agent,
        [all(kept for _, kept in checks) for _, checks in held],
        [cluster for cluster, _ in held],
        n_of="usable decisions with a book",
        method=f"decisions whose orders keep every numeric limit over all with a book, {_WILSON}",
        detail={"breaches": dict(sorted(broken.items()))},
        level=level,
        inputs=inputs,
    )


def _share(
    name: str,
    agent: str,
    hits: Sequence[bool],
    clusters: Sequence[str],
    *,
    n_of: str,
    method: str,
    detail: Mapping[str, JSON],
    level: float,
    inputs: str,
) -> Measurement:
    """A share of decisions with Wilson's interval, and the ends that clusters give it."""
    n = len(hits)
    parts: dict[str, Any] = {"name": name, "labels": {"agent": agent}, "n": n, "n_of": n_of, "method": method}
    if not n:
        return Measurement(value=None, state=f"undefined: no {n_of}", inputs=inputs, **parts)
    low, high = wilson(sum(hits), n, level=level)
    return Measurement(
        value=sum(hits) / n,
        low=low,
        high=high,
        level=level,
        inputs=inputs,
        detail={"count": sum(hits), **_over_clusters(hits, clusters, level), **detail},
        **parts,
    )


def _over_clusters(hits: Sequence[bool], clusters: Sequence[str], level: float) -> dict[str, JSON]:
    """The cluster t interval of a share, held inside 0..1; no ends where all clusters agree or there is only one."""
    found: dict[str, JSON] = {"clusters": len(set(clusters)), "t_low": None, "t_high": None}
    shares = np.array([float(hit) for hit in hits])
    if len(set(clusters)) < 2 or np.ptp(shares) == 0:
        return found
    test = cluster_t(shares, clusters, level=level)
    if test.low is not None and test.high is not None and test.high > test.low:
        found |= {"t_low": max(0.0, test.low), "t_high": min(1.0, test.high)}
    return found


def _median(name: str, agent: str, values: Sequence[float | None], unit: str, absent: str, inputs: str) -> Measurement:
    """The median of what is known, with its quartiles; how many are not known stands beside them."""
    known = [float(value) for value in values if value is not None]
    parts: dict[str, Any] = {
        "name": name,
        "labels": {"agent": agent},
        "n": len(known),
        "n_of": "usable decisions",
        "method": "median over usable decisions where it is known; quartiles by linear interpolation",
        "unit": unit,
        "inputs": inputs,
    }
    if not known:
        return Measurement(value=None, state=absent, **parts)
    lower, middle, upper = (float(end) for end in np.quantile(known, (0.25, 0.5, 0.75)))
    return Measurement(
        value=middle, detail={"lower": lower, "upper": upper, "unknown": len(values) - len(known)}, **parts
    )
