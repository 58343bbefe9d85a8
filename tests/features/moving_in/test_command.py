"""`smartfeeds import --from`: arguments, reports and exit codes."""

import json
import os
import shutil
from pathlib import Path

import pytest

from features.moving_in.prosody_data import ProsodyModel, write_files
from smartfeeds.console import Exit
from support.postgres import PostgresServer
from support.shell import Run

SAMPLE = Path(__file__).parent / "data" / "prosody-13.0-files"
HOST = "pubsub.localhost"
NEWS = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:x:1</id><title>One</title></entry></feed>'


@pytest.fixture
def ready(run: Run) -> Run:
    """A function that runs a command in a folder with a configuration for the component of the sample."""
    run("init", HOST)
    return run


def listed(run: Run) -> list[str]:
    return [node["node"] for node in json.loads(run("node", "list", "--json").stdout)]


def test_report_is_a_table_with_the_problems_below(ready: Run) -> None:
    """[IMP-069] The host is component.jid if none is named. The table has the effects of each node."""
    result = ready("import", "--from", "prosody", str(SAMPLE))

    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0][:4] == ["node", "outcome", "kind", "added"]
    assert ["blog", "created", "feed", "7", "0", "2", "2"] in lines
    assert ["geo", "created", "generic", "3", "0", "1", "1"] in lines
    assert result.stdout.endswith("5 nodes moved.\n")
    assert "private: option pubsub#max_items: a feed never expires items; the limit of 5 is dropped" in result.stderr
    assert sorted(listed(ready)) == sorted(["blog", "geo", "private", "transient", "ünï/c ode?a=b&c"])


def test_report_as_json(ready: Run) -> None:
    """[IMP-069]"""
    report = json.loads(ready("import", "--from", "prosody", str(SAMPLE), "--json", "--node", "private").stdout)

    (node,) = report["nodes"]
    assert (report["from"], report["dry_run"], report["problems"]) == ("prosody", False, [])
    assert (node["node"], node["outcome"], node["added"], node["affiliations"]) == ("private", "created", 1, 4)
    assert node["skipped"] == []
    assert [problem["subject"] for problem in node["problems"]] == ["option pubsub#max_items"]


def test_dry_run_writes_nothing(ready: Run) -> None:
    """[IMP-067] [IMP-069] Its table is that of the import."""
    report = json.loads(ready("import", "--from", "prosody", str(SAMPLE), "--dry-run", "--json").stdout)
    assert report["dry_run"] and [node["outcome"] for node in report["nodes"]] == ["created"] * 5
    assert listed(ready) == []

    text = ready("import", "--from", "prosody", str(SAMPLE), "--dry-run")
    assert text.stdout.endswith("5 nodes would be moved; nothing was written.\n")
    assert listed(ready) == []
    done = ready("import", "--from", "prosody", str(SAMPLE))
    assert text.stdout.splitlines()[:-1] == done.stdout.splitlines()[:-1] != []


def test_nodes_and_kind_are_chosen(ready: Run) -> None:
    """[IMP-063]"""
    ready("import", "--from", "prosody", str(SAMPLE), "--node", "blog", "--node", "geo", "--kind", "generic")

    nodes = {node["node"]: node["kind"] for node in json.loads(ready("node", "list", "--json").stdout)}
    assert nodes == {"blog": "generic", "geo": "generic"}


def test_missing_node_is_a_failure(ready: Run) -> None:
    """[IMP-069]"""
    result = ready("import", "--from", "prosody", str(SAMPLE), "--node", "nowhere", code=Exit.FAILED)
    assert "node nowhere: pubsub.localhost has no such node" in result.stderr


def test_refused_node_is_a_failure_and_the_others_are_moved(ready: Run, tmp_path: Path) -> None:
    """[IMP-064]"""
    people = {"alice@localhost": "owner"}
    models = [ProsodyModel(name, affiliations=people) for name in ("blog?order=created", "blog", "talk")]
    source = write_files(tmp_path / "prosody", HOST, models)

    result = ready("import", "--from", "prosody", str(source), code=Exit.FAILED)

    assert "blog?order=created: node: the name is that of a view" in result.stderr
    assert result.stdout.endswith("2 nodes moved.\n")
    assert listed(ready) == ["blog", "talk"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_nodes_that_moved_before_the_source_failed_are_reported(
    options: tuple[str, ...], ready: Run, tmp_path: Path
) -> None:
    """[IMP-069] The nodes come in the order of their files."""
    source = tmp_path / "prosody"
    shutil.copytree(SAMPLE, source)
    broken = source / "pubsub%2elocalhost" / "pubsub_private.list"
    broken.unlink()
    os.mkfifo(broken)

    result = ready("import", "--from", "prosody", str(source), *options, code=Exit.FAILED)

    moved = ["ünï/c ode?a=b&c", "blog", "geo"]
    assert sorted(listed(ready)) == sorted(moved)
    assert result.stderr.endswith("pubsub_private.list: it is no regular file; remove it\n")
    if options:
        assert [node["node"] for node in json.loads(result.stdout)["nodes"]] == moved
    else:
        assert result.stdout.endswith("3 nodes moved.\n")


def test_node_that_cannot_be_read_is_a_failure_and_the_others_are_moved(ready: Run, tmp_path: Path) -> None:
    """[IMP-012] [IMP-069]"""
    source = tmp_path / "prosody"
    shutil.copytree(SAMPLE, source)
    (source / "pubsub%2elocalhost" / "pubsub_nodes" / "geo.dat").write_text("return {")

    result = ready("import", "--from", "prosody", str(source), code=Exit.FAILED)

    assert "file geo.dat: the node cannot be read" in result.stderr
    assert result.stdout.endswith("4 nodes moved.\n")


def test_mirror_removes_what_the_source_has_lost(ready: Run, tmp_path: Path) -> None:
    """[IMP-068]"""
    source = tmp_path / "prosody"
    shutil.copytree(SAMPLE, source)
    ready("import", "--from", "prosody", str(source))
    (source / "pubsub%2elocalhost" / "pubsub_blog.list").unlink()

    kept = json.loads(ready("import", "--from", "prosody", str(source), "--json", "--node", "blog").stdout)
    assert kept["nodes"][0]["outcome"] == "unchanged"
    removed = json.loads(
        ready("import", "--from", "prosody", str(source), "--json", "--mirror", "--node", "blog").stdout
    )
    assert (removed["nodes"][0]["outcome"], removed["nodes"][0]["deleted"]) == ("updated", 7)


def test_bytes_that_are_no_text_end_neither_form_of_the_report(ready: Run, tmp_path: Path) -> None:
    """[IMP-066] [IMP-069]"""
    source = tmp_path / "prosody"
    shutil.copytree(SAMPLE, source)
    (source / "pubsub%2elocalhost" / "pubsub_nodes" / "odd.dat").write_bytes(
        b'return { ["name"] = "\\255"; ["config"] = { ["title"] = "\\255" };'
        b' ["affiliations"] = { ["\\255@x"] = "owner" } };'
    )

    assert "refused" in ready("import", "--from", "prosody", str(source), code=Exit.FAILED).stdout
    report = json.loads(ready("import", "--from", "prosody", str(source), "--json", code=Exit.FAILED).stdout)
    assert [one["node"] for one in report["nodes"] if one["outcome"] == "refused"] == ["\udcff"]


def test_component_may_have_another_name(run: Run) -> None:
    """[IMP-065]"""
    run("init", "feeds.example.org")
    result = run("import", "--from", "prosody", str(SAMPLE), code=Exit.CONFIG)
    assert "no nodes of feeds.example.org; name another component with --host: pubsub.localhost" in " ".join(
        result.stderr.split()
    )

    run("import", "--from", "prosody", str(SAMPLE), "--host", HOST)
    subscriptions = json.loads(run("sub", "list", "--node", "blog", "--json").stdout)
    assert {one["jid"] for one in subscriptions} == {"alice@localhost", "bob@localhost"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "news.xml"), "Missing argument 'NODE'"),
        (("import", "news.xml", "--node", "a", "--node", "b"), "a document is imported into one NODE"),
        (("import", "news.xml", "--node", "a", "--dry-run"), "require --from"),
        (("import", ".", "--node", "a"), "require --from"),
        (("import", "postgresql://127.0.0.1/x", "--node", "a"), "require --from"),
        pytest.param(
            ("import", "--from", "prosody", ".", "--sync"),
            "--from does not work with",
            marks=pytest.mark.needs("sync_documents"),
        ),
        (("import", "--from", "prosody", ".", "--allow-private"), "--from does not work with"),
        (("import", "--from", "other", "."), "is not"),
    ],
)
def test_wrong_arguments(ready: Run, arguments: tuple[str, ...], message: str) -> None:
    Path("news.xml").write_text(NEWS)
    assert message in ready(*arguments, code=Exit.USAGE).stderr


def test_postgresql_has_the_same_items_as_sqlite(
    run: Run, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-061] [IMP-062] [IMP-068] Exports of both databases are the same."""
    run("init", HOST)
    url = postgres.create_database()
    exports = []
    for store in ("sqlite:///other.db", url):
        monkeypatch.setenv("SMARTFEEDS_STORE__URL", store)
        run("import", "--from", "prosody", str(SAMPLE))
        again = json.loads(run("import", "--from", "prosody", str(SAMPLE), "--mirror", "--json").stdout)
        assert {node["outcome"] for node in again["nodes"]} == {"unchanged"}
        subscriptions = json.loads(run("sub", "list", "--json").stdout)
        exports.append(
            [run("export", "--node", name, "--to", "atom").stdout for name in ("blog", "private")]
            + [f"{one['node']} {one['jid']} {one['state']}" for one in subscriptions]
        )
    postgres.drop_database(url)
    assert exports[0] == exports[1]


def test_source_that_is_no_source(ready: Run) -> None:
    """[IMP-001]"""
    result = ready("import", "--from", "prosody", ".", code=Exit.FAILED)
    assert "has no nodes of any component" in result.stderr
    assert "cannot be read" in ready("import", "--from", "prosody", "mysql://localhost/x", code=Exit.CONFIG).stderr
