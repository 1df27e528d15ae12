"""A market that is the same up to an instant, and another one after it: what blindness is tested with."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from assaymark.market import Bars, History


def later_changed(history: History, t: datetime, *, mild: bool = False) -> History:
    """The same store with everything that became known after t changed.

    Where ``mild``, bars move by up to a half; else they become wild or missing, all instruments are delisted on the
    next day, and those that list later have another name.
    """
    at, ahead, rng = int(t.timestamp()), t.date() + timedelta(days=1), np.random.default_rng(1)
    later, factor = history.known_at > at, rng.uniform(0.5, 1.5, history.known_at.shape)
    bars = {
        name: np.where(later, values * factor if mild else rng.choice([np.nan, 1.0, 1e6], values.shape), values)
        for name, values in history.bars.items()
    }
    macro = (replace(one, values=np.where(one.released > at, one.values - 999.0, one.values)) for one in history.macro)
    news = tuple(one if one.published_at <= t else replace(one, text="Nobody could know this.") for one in history.news)
    listings = history.listings if mild else tuple(
        replace(one, delisted=min(one.delisted or ahead, ahead), name="Later" if one.listed > t.date() else one.name)
        for one in history.listings
    )  # fmt: skip
    return replace(history, bars=bars, macro=tuple(macro), news=news, listings=listings)


class Later:
    """A source of minutes whose bars after ``after`` (seconds since 1970) are others."""

    def __init__(self, source, after: int, seed: int) -> None:
        self.source, self.after, self.seed, self.classes = source, after, seed, source.classes

    def days_of(self, regime):
        return self.source.days_of(regime)

    def ranges(self):
        return self.source.ranges()

    def day(self, instrument, day):
        found = self.source.day(instrument, day)
        if found is None:
            return None
        rng = np.random.default_rng([self.seed, int(day.astype(int))])
        factor = np.where(found.times > self.after, np.exp(rng.normal(0, 1, found.times.size)), 1.0)
        columns = (getattr(found, name) * factor for name in ("open", "high", "low", "close", "volume"))
        return Bars(instrument, found.times, *columns)
