"""From a number back to what was asked: pages of judgments, of decisions, and of single calls with their replies. A
measurement links to the judgments that it rests on, a judgment to its call, and a call to the texts that it showed. All
of it is static: pages that work from a file, each below a megabyte, with every text stored once."""

from __future__ import annotations
