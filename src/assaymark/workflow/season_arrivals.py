"""Which days of a season can be done now: those whose data are there, in order; and what is waited for, or overdue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from assaymark.market.calendar import weekdays
from assaymark.market.clock import Clock
from assaymark.workflow.season_plan import LockedSeason, SeasonData


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The days that are due, each with the market that it is run on, and what is said of days without data.

    ``lost`` are due days of a live season whose data did not come in time: they are recorded without. ``waiting`` is
    the first day whose data may still come, until ``deadline``; ``overdue`` says that the deadline is past and that
    nothing came after it either. ``reached`` is the last day of which there is anything.
    """

    days: tuple[tuple[date, SeasonData], ...]
    reached: date | None
    lost: tuple[date, ...] = ()
    waiting: date | None = None
    deadline: datetime | None = None
    overdue: bool = False
    later: bool = False

    def until(self, day: date) -> Arrivals:
        """The days up to one that somebody named."""
        days = tuple(one for one in self.days if one[0] <= day)
        return Arrivals(days, self.reached, tuple(one for one in self.lost if one <= day))

    @property
    def first(self) -> Arrivals:
        """The first day alone: a step of a replay."""
        return Arrivals(self.days[:1], self.reached)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each thing that somebody has to look at."""
        lines = [
            f"{day}: its data did not come in time; the day is recorded without, nobody was asked, and orders waited"
            for day in self.lost
        ]
        if self.overdue:
            there = "there are no data" if self.reached is None else f"the data end on {self.reached}"
            lines.append(f"{self.waiting}: its data are overdue since {_shown(self.deadline)}; {there}")
        return tuple(lines)

    @property
    def announced(self) -> str:
        """What is waited for in good time, and until when."""
        if self.waiting is None or self.overdue:
            return ""
        then = "; the days after it are there and follow in order" if self.later else ""
        return f"waiting for the data of {self.waiting} until {_shown(self.deadline)}{then}"


def arrivals(locked: LockedSeason, done: date | None, now: datetime) -> Arrivals:
    """The days after ``done`` that can be done at ``now``.

    In a replay these are all that the market reaches. Live, a day whose data are there is due once its hour of decision
    has come, however long ago that was. A weekday without data holds up the days after it until ``late_after_h`` hours
    after its hour of decision. If data of a later day are there by then it is lost, else it is overdue.

    Raises
    ------
    InputError
        ``now`` has no zone.
    """
    season, newest = locked.season, locked.data
    clock = newest.clock(season)
    if not season.market.live:
        return Arrivals(tuple((day, newest) for day in clock.due(done)), clock.reached)
    due = set(clock.due(done, now=now)) | set(_weekdays(clock, done, now))
    sources = [(clock, newest)]
    found: list[tuple[date, SeasonData]] = []
    lost: list[date] = []
    for day in sorted(due):
        holding = _holding(locked, sources, day)
        deadline = clock.moment(day) + timedelta(hours=season.calendar.late_after_h)
        reached = max((one.reached for one, _ in sources if one.reached), default=None)
        later = reached is not None and reached > day
        if holding is None and (now < deadline or not later):
            over = now >= deadline
            return Arrivals(tuple(found), reached, tuple(lost), day, deadline, over, later)
        if holding is None:
            lost.append(day)
        found.append((day, holding or newest))
    return Arrivals(tuple(found), max((one.reached for one, _ in sources if one.reached), default=None), tuple(lost))


def _weekdays(clock: Clock, done: date | None, now: datetime) -> list[date]:
    """The weekdays after ``done`` whose hour of decision has come, whether the market reaches them or not."""
    days: list[date] = weekdays(clock.first, clock.last).astype(object).tolist()
    return [day for day in days if (done is None or day > done) and clock.moment(day) <= now]


def _holding(locked: LockedSeason, sources: list[tuple[Clock, SeasonData]], day: date) -> SeasonData | None:
    """The market that was retrieved last and knows bars of a day; older ones are opened where no newer one does.

    A day that came late may have been retrieved after the next one, and then hold nothing of that.
    """
    if found := next((data for clock, data in sources if clock.knows(day)), None):
        return found
    while older := sources[-1][1].older(locked.season, day):
        sources.append((older.clock(locked.season), older))
        if sources[-1][0].knows(day):
            return older
    return None


def _shown(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"
