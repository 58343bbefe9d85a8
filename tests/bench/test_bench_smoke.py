"""The benchmark runs every row against ours, with tiny counts; nothing is timed here."""

import io
import json
import re
import subprocess
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from bench import (
    bench_merge,
    bench_moving,
    bench_sources,
    fairness,
    hub,
    report,
    rows,
    runs,
    targets,
    versions,
    web,
    work,
)
from bench.wire import BenchError


@pytest.fixture
def collect() -> runs.Collector:
    return runs.Collector(work.SMOKE, io.StringIO(), print)


def _refuse(_folder: Path) -> targets.Target:
    raise BenchError("unknown setting")


def test_bench_tiny_counts_fill_every_row(collect: runs.Collector, tmp_path: Path) -> None:
    """Each row has a number of ours, and the table shows it."""
    runs.measure_echo(collect, tmp_path / "echo")
    present = partial(targets.version, targets.PACKAGE)
    starters = {"ours": present, "first": present, "broken": _refuse}
    runs.measure_rounds(starters, collect, tmp_path / "rounds")
    assert "broken" not in collect.results
    runs.measure_large(collect, tmp_path / "large")
    runs.measure_routed("prosody", collect, tmp_path / "routed")
    found = {row: [number.value for number in numbers] for row, numbers in collect.results["ours"].items()}
    expected = {row.name for row in rows.rows(work.SMOKE) if not row.name.startswith("through_ejabberd")}
    assert set(found) == expected
    assert all(value > 0 for row, values in found.items() for value in values if not row.endswith("_cpu"))
    assert set(collect.results["echo"]) >= {"publish_64", "publish_1", "notify"}
    shown = report.table(collect.results, rows.rows(work.SMOKE), {"first": report.FIRST})
    assert shown.count("\n") == len(expected) + 1
    assert re.search(r"(?m)^\| publish, 64 in flight \|.* \([0-9.]+x\) \|$", shown)


def test_bench_tiny_counts_fill_every_row_over_http(collect: runs.Collector, tmp_path: Path) -> None:
    """Each row over HTTP has a number of ours, and the table shows it beside that of a mere handler."""
    web.measure(collect, tmp_path, ("aiohttp",))
    found = {row: [number.value for number in numbers] for row, numbers in collect.results["ours"].items()}
    assert set(found) == {row.name for row in rows.web_rows(work.SMOKE)}
    assert all(value > 0 for row, values in found.items() for value in values if "memory" not in row)
    shown = report.table(collect.results, rows.web_rows(work.SMOKE), {"aiohttp": "aiohttp"})
    assert shown.count("\n") == len(rows.web_rows(work.SMOKE)) + 1
    assert shown.splitlines()[2].count("/s") == 3


def test_bench_tiny_counts_fill_every_row_of_the_hub(collect: runs.Collector, tmp_path: Path) -> None:
    """Every callback gets the item, and publishes meanwhile are measured."""
    hub.measure(collect, tmp_path / "hub")
    found = collect.results["ours"]
    assert set(found) == {row.name for row in rows.hub_rows(work.SMOKE)}
    assert all(number.value > 0 for numbers in found.values() for number in numbers)


def test_bench_tiny_counts_fill_every_row_of_merging(collect: runs.Collector, tmp_path: Path) -> None:
    """Each size has its numbers, the result of the merge is checked, and a wrong one is told."""
    bench_merge.measure(collect, tmp_path / "merge")
    found = collect.results["ours"]
    assert set(found) == {row.name for row in rows.merge_rows(work.SMOKE)}
    assert all(number.value > 0 for numbers in found.values() for number in numbers)
    assert report.text(collect.results, work.SMOKE, {}).count("| merge 120 items into 120") == 3

    local, incoming, made = bench_merge.write(tmp_path, 10)
    with pytest.raises(BenchError, match="the merge is wrong"):
        bench_merge.run(local, incoming, replace(made, added=made.added + 1))


def test_bench_tiny_counts_fill_every_row_of_sources(collect: runs.Collector, tmp_path: Path) -> None:
    bench_sources.measure(collect, tmp_path / "sources")
    assert set(collect.results["ours"]) == {row.name for row in rows.source_rows()}
    assert "feeds an hour" in report.text(collect.results, work.SMOKE, {})


def test_bench_tiny_counts_fill_every_row_of_fairness(collect: runs.Collector, tmp_path: Path) -> None:
    """Each flood gives both users' latencies alone and beside it, and the memory is read three times."""
    fairness.measure(collect, tmp_path / "fairness")
    found = collect.results["ours"]
    users = [f"{user}{suffix}" for user in rows.QUIET_USERS for suffix in ("", "_alone")]
    floods = {f"fair_{name}_{user}" for name in rows.FLOODS for user in users}
    assert set(found) == floods | {f"fair_rss_{number}" for number in range(3)}
    assert all(number.value > 0 for numbers in found.values() for number in numbers)
    assert set(fairness.makers(10)) == set(rows.FLOODS)
    shown = report.text(collect.results, work.SMOKE, {})
    assert all(title in shown for title in rows.FLOODS.values())
    assert "Resident memory: before" in shown


def test_bench_results_read_back_give_the_same_table(tmp_path: Path) -> None:
    """The lines that a run leaves are enough for its table."""
    file = tmp_path / "results.jsonl"
    with file.open("w") as lines:
        lines.write(json.dumps({"machine": {"CPU": "one"}, "scale": asdict(work.SMOKE)}) + "\n")
        kept = runs.Collector(work.SMOKE, lines, print)
        kept.take("ours", [work.Number("publish_64", 100.0, "40 items"), work.Number("notify", 7.0)])
        kept.take("prosody-files", [work.Number("publish_64", 50.0)])
    shown = report.read([file])
    assert shown == report.text(kept.results, work.SMOKE, {"CPU": "one"})
    assert "50.0/s (2.00x)" in shown


def test_bench_names_what_is_slower_than_the_published_table() -> None:
    """A row counts by its ratio to the first version: rates of two runs say nothing about the code."""
    titles = {row.name: row.title for row in rows.rows(work.SMOKE)}
    lines = [f"| {titles[name]} | 9/s | 9/s (1.00x) |" for name in ("publish_64", "publish_64_cpu", "create", "notify")]
    other = f"| work | other (ours is) |\n| {titles['publish_64']} | 9/s (9.00x) |\n\n"
    page = "\n".join((other, f"| work | ours | {report.FIRST} (ours is) |", *lines))
    measured = {"publish_64": (94, 100), "publish_64_cpu": (106, 100), "create": (96, 100), "list": (1, 100)}
    results = {
        name: {row: [work.Number(row, values[number])] for row, values in measured.items()}
        for number, name in enumerate(("ours", "first"))
    }
    slower = list(report.slower_rows(results, rows.rows(work.SMOKE), page))
    assert slower == [
        f"- {titles['publish_64']}: 0.94x, published 1.00x",
        f"- {titles['publish_64_cpu']}: 1.06x, published 1.00x",
    ]


def test_bench_has_the_package_of_a_version_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    module = tmp_path / "component" / "smartfeeds" / "one.py"
    module.parent.mkdir(parents=True)
    module.write_text("1")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    module.write_text("2")
    folder = tmp_path / "versions"
    package = versions.tree("HEAD", tmp_path, folder)
    assert (package / "smartfeeds" / "one.py").read_text() == "1"
    assert versions.tree("HEAD", tmp_path, folder) == package


def test_bench_leaves_a_version_out_that_a_copy_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tarball has no history."""
    monkeypatch.setattr(versions, "tree", partial(versions.tree, repository=tmp_path))
    said: list[str] = []
    found = runs.services(["1234567"], said.append)
    assert set(found) == {"ours", *targets.PEERS}
    assert [line.partition(":")[0].strip() for line in said] == ["first is left out", "1234567 is left out"]


@pytest.mark.parametrize("form", ["files", "sql"])
def test_bench_tiny_counts_of_moving(tmp_path: Path, form: str) -> None:
    """[IMP-061] [IMP-062] The node is written in several transactions, and its digest is that of the source."""
    lines = list(bench_moving.measure(tmp_path, form, 1_200))
    assert lines[0].startswith(f"{form}: 1,200 items in") and "the digests are equal" in lines[-1]


def test_bench_of_moving_compares_the_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_moving, "source_digest", lambda _count: "other")
    with pytest.raises(BenchError, match="the digests differ"):
        list(bench_moving.measure(tmp_path, "sql", 10))
