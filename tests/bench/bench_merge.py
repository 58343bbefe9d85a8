"""How fast two feeds with sync data are merged, and how much memory that takes: the target `merge` of the benchmark.

Writes two Atom feeds of 1 KB an item into a temporary folder and merges them with `smartfeeds merge` in a process of
its own. Half of the items are in both feeds: a third of these alike, a third newer on one side, a third changed on
both. Checks the report and that every item is there, for each size.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.rows import merge_sizes
from bench.runs import Collector, fresh
from bench.targets import ROOT
from bench.wire import BenchError
from bench.work import Number, Numbers

# The peak of this process alone: what getrusage tells of a child counts its parent's memory before the exec.
MEASURED = """
import re, resource, sys
from smartfeeds.cli import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
    print(used.ru_utime, used.ru_stime, peak)
"""
HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sx="http://feedsync.org/2007/feedsync">
<id>urn:x-bench:{name}</id><title>The feed {name}</title><updated>2026-01-01T00:00:00Z</updated>
"""
ITEM = """<entry><id>urn:x-bench:{number}</id><title>Number {number}, by {by}</title>\
<updated>2026-01-01T00:00:0{version}Z</updated>\
<link rel="alternate" href="https://feeds.example.org/items/{number:07d}.html"/>\
<author><name>{by}</name></author><content type="html">{text}</content>\
<sx:sync id="urn:x-bench:{number}" updates="{version}">{history}</sx:sync></entry>
"""
STAMP = '<sx:history sequence="{0}" when="2026-01-01T00:00:0{0}Z" by="feeds.example%2F{1}@example.org"/>'


@dataclass(frozen=True, slots=True)
class Made:
    """What a merge of two feeds has to come to."""

    added: int
    updated: int
    conflict: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What one merge took: seconds on the clock, of the processor in user and system mode, megabytes at its peak."""

    wall_s: float
    user_s: float
    system_s: float
    peak_mb: float


def item(number: int, editors: str) -> str:
    """An item of about 1 KB; `editors` are who changed it, one letter each, the first one first."""
    words = hashlib.shake_128(f"{number} {editors}".encode()).hexdigest(180)
    text = "&lt;p>" + " ".join(words[at : at + 1 + at % 9] for at in range(0, 360, 5)) + "&lt;/p>"
    history = "".join(STAMP.format(n, editors[n - 1]) for n in range(len(editors), 0, -1))
    return ITEM.format(number=number, version=len(editors), by=editors[-1], text=text, history=history)


def items(side: str, count: int) -> Iterator[str]:
    """One side's items: every second one is its own, and of three shared ones one is of each kind."""
    for number in range(count):
        shared, kind = number // 2, number // 2 % 3
        if number % 2:
            yield item(2 * count + 2 * number + (side == "b"), side)
        elif kind == 0:
            yield item(shared, "ca")
        elif kind == 1:
            newer = "ab"[shared // 3 % 2]
            yield item(shared, "ca" + newer if side == newer else "ca")
        else:
            yield item(shared, "ca" + side)


def write(folder: Path, count: int) -> tuple[Path, Path, Made]:
    """The two feeds."""
    files = folder / "a.atom", folder / "b.atom"
    for file, side in zip(files, "ab", strict=True):
        with file.open("w", encoding="ascii") as out:
            out.write(HEAD.format(name=side))
            out.writelines(items(side, count))
            out.write("</feed>\n")
    shared = (count + 1) // 2
    alike, newer, rival = (len(range(kind, shared, 3)) for kind in range(3))
    theirs = newer // 2
    return *files, Made(count - shared, theirs, rival, alike + newer - theirs)


def run(local: Path, incoming: Path, made: Made) -> Taken:
    """Merges. Raises BenchError where the result is not what it has to be."""
    out = local.parent / "merged.atom"
    command = [sys.executable, "-c", MEASURED, "merge", str(local), str(incoming), "--output", str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "component")}
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    wall_s = time.perf_counter() - began
    text, _, numbers = done.stdout.rstrip().rpartition("\n")
    report = json.loads(text)
    found = Made(*(report[name] for name in ("added", "updated", "conflict", "unchanged")))
    with out.open("rb") as merged:
        # The entries of conflicts stand on the line of their item.
        count = sum(line.startswith(b"<entry") for line in merged)
    expected = made.added * 2 + made.updated + made.conflict + made.unchanged
    if (found, count, report["refused"]) != (made, expected, []):
        raise BenchError(f"the merge is wrong: {found} and {count:,} items, not {made} and {expected:,}")
    user_s, system_s, peak_kb = map(float, numbers.split())
    return Taken(wall_s, user_s, system_s, peak_kb / 1024)


def measure(collect: Collector, folder: Path) -> None:
    """Each size as often as the benchmark runs."""
    place = fresh(folder)
    for count in merge_sizes(collect.scale):
        local, incoming, made = write(place, count)
        size_mb = (local.stat().st_size + incoming.stat().st_size) / 1e6
        for _ in range(collect.scale.runs):
            collect.take("ours", _numbers(f"merge_{count}", run(local, incoming, made), size_mb))
    shutil.rmtree(place)


def _numbers(row: str, taken: Taken, size_mb: float) -> Numbers:
    yield Number(row, taken.wall_s, f"{size_mb:.0f} MB read")
    yield Number(f"{row}_cpu", taken.user_s, f"and {taken.system_s:.1f} s of the system")
    yield Number(f"{row}_memory", taken.peak_mb)
