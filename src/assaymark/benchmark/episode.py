"""One model under one profile through one window, call by call: the machine that asks, takes replies and scores.

It makes no call itself. A run asks `EpisodeState.next_call` of many episodes, has the calls answered together, and
hands each reply back; an episode that is begun again is led to where it stood by the replies that a ledger kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Protocol

from assaymark.benchmark.stages import Convention, EpisodeResult, Stage
from assaymark.engine.calls import CallSpec, Reply
from assaymark.protocol import AgentSpec


@dataclass(frozen=True, slots=True)
class EpisodeRules:
    """What a plan sets for every episode; the defaults are those of seed 002, sections C.1 and C.3.

    Attributes
    ----------
    convention : {"paper", "reference"}
    alpha : float
        Weight of accuracy in S3 (eq. 6).
    penalty : float
        Lambda of CEPS (eq. 3).
    cost_bps : float
        Cost of trading in basis points of the traded value.
    drift_limit : float
        Largest change of one weight that passes without a flag, as a share of NAV.
    lookback : int
        Trading days of covariance, VaR, drawdown and correlations.
    horizon : int
        Trading days after a decision that its truths look at: 5, 21 or 63.
    """

    convention: Convention = "paper"
    alpha: float = 0.5
    penalty: float = 0.1
    cost_bps: float = 15.0
    drift_limit: float = 0.05
    lookback: int = 60
    horizon: int = 21


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of an episode: on which day, for which stage, and under which key the ledger has its reply."""

    day: date
    stage: Stage
    key: str


class Investor(Protocol):
    """Whom the portfolio is for."""

    @property
    def name(self) -> str:
        """The name of the profile."""
        ...


class World(Protocol):
    """The market through one window, shared by all episodes in it."""

    @property
    def window(self) -> str:
        """The name of the window."""
        ...

    @property
    def tickers(self) -> tuple[str, ...]:
        """The instruments, in the order of every array."""
        ...

    @property
    def decisions(self) -> tuple[date, ...]:
        """The decision dates."""
        ...


class EpisodeState:
    """One episode: (model, profile, window).

    ``next_call`` gives the pending call until ``take`` has been handed its reply, then the one after it; None when
    the window is over, and then ``result`` has everything. The same replies always lead to the same calls.

    Parameters
    ----------
    agent : AgentSpec
        Who is asked: model, arguments, temperature, seed.
    profile : Profile
    world : World
    rules : EpisodeRules
    """

    def __init__(self, agent: AgentSpec, profile: Investor, world: World, rules: EpisodeRules | None = None) -> None:
        self.agent, self.profile, self.world = agent, profile, world
        self.rules = rules or EpisodeRules()
        self.asked: tuple[Asked, ...] = ()

    @property
    def name(self) -> str:
        """``agent/profile/window``."""
        return f"{self.agent.name}/{self.profile.name}/{self.world.window}"

    def next_call(self) -> CallSpec | None:
        """The call that the episode waits for; None when it is over."""
        raise NotImplementedError

    def take(self, reply: Reply) -> None:
        """Hand in the reply to the pending call, whatever it is: what cannot be read is scored by the seed's rule.

        Raises
        ------
        ValueError
            No call is pending.
        """
        raise NotImplementedError

    def true_reply(self) -> str:
        """What somebody who knows what happened next would reply to the pending call: the ceiling of every score."""
        raise NotImplementedError

    def result(self) -> EpisodeResult:
        """Everything that came of the episode.

        Raises
        ------
        ValueError
            It is not over.
        """
        raise NotImplementedError
