"""assaymark: measure LLM judges of AI investment agents, and check the claims that rest on their scores.

It records agents' decisions and rationales, has a panel of judges score them blind, measures the judges' reliability
and biases, and decides which claims the scores support: headline, qualified, or no claim. Try ``assaymark demo``.
"""

__all__ = ["__version__", "check"]

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Load `check` on first use, which keeps ``import assaymark`` fast."""
    if name == "check":
        from importlib import import_module

        return import_module("assaymark.workflow.check").check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
