"""The command line with models that take their time: `python slow_command.py QUICK SECONDS COMMAND...`.

So many calls are answered as quickly as ever, each of the others after so many seconds.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from assaymark import cli
from assaymark.engine import loop

QUICKLY = loop.Attempts.at
COUNT = itertools.count()


class Slow:
    """A model that answers as ever, after a while."""

    def __init__(self, model):
        self.model = model

    async def complete(self, call):
        await asyncio.sleep(float(sys.argv[2]))
        return await self.model.complete(call)


async def slowly(attempts, model, call, place):
    return await QUICKLY(attempts, Slow(model) if next(COUNT) >= int(sys.argv[1]) else model, call, place)


if __name__ == "__main__":
    loop.Attempts.at = slowly
    sys.exit(cli.main(sys.argv[3:]))
