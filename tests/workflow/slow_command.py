"""The command line with models that take their time: `python slow_command.py QUICK SECONDS COMMAND...`.

So many calls are answered as quickly as ever, each of the others after so many seconds.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from assaymark import cli
from assaymark.engine import loop as attempt

QUICKLY = attempt._complete
COUNT = itertools.count()


async def slowly(*given):
    """Answer as ever, after a while."""
    if next(COUNT) >= int(sys.argv[1]):
        await asyncio.sleep(float(sys.argv[2]))
    return await QUICKLY(*given)


if __name__ == "__main__":
    attempt._complete = slowly
    sys.exit(cli.main(sys.argv[3:]))
