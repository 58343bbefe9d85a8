"""A list of subscriptions as a feed: published, shared as OPML with sync data, and turned into sources."""

import json
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.formats.opml import read_outline
from smartfeeds.sync.lexis import SSE_NS
from support.shell import shell_in

LIST = """<opml version="2.0"><head><title>Blogs</title></head><body>
<outline text="Ann" type="rss" xmlUrl="http://ann.example/feed" htmlUrl="http://ann.example/"/>
<outline text="Bob" type="rss" xmlUrl="http://bob.example/atom"/></body></opml>"""


def test_list_in_a_feed_is_a_subscription_list_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SSE-002] [SF-008] Each subscription is an item, so a list is shared, merged and followed as every feed is."""
    run = shell_in(tmp_path, monkeypatch)
    run("init", "feeds.example.org")
    run("node", "create", "blogs", "--option", "sync_dialect=sse")
    run("import", "-", "--node", "blogs", stdin=LIST)

    run("export", "--node", "blogs", "--to", "opml", "--output", "blogs.opml")
    lines = [
        {name: one.attributes.get(name) for name in ("type", "xmlUrl", "htmlUrl")}
        for one in read_outline(Path("blogs.opml").read_bytes()).outlines
    ]
    assert lines == [
        {"type": "rss", "xmlUrl": "http://ann.example/feed", "htmlUrl": "http://ann.example/"},
        {"type": "rss", "xmlUrl": "http://bob.example/atom", "htmlUrl": None},
    ]
    run("source", "import", "blogs.opml", "--node", "planet")
    sources = json.loads(run("source", "list", "--json").stdout)
    assert sorted(one["address"] for one in sources) == ["http://ann.example/feed", "http://bob.example/atom"]


def test_lists_of_two_people_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SSE-002] [SSE-026] Both lists have the subscriptions of both, each of them once."""
    run = shell_in(tmp_path, monkeypatch)
    sync = f"<s:sync xmlns:s='{SSE_NS}' id='{{0}}' version='1'><s:history by='{{0}}'/></s:sync>"
    line = f"<outline text='{{0}}' type='rss' xmlUrl='http://{{0}}.example/'>{sync}</outline>"
    for name, feeds in (("ann", "ab"), ("bob", "bc")):
        lines = "".join(line.format(one) for one in feeds)
        Path(f"{name}.opml").write_text(f"<opml version='2.0'><head/><body>{lines}</body></opml>")
    run("merge", "ann.opml", "bob.opml", "--output", "both.opml")
    root = etree.parse("both.opml").getroot()
    assert [one.get("xmlUrl") for one in root.iter("outline")] == [f"http://{one}.example/" for one in "abc"]
