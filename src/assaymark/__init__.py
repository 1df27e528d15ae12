"""assaymark: an assay office for LLM judges of AI investment agents.

It records what agents decide and why, has a panel of judges grade it blind, measures the judges as instruments, and
says which claims may be made: headline, qualified, or no claim. Start with ``assaymark demo``.
"""

__all__ = ["__version__"]

__version__ = "0.2.0"
