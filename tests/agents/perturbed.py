"""A market that is the same up to an instant, and another one after it: what blindness is tested with."""

from __future__ import annotations

import numpy as np

from assaymark.market import Bars


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
