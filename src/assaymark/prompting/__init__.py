"""What every prompt and every reply here is made of.

Fences that their content cannot close, the material of a context as text and back, which of a decision's texts are
read and how long they are, and JSON read without a guess. Agents and judges read the same rendering of a context.
"""

from __future__ import annotations
