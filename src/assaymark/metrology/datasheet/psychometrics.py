"""How small a difference a judge notices: isotonic curve, detection threshold, d' (Judge Datasheet section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints

Censored = Literal["left", "right"] | None

_TOUCH = 1e-12  # a share that is the target up to float noise has reached it


@dataclass(frozen=True, slots=True)
class Threshold:
    """The difference at which a judge first reaches the target.

    ``censored`` is ``left`` when the smallest measured step reaches it already (read "at most value"), ``right`` when
    no step does (read "more than value").

    >>> str(Threshold(1.0, "left")), str(Threshold(5.0, "right")), str(Threshold(0.8333, None))
    ('<= 1', '> 5', '0.833')
    """

    value: float
    censored: Censored

    def __str__(self) -> str:
        return f"{ {'left': '<= ', 'right': '> ', None: ''}[self.censored] }{self.value:.3g}"


def detection_threshold(
    deltas: Sequence[float], p_correct: ArrayLike, n: ArrayLike, *, target: float = 0.75
) -> Threshold:
    """The smallest quality difference that the judge detects in ``target`` of its calls.

    The shares are first made non-decreasing (pool adjacent violators, weighted by ``n``), then joined by straight
    lines between the measured steps; the threshold is where that curve first reaches the target (Judge Datasheet
    eq. 10). Smaller is a finer instrument. A censored value is a bound and must not be compared as a number.

    Parameters
    ----------
    deltas : K different positive numbers
        Measured steps, in any order, in requirements.
    p_correct : float array of shape (K,)
        Share of all calls at each step that chose the better text; ties count as misses.
    n : array of shape (K,)
        Calls at each step.
    target : float
        Share to reach.

    Returns
    -------
    Threshold
        Value in requirements, within the measured steps.

    Raises
    ------
    InputError
        Empty, lengths that differ, equal or non-positive steps, shares outside 0..1, or a step without calls.

    Examples
    --------
    >>> detection_threshold([1, 2, 3, 4], [0.5, 0.7, 0.6, 0.9], [100, 80, 60, 40])
    Threshold(value=3.3823529411764706, censored=None)
    >>> detection_threshold([0.5, 1, 2], [0.8, 0.9, 1.0], [50, 100, 80])
    Threshold(value=0.5, censored='left')
    """
    steps, shares, calls = _ladder(deltas, p_correct, n)
    checks.probability("detection_threshold", "target", target, inclusive=True)
    values, codes = thresholds(isotonic(shares * calls, calls), steps, target=target)
    return Threshold(float(values), censored_of(int(codes)))


def isotonic(successes: Floats, calls: Floats) -> Floats:
    """Non-decreasing shares closest to the observed ones, for many curves [..., K] at once.

    The max-min form of pooling adjacent violators: the fit at a step is the largest over all starts at or before it of
    the smallest mean up to any end at or after it. A step without calls takes what its neighbours say.

    >>> isotonic(np.array([5.0, 8.0, 6.0]), np.array([10.0, 10.0, 10.0])).tolist()
    [0.5, 0.7, 0.7]
    """
    none = np.zeros((*successes.shape[:-1], 1))
    hits = np.concatenate([none, np.cumsum(successes, axis=-1)], axis=-1)
    size = np.concatenate([none, np.cumsum(calls, axis=-1)], axis=-1)
    fit = np.full(successes.shape, -np.inf)
    steps = successes.shape[-1]
    for start in range(steps):
        smallest = np.full(successes.shape[:-1], np.inf)
        for end in range(steps, start, -1):
            seen = size[..., end] - size[..., start]
            mean = (hits[..., end] - hits[..., start]) / np.where(seen > 0, seen, 1.0)
            smallest = np.where(seen > 0, np.minimum(smallest, mean), smallest)
            # A start after which nobody called says nothing.
            known = np.where(np.isinf(smallest), -np.inf, smallest)
            fit[..., end - 1] = np.maximum(fit[..., end - 1], known)
    return fit


def thresholds(fit: Floats, steps: Floats, *, target: float = 0.75) -> tuple[Floats, Ints]:
    """Where non-decreasing curves [..., K] over ``steps`` [K] reach the target.

    Values, and codes: -1 for left censored, 1 for right censored, else 0.
    """
    reached = fit >= target - _TOUCH
    ever = reached.any(axis=-1)
    at = reached.argmax(axis=-1)
    before = np.maximum(at - 1, 0)
    upper, lower = (np.take_along_axis(fit, k[..., None], axis=-1)[..., 0] for k in (at, before))
    rise = upper - lower
    part = np.clip((target - lower) / np.where(rise > 0, rise, 1.0), 0.0, 1.0)
    inside = steps[before] + part * (steps[at] - steps[before])
    values = np.where(ever, np.where(at == 0, steps[0], inside), steps[-1])
    return np.asarray(values), np.where(ever, np.where(at == 0, -1, 0), 1)


def censored_of(code: int) -> Censored:
    """The word for a code of `thresholds`."""
    return {-1: "left", 1: "right"}.get(code)  # type: ignore[return-value]  # the two words of the literal


def d_prime(hits: int, signals: int, false_alarms: int, noises: int) -> float:
    """Sensitivity index d' with the log-linear correction, from calls split by the slot of the better text.

    A signal is a call with the better text in slot 1, a noise one with it in slot 2; a hit and a false alarm are the
    calls of each kind that named slot 1. 0 is no discrimination. Half a call is added to each count and one to each
    total, so that perfect shares stay finite: then the number is set by the correction and grows with the design, and
    10 + 10 calls at ceiling give 3.3812.

    Parameters
    ----------
    hits, signals : int
        Calls that named slot 1, out of those with the better text there.
    false_alarms, noises : int
        Calls that named slot 1, out of those with the better text in slot 2.

    Returns
    -------
    float
        In standard deviations; negative where the worse text wins.

    Raises
    ------
    NotMeasurableError
        One of the two kinds of calls is missing.
    InputError
        Not whole numbers with 0 <= hits <= signals and 0 <= false alarms <= noises.

    References
    ----------
    Hautus, M. J. (1995). Corrections for extreme proportions and their biasing effects on estimated values of d'.
    Behavior Research Methods 27(1), 46-51.

    Examples
    --------
    >>> round(d_prime(10, 10, 0, 10), 4)
    3.3812
    """
    yes = checks.whole("d_prime", "hits", hits, least=0)
    of = checks.whole("d_prime", "signals", signals, least=0)
    wrong = checks.whole("d_prime", "false_alarms", false_alarms, least=0)
    total = checks.whole("d_prime", "noises", noises, least=0)
    if yes > of or wrong > total:
        checks.fail("d_prime", "hits, false_alarms", f"must not exceed their totals (got {yes}/{of}, {wrong}/{total})")
    if not of or not total:
        raise NotMeasurableError("d' needs calls with the better text in slot 1 and in slot 2")
    return float(d_primes(np.array([yes, of, wrong, total], dtype=np.float64)))


def d_primes(counts: Floats) -> Floats:
    """`d_prime` of counts [4, ...] in the order hits, signals, false alarms, noises."""
    hits, signals, false_alarms, noises = counts
    return np.asarray(special.ndtri((hits + 0.5) / (signals + 1)) - special.ndtri((false_alarms + 0.5) / (noises + 1)))


def d_prime_error(counts: Floats) -> float:
    """Standard error of d' from counts [4] for independent calls (Gourevitch and Galanter 1967, Psychometrika 32)."""
    variance = 0.0
    for hits, calls in (counts[:2], counts[2:]):
        share = (hits + 0.5) / (calls + 1)
        density = np.exp(-0.5 * special.ndtri(share) ** 2) / np.sqrt(2 * np.pi)
        variance += share * (1 - share) / (calls * density**2)
    return float(np.sqrt(variance))


def _ladder(deltas: Sequence[float], p_correct: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Checked steps in ascending order with their shares and calls."""
    source = "detection_threshold"
    steps = checks.finite(source, "deltas", deltas)
    shares, calls = checks.finite(source, "p_correct", p_correct), checks.finite(source, "n", n)
    if not steps.size == shares.size == calls.size:
        checks.fail(
            source, "deltas, p_correct, n", f"must be equally long (got {steps.size}, {shares.size}, {calls.size})"
        )
    if (steps <= 0).any() or np.unique(steps).size < steps.size:
        checks.fail(source, "deltas", f"must be different positive numbers (got {steps.tolist()})")
    if (shares < 0).any() or (shares > 1).any():
        checks.fail(source, "p_correct", f"shares lie in 0..1 (got {shares.tolist()})")
    if (calls <= 0).any():
        checks.fail(source, "n", f"every step needs a call; leave out steps without (got {calls.tolist()})")
    order = np.argsort(steps)
    return steps[order], shares[order], calls[order]
