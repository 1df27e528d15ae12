"""Agents that decide: language models, external agents and built-in rules, called through the engine.

An agent receives a `Context` and nothing else, neither price tables nor outcomes. A language model and a built-in
agent receive it as a prompt, an external agent as JSON (`assaymark.agents.llm`); `agent_call` makes the call and
`decision_of` converts its reply to a `Decision`. Built-in agents are rule-based models that read the same prompt
(`assaymark.agents.reference`), and adversarial controls are rule-based texts on the same cycles
(`assaymark.agents.controls`). `Dater` is the built-in model of the date-leakage check.
"""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.agents.controls import (
        CELL_KINDS, CONTROL, DERIVED_KINDS, Composed, admissible, cell_decision, cell_decisions, fact_flip,
        failed_checks, length_matched, paraphrase, terse_right, verbose_wrong, with_checks,
    )  # fmt: skip
    from assaymark.agents.controls import failed_checks as failed, with_checks as checked  # noqa: F401  # in 0.1
    from assaymark.agents.llm import MODEL as DATER
    from assaymark.agents.llm import (
        NOT_USABLE, REJECTED, Answer, Dater, DecisionKey, agent_call, date_call, decision_of, envelope_of, parse_answer,
        prompt_of, read_date, reply_schema, season_message, task_text,
    )  # fmt: skip
    from assaymark.agents.llm import DecisionKey as Place  # noqa: F401  # its name in 0.1
    from assaymark.agents.reference import (
        COMPOSERS, INVESTED, MIXED, WORDS, agent_argument_problems, observe, orders_towards, planted_words,
        reference_agents,
    )  # fmt: skip

__all__ = [
    "CELL_KINDS", "COMPOSERS", "CONTROL", "DATER", "DERIVED_KINDS", "INVESTED", "MIXED", "NOT_USABLE", "REJECTED",
    "WORDS", "Answer", "Composed", "Dater", "DecisionKey", "admissible", "agent_argument_problems", "agent_call",
    "cell_decision", "cell_decisions", "date_call", "decision_of", "envelope_of", "fact_flip", "failed_checks",
    "length_matched", "observe", "orders_towards", "paraphrase", "parse_answer", "planted_words", "prompt_of",
    "read_date", "reference_agents", "reply_schema", "season_message", "task_text", "terse_right", "verbose_wrong",
    "with_checks",
]  # fmt: skip

__getattr__ = exported(__name__)
