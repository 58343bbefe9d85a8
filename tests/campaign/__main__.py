"""`PYTHONPATH=tests python -m campaign NAME --seed N --count K`: runs a campaign and records its result.

Each run prints its seeds, its history files, the verdict and the times to recover, and adds a row to
docs/reliability.jsonl. `python -m campaign page` writes the tables of docs/reliability.md from these rows.
"""

import argparse
import asyncio
import math
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from campaign import report
from campaign.clock import clock
from campaign.disk import disk
from campaign.failover import failover
from campaign.federation import federation
from campaign.fuzz import fuzz
from campaign.kill import kill
from campaign.pieces import Campaign, Task, Total
from campaign.power import power
from campaign.shared import partition, shared
from campaign.soak import soak

CAMPAIGNS: dict[str, Campaign] = {
    "kill": kill,
    "power": power,
    "disk": disk,
    "clock": clock,
    "federation": federation,
    "fuzz": fuzz,
    "failover": failover,
    "shared": shared,
    "partition": partition,
    "soak": soak,
}


async def run(name: str, task: Task, total: Total) -> None:
    """Runs a campaign, prints each piece and adds it to the total."""
    async for piece in CAMPAIGNS[name](task):
        total.add(piece)
        verdict = "sound" if piece.verdict.sound and not piece.problems else "BROKEN"
        acknowledged = piece.verdict.counts["acknowledged"]
        print(
            f"seed {piece.seed}: {piece.faults} faults, {acknowledged} acknowledged, {verdict}; {piece.history}",
            flush=True,
        )
        for problem in piece.problems:
            print(f"  {problem}", flush=True)


def main() -> None:
    """Runs from the command line."""
    # Servers that the campaign starts are ended also when the campaign is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="campaign", description="Breaks the service under load and judges it.")
    parser.add_argument("name", choices=[*CAMPAIGNS, "page"])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=20, help="faults to inject")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no piece after this time")
    parser.add_argument("--defect", default="", help="a defect of campaign.defects, for a negative control")
    parser.add_argument("--variant", default="", help="a variant of the campaign")
    parser.add_argument("--folder", type=Path, help="the folder of the histories; default: a new one in build/campaign")
    parser.add_argument("--no-record", action="store_true", help="add no row to docs/reliability.jsonl")
    options = parser.parse_args()
    if options.name == "page":
        report.write_page()
        return
    os.nice(10)
    base = options.folder or report.ROOT / "build" / "campaign"
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{options.name}-{options.seed}-", dir=base))
    began_s = time.monotonic()
    until_s = began_s + 60 * options.minutes
    task = Task(options.seed, options.count, folder, options.defect, options.variant, until_s)
    total = Total()
    try:
        asyncio.run(run(options.name, task, total))
    except KeyboardInterrupt:
        print("interrupted: the record gets the pieces that have ended")
    if not total.faults:
        sys.exit(1)
    row = report.row(options.name, task, total, time.monotonic() - began_s)
    print(report.summary(row))
    for finding in total.findings[:20]:
        print(finding)
    if not options.no_record:
        report.append(row)
    sys.exit(1 if total.findings else 0)


if __name__ == "__main__":
    main()
