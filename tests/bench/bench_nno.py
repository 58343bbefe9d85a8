"""How fast an outline is made of many ESS files on disk: `python tests/bench/bench_nno.py [files [entries in each]]`.

Writes the files into a temporary folder, runs `smartfeeds nno` over it in a process of its own, compares its outline
with a full sort, and prints one line a measurement.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from smartfeeds.features.documents.ess import NnoEntry, read_nno

BUILD_S = 1_700_000_040
WANTED = (50, 1_000, 100_000)
A_FOLDER = 1_000
ROOT = Path(__file__).parents[2]
# The peak of this process alone: what getrusage tells of a child counts its parent's memory before the exec.
MEASURED = """
import re, sys
from smartfeeds.cli import main
try:
    main()
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def entries_of(number: int, count: int) -> Iterator[tuple[int, int]]:
    """(minutes, checksum) pairs, the same in every run, newest first; times are drawn from a year."""
    drawn = hashlib.shake_128(str(number).encode()).digest(4 * count)
    minutes = sorted(int.from_bytes(drawn[at : at + 3]) % 525_600 for at in range(0, len(drawn), 4))
    yield from zip(minutes, drawn[3::4], strict=True)


def write(folder: Path, files: int, count: int) -> list[tuple[int, str, int]]:
    """Writes the files; every entry as (time, feed, checksum), newest first."""
    everything = []
    for number in range(files):
        place = folder / f"{number // A_FOLDER:04d}"
        place.mkdir(exist_ok=True)
        url = f"https://feeds.example.org/{number:07d}/rss.xml"
        pairs = list(entries_of(number, count))
        text = f"{BUILD_S}, {url}, " + ", ".join(f"{minutes},{checksum}" for minutes, checksum in pairs)
        (place / f"{number:07d}.ess").write_text(text, "ascii")
        everything += [(BUILD_S - 60 * minutes, url, checksum) for minutes, checksum in pairs]
    everything.sort(key=lambda entry: -entry[0])
    return everything[: max(WANTED)]


def run(folder: Path, wanted: int) -> tuple[tuple[NnoEntry, ...], float, float]:
    """The outline, the seconds and the peak megabytes of `smartfeeds nno`."""
    out = folder.parent / "out.nno"
    command = [sys.executable, "-c", MEASURED, "nno", str(folder), "-n", str(wanted), "--output", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "component")}
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    took_s = time.perf_counter() - began
    return read_nno(out.read_bytes()).entries, took_s, int(done.stdout) / 1024


def main(files: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "ess"
        folder.mkdir()
        began = time.perf_counter()
        everything = write(folder, files, count)
        print(f"{files:,} files of {count} entries written in {time.perf_counter() - began:.1f} s")
        for wanted in WANTED:
            found, took_s, peak_mb = run(folder, wanted)
            times = [entry.time_s for entry in found]
            same = times == [entry[0] for entry in everything[: len(times)]]
            print(
                f"the newest {wanted:,}: {took_s:.1f} s, {files / took_s:,.0f} files/s, {peak_mb:.0f} MB at most, "
                f"{len(found):,} entries written, {'as a full sort' if same else 'NOT as a full sort'}"
            )
            if not same:
                raise SystemExit(1)


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(numbers[0] if numbers else 100_000, numbers[1] if len(numbers) > 1 else 20)
