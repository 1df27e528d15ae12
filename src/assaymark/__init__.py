"""assaymark: report which comparisons of LLM systems and agents the scores of LLM judges support.

It reads a table of scores, or records agents' decisions and has a panel of judges score them blind. It measures the
judges' reliability and biases, and decides each claim: headline, qualified, or no claim. Try ``assaymark demo``.
"""

__all__ = ["__version__", "check"]

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Load `check` on first use, which keeps ``import assaymark`` fast."""
    if name == "check":
        from importlib import import_module

        return import_module("assaymark.workflow.check").check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
