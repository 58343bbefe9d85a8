"""The benchmark runs every row against ours, with tiny counts; nothing is timed here."""

import io
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench import bench_merge, bench_moving, bench_sources, fairness, hub, report, rows, runs, web, work
from bench.wire import BenchError


@pytest.fixture
def collect() -> runs.Collector:
    return runs.Collector(work.SMOKE, io.StringIO(), print)


def test_bench_tiny_counts_fill_every_row(collect: runs.Collector, tmp_path: Path) -> None:
    """Each row has a number of ours, and the table shows it."""
    runs.measure_echo(collect, tmp_path / "echo")
    runs.measure_ours(collect, tmp_path / "ours")
    runs.measure_routed("prosody", collect, tmp_path / "routed")
    found = {row: [number.value for number in numbers] for row, numbers in collect.results["ours"].items()}
    expected = {row.name for row in rows.rows(work.SMOKE) if not row.name.startswith("through_ejabberd")}
    assert set(found) == expected
    assert all(value > 0 for row, values in found.items() for value in values if not row.endswith("_cpu"))
    assert set(collect.results["echo"]) >= {"publish_64", "publish_1", "notify"}
    shown = report.table(collect.results, rows.rows(work.SMOKE), {})
    assert shown.count("\n") == len(rows.rows(work.SMOKE)) + 1


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


@pytest.mark.parametrize("form", ["files", "sql"])
def test_bench_tiny_counts_of_moving(tmp_path: Path, form: str) -> None:
    """[IMP-061] [IMP-062] The node is written in several transactions, and its digest is that of the source."""
    lines = list(bench_moving.measure(tmp_path, form, 1_200))
    assert lines[0].startswith(f"{form}: 1,200 items in") and "the digests are equal" in lines[-1]


def test_bench_of_moving_compares_the_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_moving, "source_digest", lambda _count: "other")
    with pytest.raises(BenchError, match="the digests differ"):
        list(bench_moving.measure(tmp_path, "sql", 10))
