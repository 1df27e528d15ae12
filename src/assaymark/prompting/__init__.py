"""What every prompt and every reply here is made of."""

from __future__ import annotations
