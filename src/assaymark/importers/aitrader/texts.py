"""What an agent wrote at the end of a step, without the marks that were meant for the machine."""

from __future__ import annotations

import re
from typing import Final

from assaymark.records import Rationale

FINISH: Final = re.compile(r"</?FINISH_SIGNAL>")
THINK: Final = re.compile(r"<think>(.*?)</think>", re.S)
TOOL_OUTPUT: Final = "Tool results:"


def rationales_of(text: str | None) -> tuple[Rationale, ...]:
    """The texts of a step: what was thought aloud as kind ``stage``, the answer as kind ``summary``.

    A think-block is the model's own reasoning, and only one of the models left it in its log. It is kept word for word
    and apart, so that a study can leave it out and a reader can see which texts had one. The finish signal is a word
    for the machine that ran the agent: it is taken out. A message that repeats what a tool returned was not written by
    the agent, and is of kind ``arena``: kept, neither judged nor ledgered.

    >>> rationales_of("<think>\\nToo dear.\\n</think>\\nI hold.\\n<FINISH_SIGNAL>")
    (Rationale(text='Too dear.', kind='stage'), Rationale(text='I hold.', kind='summary'))
    >>> rationales_of("<FINISH_SIGNAL>")
    ()
    """
    if text is None:
        return ()
    thoughts = [found.strip() for found in THINK.findall(text)]
    answer = FINISH.sub("", THINK.sub("", text)).strip()
    kept = [Rationale(text=thought, kind="stage") for thought in thoughts if thought]
    if answer.startswith(TOOL_OUTPUT):
        kept += [Rationale(text=answer, kind="arena")] if answer != TOOL_OUTPUT else []
    elif answer:
        kept.append(Rationale(text=answer, kind="summary"))
    return tuple(kept)


def marks_of(text: str | None) -> tuple[str, ...]:
    """The flags that a step's text earns: ``think-block``, ``tool-output``, ``no-finish-signal``."""
    written = text or ""
    answer = FINISH.sub("", THINK.sub("", written)).strip()
    flags = []
    if THINK.search(written):
        flags.append("think-block")
    if answer.startswith(TOOL_OUTPUT):
        flags.append("tool-output")
    if not FINISH.search(written):
        flags.append("no-finish-signal")
    return tuple(flags)
