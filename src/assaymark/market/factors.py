"""The random parts of the synthetic market: volatility, regimes, class factors, what is shared and what is not.

Everything here is standardised on calm days: factors have unit variance and exactly the correlation asked for there,
so that the calibration does not depend on the luck of a seed. Stress windows come on top.
"""

from __future__ import annotations

import numpy as np

from assaymark.errors import InputError

_SLOW, _FAST = 0.5 ** (1 / 120), 0.5 ** (1 / 6)  # half-lives of 120 and 6 days
_SLOW_SD, _FAST_SD = 0.16, 0.22

BULL, SIDEWAYS, BEAR = 0, 1, 2
_MEAN_DAYS = np.array([210.0, 110.0, 70.0])
_NEXT = np.array([[0.0, 0.6, 0.4], [0.65, 0.0, 0.35], [0.5, 0.5, 0.0]])
SHARPE = np.array([1.3, 0.5, -1.1])
"""Drift of each regime in units of a class's volatility, a year."""


def semi_markov(rng: np.random.Generator, n: int) -> np.ndarray:
    """Bull, sideways and bear spells, int array of shape (n,).

    Semi-Markov: the length of a spell is gamma distributed and not geometric, so a spell that has just begun does not
    end as readily as an old one.
    """
    found = np.empty(n, dtype=np.int8)
    state, day = int(rng.choice(3, p=[0.5, 0.3, 0.2])), 0
    while day < n:
        length = max(int(rng.gamma(4.0, _MEAN_DAYS[state] / 4.0)), 10)
        found[day : day + length] = state
        state, day = int(rng.choice(3, p=_NEXT[state])), day + length
    return found


def two_speed_volatility(rng: np.random.Generator, shocks: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Volatility multipliers with a slow and a fast part, both AR(1) in logs, shape as ``shocks``.

    ``shocks[t]`` are the standardised returns of day t; with ``leverage`` below zero a fall raises the volatility of
    the following days, never of its own day.

    Parameters
    ----------
    shocks : float array of shape (n_days, k)
        Of about unit variance.
    leverage : float array of shape (k,)
        Correlation of today's shock with tomorrow's change of the fast part, in (-1, 1).
    """
    if not (np.abs(leverage) < 1).all():
        raise InputError("leverage", ["must be between -1 and 1"])
    n, k = shocks.shape
    draws = rng.standard_normal((2, n, k))
    past = np.vstack([np.zeros((1, k)), np.clip(shocks[:-1], -4, 4)])
    fast = leverage * past + np.sqrt(1 - leverage**2) * draws[1]
    log = _ar1(draws[0], _SLOW) * _SLOW_SD + _ar1(fast, _FAST) * _FAST_SD
    return np.exp(log)


def _ar1(draws: np.ndarray, decay: float) -> np.ndarray:
    """AR(1) of unit variance from the first day on."""
    found: np.ndarray = draws * np.sqrt(1 - decay**2)
    found[0] = draws[0]
    # scipy.signal.lfilter gives the same bits, and takes half a second to load where this takes 4 ms.
    for day in range(1, found.shape[0]):
        found[day] += decay * found[day - 1]
    return found


def multivariate_t(rng: np.random.Generator, n: int, correlation: np.ndarray, *, dof: float = 5.0) -> np.ndarray:
    """Correlated t draws of unit variance, shape (n, k): one mixing variable a day, so bad days are bad for all."""
    normal = rng.standard_normal((n, correlation.shape[0])) @ np.linalg.cholesky(correlation).T
    mixing = np.sqrt((dof - 2) / rng.chisquare(dof, n))
    found: np.ndarray = normal * mixing[:, None]
    return found


def independent_t(rng: np.random.Generator, shape: tuple[int, ...], *, dof: float = 4.5) -> np.ndarray:
    """Independent t draws of unit variance."""
    found: np.ndarray = rng.standard_t(dof, shape) * np.sqrt((dof - 2) / dof)
    return found


def recolour(draws: np.ndarray, correlation: np.ndarray, calm: np.ndarray) -> np.ndarray:
    """``draws`` turned so that on calm days they have mean 0, variance 1 and exactly ``correlation``.

    The first column is only shifted and scaled; each later one takes from those before it.
    """
    centred = draws - draws[calm].mean(axis=0)
    own = np.linalg.cholesky(centred[calm].T @ centred[calm] / calm.sum())
    found: np.ndarray = centred @ np.linalg.solve(own.T, np.linalg.cholesky(correlation).T)
    return found


def standardise(draws: np.ndarray, calm: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1 on calm days."""
    kept = draws[calm]
    found: np.ndarray = (draws - kept.mean(axis=0)) / kept.std(axis=0)
    return found


def loadings(rng: np.random.Generator, n: int, target: float, sub: float, same_sub: float) -> np.ndarray:
    """Loadings of n instruments on their class factor whose pairs correlate by ``target`` on average, shape (n,).

    ``sub`` is the variance an instrument shares with its sub-sector and ``same_sub`` the share of pairs in one.
    """
    wanted = target - sub * same_sub
    spread = rng.uniform(0.88, 1.08, n)
    top = np.sqrt(0.97 - sub)
    found = spread * np.sqrt(wanted)
    for _ in range(20):  # capping and scaling pull at each other; a few rounds settle it
        found = np.minimum(found, top)
        pairs = (found.sum() ** 2 - (found**2).sum()) / (n * (n - 1))
        found = found * np.sqrt(wanted / pairs)
    result: np.ndarray = np.minimum(found, top)
    return result
