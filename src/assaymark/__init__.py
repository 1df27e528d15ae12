"""assaymark: an assay office for LLM judges of AI investment agents.

It records what agents decide and why, has a panel of judges grade it blind, measures the judges as instruments, and
says which claims may be made: headline, qualified, or no claim. Start with ``assaymark demo``.
"""

__all__ = ["__version__", "check"]

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """`check`, loaded when it is asked for: importing this package costs nothing."""
    if name == "check":
        from importlib import import_module

        return import_module("assaymark.workflow.check").check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
