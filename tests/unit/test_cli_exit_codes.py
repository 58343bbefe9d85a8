"""Exit codes of commands that read or write documents: the wrong format, damaged documents, files that cannot be
written."""

from pathlib import Path
from typing import Any

import pytest

from smartfeeds.console import Exit
from support.shell import Run, shell_in

# The commands of features, which `tools/without` takes away.
OF_FEATURES = {
    "import --sync": "sync_documents",
    "export --sync": "sync_documents",
    "merge": "sync_documents",
    "convert": "documents",
    "nno": "nno",
}
READERS = {
    "import": ("import", "{file}", "--node", "news"),
    "import --sync": ("import", "{file}", "--node", "news", "--sync"),
    "convert": ("convert", "{file}", "--to", "rss"),
    "merge": ("merge", "{file}", "{file}"),
}
WRITERS = {
    "export": ("export", "--node", "news", "--to", "atom"),
    "export --sync": ("export", "--node", "news", "--to", "atom", "--sync"),
    "convert": ("convert", "news.xml", "--to", "rss"),
    "merge": ("merge", "news.xml", "news.xml"),
    "nno": ("nno", "news.ess"),
    "init": ("init", "feeds.example.org"),
}
FOREIGN = {
    "text": b"not a feed",
    "image": b"\x89PNG\r\n\x1a\n\0\0",
    "page": b"<html><body>Hello</body></html>",
    "drawing": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    "JSON": b'{"a": 1}',
    "ESS": b"1503411300, http://example.com/rss.xml, 0,92",
}

FEED = b'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>News</title></feed>'


def params(commands: dict[str, tuple[str, ...]]) -> list[Any]:
    return [
        pytest.param(command, id=name, marks=[pytest.mark.needs(OF_FEATURES[name])] if name in OF_FEATURES else [])
        for name, command in commands.items()
    ]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with a configuration, a database and two documents."""
    shell = shell_in(tmp_path, monkeypatch)
    shell("init", "feeds.example.org")
    shell("node", "create", "news")
    Path("news.xml").write_bytes(FEED)
    Path("news.ess").write_bytes(FOREIGN["ESS"])
    return shell


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("command", params(READERS))
def test_document_of_another_format_is_a_wrong_argument(run: Run, command: tuple[str, ...], data: bytes) -> None:
    Path("document").write_bytes(data)

    result = run(*(part.format(file="document") for part in command), code=Exit.USAGE)
    assert result.stderr.splitlines()[-1].startswith("smartfeeds: document: the ")


@pytest.mark.parametrize("command", params(READERS))
def test_damaged_document_is_no_wrong_argument(run: Run, command: tuple[str, ...]) -> None:
    """A merge reads nothing that is not well-formed; an import repairs a feed, but not other XML."""
    is_strict = "--sync" in command or command[0] == "merge"
    Path("document").write_bytes(FEED.replace(b"</title>", b"</name>") if is_strict else b"<list><name></list>")

    result = run(*(part.format(file="document") for part in command), code=Exit.FAILED)
    assert "smartfeeds: document: the document has a start tag and an end tag that do not match" in result.stderr


@pytest.mark.parametrize("path", ["none/out", "news.xml/out"])
@pytest.mark.parametrize("command", params(WRITERS))
def test_output_that_cannot_be_written_has_the_code_of_the_configuration(
    run: Run, command: tuple[str, ...], path: str
) -> None:
    result = run(*command, "--output", path, code=Exit.CONFIG)
    assert f"smartfeeds: cannot write {path}: " in result.stderr
