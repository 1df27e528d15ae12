"""The command line with models that take their time: `python slow_command.py QUICK SECONDS COMMAND...`.

So many calls are answered as quickly as ever, each of the others after so many seconds; a benchmark draws its questions
from twenty of each kind."""

from __future__ import annotations

import asyncio
import itertools
import sys
from functools import partial

import pytest

from assaymark import cli
from assaymark.benchmark import questions
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


def few_questions(patch):
    """To generate all questions takes a second."""
    fewer = partial(questions.generate_questions, counts=dict.fromkeys(questions.TEMPLATES, 20))
    for place in ("workflow.tracks.benchmark_plan", "benchmark.questions.published"):  # the first imports the second
        patch.setattr(f"assaymark.{place}.generate_questions", fewer)


async def slowly(attempts, model, call, place):
    return await QUICKLY(attempts, Slow(model) if next(COUNT) >= int(sys.argv[1]) else model, call, place)


if __name__ == "__main__":
    loop.Attempts.at = slowly
    with pytest.MonkeyPatch.context() as patch:
        few_questions(patch)
        sys.exit(cli.main(sys.argv[3:]))
