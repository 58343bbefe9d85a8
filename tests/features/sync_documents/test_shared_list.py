"""A list of subscriptions as a feed: published, shared as OPML with sync data, and turned into sources."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.console import Exit
from smartfeeds.formats.opml import Outline, read_outline
from smartfeeds.sync.lexis import SSE_NS
from support.shell import Run, shell_in

LIST = """<opml version="2.0"><head><title>Blogs</title></head><body>
<outline text="Ann" type="rss" xmlUrl="http://ann.example/feed" htmlUrl="http://ann.example/"/>
<outline text="Bob" type="rss" xmlUrl="http://bob.example/atom"/></body></opml>"""


@pytest.mark.needs("polling")
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


# As a reader exports it: folders, a feed in two of them, folders of one name, comments, no sync data.
FOLDERS = """<opml version="2.0"><head><title>Blogs</title></head><body>
<outline text="News"><outline text="Zoe" type="rss" xmlUrl="http://zoe.example/feed"/>
<outline text="Far"><outline text="Ann" type="rss" xmlUrl="http://ann.example/feed"/></outline></outline>
<outline text="Bob" type="rss" xmlUrl="http://bob.example/atom"/>
<outline text="Work"><outline text="Far"><outline text="Ann" type="rss" xmlUrl="http://ann.example/feed"/></outline>
</outline></body></opml>"""
TREE = {"News": {"Zoe": {}, "Far": {"Ann": {}}}, "Bob": {}, "Work": {"Far": {"Ann": {}}}}
Shape = Mapping[str, "Shape"]


def shape(outlines: Iterable[Outline]) -> Shape:
    return {one.text: shape(one.children) for one in outlines}


def exported(run: Run, node: str = "blogs", *options: str) -> bytes:
    run("export", "--node", node, "--to", "opml", "--sync", "--output", "out.opml", *options)
    return Path("out.opml").read_bytes()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    run = shell_in(tmp_path, monkeypatch)
    run("init", "feeds.example.org")
    return run


@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
def test_list_keeps_its_folders_through_a_feed(run: Run, dialect: str) -> None:
    """[SSE-002] [SSE-016] [SSE-027] Outlines without sync data get it here, and a place with it; twice changes
    nothing."""
    run("node", "create", "blogs", "--option", f"sync_dialect={dialect}")
    run("import", "-", "--node", "blogs", "--sync", stdin=FOLDERS)
    first = exported(run)
    assert list(shape(read_outline(first).outlines)) == list(TREE)
    assert shape(read_outline(first).outlines) == TREE
    assert first.count(b'version="1"' if dialect == "sse" else b'updates="1"') == 8
    again = json.loads(run("import", "-", "--node", "blogs", "--sync", "--json", stdin=FOLDERS).stdout)
    assert (again["without_sync"]["unchanged"], again["refused"]) == (8, 0)
    assert exported(run) == first

    # In another node, and back: the same versions in the same tree.
    run("import", "out.opml", "--node", "copy", "--sync", "--own-edits")
    copied = exported(run, "copy")
    assert shape(read_outline(copied).outlines) == TREE
    back = json.loads(run("import", "out.opml", "--node", "blogs", "--sync", "--json").stdout)
    assert (back["unchanged"], back["refused"]) == (8, 0)
    assert exported(run) == first


def test_list_that_was_imported_flat_gets_its_folders(run: Run) -> None:
    """[SSE-028] Both imports make the same ids; the place is an update. Items that have a place keep it."""
    run("import", "-", "--node", "blogs", stdin=FOLDERS)
    assert len(shape(read_outline(exported(run)).outlines)) == 6  # some have equal names
    report = json.loads(run("import", "-", "--node", "blogs", "--sync", "--json", stdin=FOLDERS).stdout)
    assert report["without_sync"] == {"added": 0, "changed": 8, "deleted": 0, "unchanged": 0}
    assert shape(read_outline(exported(run)).outlines) == TREE
    moved = FOLDERS.replace('<outline text="Work">', '<outline text="Work" created="">').replace("Zoe", "Zoë")
    run("import", "-", "--node", "blogs", "--sync", stdin=moved)
    assert list(shape(read_outline(exported(run)).outlines)["News"]) == ["Zoë", "Far"]


@pytest.mark.parametrize(
    ("deleted", "imported", "expected"),
    [
        (["News"], {"Zoe": {}}, {"Zoe": {}}),
        (["News", "Zoe"], {"Zoe": {}}, {"Zoe": {}}),
        (["News", "Far", "Ann"], {"Ann": {}, "Zoe": {}}, {"Ann": {}, "Zoe": {}}),
        (["Far"], {"Ann": {}}, {"News": {"Zoe": {}}, "Ann": {}}),
        (["News"], {"Work": {"Zoe": {}}}, {"Work": {"Zoe": {}}}),
        (["News"], {"News": {"Far": {}}}, {"News": {"Zoe": {}, "Far": {"Ann": {}}}}),
        (["Zoe"], {"Zoe": {}}, {"News": {"Far": {"Ann": {}}, "Zoe": {}}}),
        ([], {"Ann": {}}, {"News": {"Zoe": {}, "Far": {"Ann": {}}}}),
    ],
    ids=["hidden", "deleted, too", "two levels", "inner folder", "other folder", "folder returns", "itself", "shown"],
)
def test_outline_in_a_deleted_folder_returns(run: Run, deleted: list[str], imported: Shape, expected: Shape) -> None:
    """[SSE-028] Nothing shows it in its old place. Twice changes nothing."""

    def opml(tree: Shape) -> str:
        return f"<opml version='2.0'><head/><body>{lines(tree)}</body></opml>"

    def lines(tree: Shape) -> str:
        form = "<outline text='{0}' xmlns:sf='urn:x-smartfeeds:opml' sf:id='{0}'>{1}</outline>"
        return "".join(form.format(name, lines(inner)) for name, inner in tree.items())

    run("import", "-", "--node", "blogs", "--sync", stdin=opml({"News": {"Zoe": {}, "Far": {"Ann": {}}}}))
    for name in deleted:
        run("retract", "blogs", name)
    run("import", "-", "--node", "blogs", "--sync", stdin=opml(imported))
    shown = exported(run)
    assert shape(live(read_outline(shown).outlines)) == expected
    run("import", "-", "--node", "blogs", "--sync", stdin=opml(imported))
    assert exported(run) == shown


def live(outlines: Iterable[Outline]) -> list[Outline]:
    """The outlines that are not deleted, and not in one that is."""
    left = [one for one in outlines if not any(b'deleted="true"' in extension for extension in one.extensions)]
    return [replace(one, children=tuple(live(one.children))) for one in left]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("b in news", "b in  after x", {"news": {"a": {}}, "x": {}, "b": {}}),
        ("b in news", "b in  after ", {"b": {}, "news": {"a": {}}, "x": {}}),
        ("x in ", "x in news after a", {"news": {"a": {}, "x": {}, "b": {}}}),
        ("news in ", "news in x after ", {"x": {"news": {"a": {}, "b": {}}}}),
    ],
    ids=["to the end", "to the top", "into a folder", "a folder with its feeds"],
)
def test_move_in_a_document_moves_the_item(run: Run, old: str, new: str, expected: Shape) -> None:
    """[SSE-028] [SSE-030] The move is an update of the moved outline alone."""
    tree: dict[str, list[str]] = {"": ["news", "x"], "news": ["a", "b"]}
    run("import", "-", "--node", "blogs", "--sync", stdin=document(tree, {}))
    name, parent, after = new.replace(" after ", " in ").split(" in ")
    tree[old.split(" in ")[1]].remove(name)
    siblings = tree.setdefault(parent, [])
    siblings.insert(siblings.index(after) + 1 if after else 0, name)
    run("import", "-", "--node", "blogs", "--sync", stdin=document(tree, {name: 2}))
    moved = exported(run)
    assert list(shape(read_outline(moved).outlines)) == list(expected)
    assert shape(read_outline(moved).outlines) == expected
    assert (moved.count(b'version="1"'), moved.count(b'version="2"')) == (3, 1)


def document(tree: Mapping[str, list[str]], versions: Mapping[str, int], parent: str = "") -> str:
    """An outline with sync data: `tree` maps parents to children, `versions` has those that are not the first."""
    lines = []
    for name in tree.get(parent, ()):
        version = versions.get(name, 1)
        updates = "<s:update by='peer1'/>" * (version - 1)
        history = f"<s:history by='peer{version}'>{updates}</s:history>"
        sync = f"<s:sync xmlns:s='{SSE_NS}' id='{name}' version='{version}'>{history}</s:sync>"
        lines.append(f"<outline text='{name}'>{sync}{document(tree, versions, name)}</outline>")
    inner = "".join(lines)
    return inner if parent else f"<opml version='2.0'><head/><body>{inner}</body></opml>"


def test_part_of_an_outline_does_not_move_its_items(run: Run) -> None:
    """[SSE-006] [SSE-028] A partial document lacks the folder; the outline that has changed stays in it."""
    tree = {"": ["news", "x"], "news": ["a", "b"]}
    run("import", "-", "--node", "blogs", "--sync", stdin=document(tree, {}))
    run("import", "-", "--node", "copy", "--sync", stdin=document(tree, {}))
    renamed = document(tree, {"b": 2}).replace("text='b'", "text='renamed'")
    run("import", "-", "--node", "blogs", "--sync", stdin=renamed)
    # The bounds are those of the last change, which is the renamed outline.
    part = exported(run, "blogs", "--since", "2100-01-01T00:00:00Z")
    assert shape(read_outline(part).outlines) == {"renamed": {}}
    run("import", "out.opml", "--node", "copy", "--sync")
    whole = exported(run, "copy")
    assert shape(read_outline(whole).outlines) == {"news": {"a": {}, "renamed": {}}, "x": {}}
    assert b"parent" not in whole


def test_outline_that_cannot_be_an_item_is_refused_alone(run: Run) -> None:
    """[A-52]"""
    text = FOLDERS.replace('<outline text="Bob"', '<outline text=""/><outline text="Bob"')
    report = json.loads(run("import", "-", "--node", "blogs", "--sync", "--json", stdin=text).stdout)
    assert [one["reason"] for one in report["reasons"]] == ["the outline has no text, address or id"]
    assert shape(read_outline(exported(run)).outlines) == TREE


@pytest.mark.needs("polling")
def test_shared_list_is_followed(run: Run) -> None:
    """[SRC-083] The commands of the documentation: import, follow, remove."""
    run("import", "-", "--node", "blogs", "--sync", stdin=FOLDERS)
    answer = run("source", "follow", "blogs", "--node", "planet").stdout
    assert "xmpp:feeds.example.org?;node=blogs" in answer
    assert "already" in run("source", "follow", "blogs.opml", "--node", "planet", code=Exit.CONFIG).stderr
    assert "there is no node lines" in run("source", "follow", "lines", code=Exit.CONFIG).stderr
    run("source", "remove", "blogs", "--with-sources")
    assert json.loads(run("source", "list", "--json").stdout) == []


def test_losses_of_an_outline_are_reported(run: Run) -> None:
    """[A-153] As without --sync."""
    entry = "<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><rights>mine</rights></entry>"
    run("import", "-", "--node", "notes", stdin=f"<feed xmlns='http://www.w3.org/2005/Atom'>{entry}</feed>")
    plain = run("export", "--node", "notes", "--to", "opml", "--output", "a.opml").stderr
    synced = run("export", "--node", "notes", "--to", "opml", "--sync", "--output", "b.opml").stderr
    assert plain.partition(":")[2] == synced.partition(":")[2] and "rights" in synced
