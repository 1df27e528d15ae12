"""A worker in a process of its own, whose model sends a bill before it answers. Started by test_workers.py.

Arguments: URL of the ledger, file of bills, most calls at once. The last line printed is the summary.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys

from assaymark.engine import Ledger, Reply, run_worker


class Billing:
    """Bills each call by its key and its process; the bill is out before the reply is."""

    def __init__(self, path):
        self.bills = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.rng = random.Random(os.getpid())

    async def complete(self, call):
        os.write(self.bills, f"{call.key} {os.getpid()}\n".encode())
        await asyncio.sleep(self.rng.uniform(0.02, 0.06))
        return Reply(text=f"reply to {call.key}", model="billing-1")


def main(url, bills, concurrency):
    with Ledger.open(url) as ledger:
        model = Billing(bills)
        summary = run_worker(ledger, {"reference/echo": model}, concurrency=int(concurrency), lease_s=1.0)
    sys.stdout.write(json.dumps([summary.made, summary.in_flight_bound, summary.orphaned, summary.left]))


if __name__ == "__main__":
    main(*sys.argv[1:])
