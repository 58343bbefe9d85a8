"""`smartfeeds gdpr` and `smartfeeds blocklist` from a shell."""

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import Exit
from smartfeeds.features.privacy import personal_export
from smartfeeds.features.privacy.erasures import LeftReason
from support.shell import Run, shell_in

JID = "zoe.distinctive@people.example.net"


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with a configuration and the node news."""
    invoke = shell_in(tmp_path, monkeypatch)
    invoke("init", "feeds.example.org")
    invoke("node", "create", "news")
    return invoke


def test_erase_status_and_export(ready: Run, tmp_path: Path) -> None:
    """[OPS-015] [OPS-020] [OPS-025] [OPS-027]"""
    ready("node", "allow", "news", JID, "--as", "publisher")
    assert "The data of" in ready("gdpr", "export", JID, "--output", "zoe.zip").stdout
    with zipfile.ZipFile(tmp_path / "zoe.zip") as archive:
        assert json.loads(archive.read("affiliations.json")) == [{"affiliation": "publisher", "node": "news"}]
    assert "has no data of" in ready("gdpr", "export", "nobody@example.org", "--output", "no.zip").stdout
    with zipfile.ZipFile(tmp_path / "no.zip") as archive:
        assert json.loads(archive.read("affiliations.json")) == []

    result = ready("gdpr", "erase", JID, "--yes")
    assert "affiliations: 1" in result.stdout
    assert "backups, logs, replicas" in result.stdout
    assert json.loads(ready("gdpr", "status", JID, "--json").stdout)["phase"] == "done"
    assert "left to erase" in ready("gdpr", "erase", JID, "--yes").stdout
    files = [path for path in tmp_path.rglob("*.db*") if path.is_file()]
    assert files
    assert not any(JID.encode() in path.read_bytes() for path in files)


def test_export_of_many_items_is_written_in_parts(ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-020] Parts of the store make one document of each kind, which only the operator can read."""
    monkeypatch.setattr(personal_export, "ITEM_CHUNK", 2)
    ready("node", "allow", "news", JID, "--as", "publisher")
    names = [f"item-{number}" for number in range(5)]
    for name in names:
        ready("publish", "news", f"Text of {name}", "--id", name, "--by", JID)

    ready("gdpr", "export", JID, "--output", "zoe.zip")

    assert stat.S_IMODE((tmp_path / "zoe.zip").stat().st_mode) == 0o600
    with zipfile.ZipFile(tmp_path / "zoe.zip") as archive:
        assert archive.testzip() is None
        assert [item["id"] for item in json.loads(archive.read("items.json"))] == names
        entries = etree.fromstring(archive.read("items.atom")).findall("{http://www.w3.org/2005/Atom}entry")
        assert [entry.findtext("{http://www.w3.org/2005/Atom}title") for entry in entries] == [
            f"Text of {name}" for name in names
        ]
        assert json.loads(archive.read("versions.json")) == []
    assert "zoe.zip exists already" in ready("gdpr", "export", JID, "--output", "zoe.zip", code=Exit.CONFIG).stderr


def test_private_file_is_private_from_the_start(tmp_path: Path) -> None:
    """[OPS-020] Also if a process that was killed has left its file behind."""
    (tmp_path / ".zoe.zip.partial").touch(mode=0o644)
    with whole_file(tmp_path / "zoe.zip", private=True) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


@pytest.mark.parametrize("options", [(), pytest.param(("--sync",), marks=pytest.mark.needs("sync_documents"))])
def test_export_is_imported_elsewhere(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """[OPS-020] Another service reads it, with its history and without."""
    ready("node", "allow", "news", JID, "--as", "publisher")
    for number in ("one", "two"):
        ready("publish", "news", f"Title {number}", "--id", number, "--by", JID)
    ready("gdpr", "export", JID, "--output", "zoe.zip")
    with zipfile.ZipFile(tmp_path / "zoe.zip") as archive:
        archive.extract("items.atom", tmp_path)

    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", "feeds.elsewhere.example")
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", "sqlite:///elsewhere.db")
    ready("node", "create", "copy")
    ready("import", "items.atom", "--node", "copy", *options)

    exported = ready("export", "--node", "copy", "--to", "atom", *options).stdout
    assert (exported.count("Title one"), exported.count("Title two")) == (1, 1)
    assert ("sx:history" in exported) == bool(options)


def test_repeated_erasure_keeps_the_block_and_reports_the_end(ready: Run) -> None:
    """[OPS-020] [OPS-028] The message of the first command asks for a second one with --now."""
    ready("node", "allow", "news", JID, "--as", "publisher")
    ready("publish", "news", "Hello", "--id", JID, "--by", JID)
    ready("sub", "add", "news", "bob@example.org")
    waiting = ready("gdpr", "erase", JID, "--yes", "--block", code=Exit.FAILED)
    text = " ".join(waiting.stdout.split())
    assert "shows the phase done: it then removes the bytes of deleted rows" in text
    assert "To wait no longer, repeat it with --now." in text

    assert f"{JID} is erased." in ready("gdpr", "erase", JID, "--yes", "--now").stdout

    rows = json.loads(ready("blocklist", "list", "--json").stdout)
    assert rows == [{"list": "deny", "name": "(1 erased)"}]
    assert f"Nothing of {JID} was left to erase." in ready("gdpr", "erase", JID, "--yes", "--now").stdout


def test_nodes_are_not_transferred_to_the_erased_person(ready: Run) -> None:
    """[OPS-024]"""
    ready("node", "create", "own", "--owner", JID)
    result = ready("gdpr", "erase", JID, "--yes", "--nodes", f"transfer={JID}", code=Exit.REFUSED)
    assert "cannot own nodes; name another next owner" in " ".join(result.stderr.split())
    ready("gdpr", "erase", JID, "--yes", "--nodes", "transfer=bob@example.org")
    assert "bob@example.org" in ready("node", "affiliations", "own").stdout


def test_status_as_text_has_the_phase_the_counts_and_the_rest(ready: Run) -> None:
    """[OPS-028] Who reads only cannot confirm, and what is elsewhere is named."""
    ready("node", "allow", "news", JID, "--as", "publisher")
    ready("publish", "news", "Hello", "--id", JID, "--by", JID)
    ready("sub", "add", "news", "bob@example.org")
    ready("gdpr", "erase", JID, "--yes", code=Exit.FAILED)
    values = json.loads(ready("gdpr", "status", JID, "--json").stdout)

    lines = ready("gdpr", "status", JID).stdout.splitlines()

    assert lines[0] == f"phase: {values['phase']}"
    assert [line for line in lines if line.startswith("affiliations:")] == ["affiliations: 1"]
    assert f"node news: erased up to key {values['nodes'][0]['key']}" in lines
    assert (
        [line for line in lines if line.startswith("news to ")]
        == [f"news to {row['follower']}: {row['state']}" for row in values["followers"]]
        != []
    )
    assert "backups, logs, replicas" in " ".join(lines)


def test_both_reports_name_the_items_left_alike(ready: Run) -> None:
    """[OPS-028] A program reads the report of the erasure and the later ones with the same keys."""
    ready("node", "allow", "news", JID, "--as", "publisher")
    ready("publish", "news", f"What {JID} said", "--id", "about")
    erased = json.loads(ready("gdpr", "erase", JID, "--yes", "--json").stdout)
    status = json.loads(ready("gdpr", "status", JID, "--json").stdout)

    assert erased["left"] == status["left"] == [{"node": "news", "item": "about", "reason": LeftReason.MENTION.value}]
    assert erased["left_texts"] == status["left_texts"]


def test_status_of_somebody_else_is_refused(ready: Run) -> None:
    ready("gdpr", "status", JID, code=Exit.REFUSED)


def test_blocklist(ready: Run) -> None:
    """[OPS-061]"""
    ready("blocklist", "add", "Spam.Example")
    ready("blocklist", "add", "good.example", "--allow")
    rows = json.loads(ready("blocklist", "list", "--json").stdout)
    assert rows == [{"list": "deny", "name": "spam.example"}, {"list": "allow", "name": "good.example"}]
    assert "is no longer on the list deny" in ready("blocklist", "remove", "spam.example").stdout
    assert "was not on the list deny" in ready("blocklist", "remove", "spam.example").stdout
    assert len(json.loads(ready("blocklist", "list", "--json").stdout)) == 1
    ready("blocklist", "add", "a@b/c", code=Exit.USAGE)


@pytest.mark.parametrize("name", ["*", "*.spam.example", "eve@*.spam.example"])
def test_blocklist_has_no_wildcards(ready: Run, name: str) -> None:
    """[OPS-061] Such an entry would match nobody."""
    assert "each of its subdomains" in " ".join(ready("blocklist", "add", name, code=Exit.USAGE).stderr.split())


def test_block_of_an_erased_person_can_be_removed(ready: Run) -> None:
    """[OPS-028] [OPS-061] The list has a digest of the person, whom the operator names."""
    ready("node", "allow", "news", JID)
    ready("gdpr", "erase", JID, "--yes", "--block")
    assert "was not on the list" in ready("blocklist", "remove", "bob@example.org").stdout
    assert "is no longer on the list" in ready("blocklist", "remove", JID).stdout
    assert json.loads(ready("blocklist", "list", "--json").stdout) == []


def test_other_spelling_of_the_domain_is_named(ready: Run) -> None:
    """[OPS-020] [OPS-025] The service knows the two spellings as two users."""
    letters, ascii_only = "zoe@b\u00fccher.example", "zoe@xn--bcher-kva.example"
    assert ascii_only in ready("gdpr", "export", letters, "--output", "zoe.zip").stdout
    assert letters in ready("gdpr", "erase", ascii_only, "--yes").stdout
    assert "may also spell" not in ready("gdpr", "erase", JID, "--yes").stdout
