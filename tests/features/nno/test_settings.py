"""The sections [[nno]]: what they hold, what is said when they are wrong, and that the service acts on them."""

import asyncio
import re
import tomllib
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from smartfeeds.app.config import load, settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.errors import ConfigError
from smartfeeds.features.documents.ess import write_ess
from smartfeeds.features.nno.settings import NnoSettings
from support.waiting import until, wait_for
from support.website import BUILD_S, US

ROOT = Path(__file__).parents[3]
HEAD = '[component]\njid = "feeds.example.org"\nsecret = "hush"\n'
SECTION = '[[nno]]\nnode = "planet"\nurls = ["https://example.org/feed.ess"]\n'


def loaded(tmp_path, text):
    path = tmp_path / "smartfeeds.toml"
    path.write_text(HEAD + text)
    return load(path)


def test_sections_have_the_documented_defaults(tmp_path):
    """[ESS-011] The number of entries is the operator's."""
    assert loaded(tmp_path, "").nno == ()
    first, second = loaded(tmp_path, SECTION + SECTION.replace("planet", "moon") + "entries = 7").nno

    assert (first.node, first.urls, first.entries) == ("planet", ("https://example.org/feed.ess",), 50)
    assert (first.every_s, first.owner, first.allow_private) == (900.0, None, False)
    assert (second.node, second.entries) == ("moon", 7)


def test_sections_come_from_the_environment_as_a_list(tmp_path, monkeypatch):
    monkeypatch.setenv("SMARTFEEDS_NNO", '[{"node": "planet", "urls": ["http://e/"], "owner": "Alice@example.org"}]')

    (section,) = loaded(tmp_path, "").nno
    assert (section.node, section.owner) == ("planet", "alice@example.org")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[nno]]\nurls = ["http://e/"]', "nno.0.node: is missing"),
        ('[[nno]]\nnode = "x"', "nno.0.urls: is missing"),
        ('[[nno]]\nnode = "x"\nurls = []', "nno.0.urls: "),
        (SECTION + "entrys = 5", "nno.0.entrys: there is no such key; did you mean entries?"),
        (SECTION + "entries = 0", "nno.0.entries: must be at least 1"),
        (SECTION + "every_s = 5", "nno.0.every_s: must be at least 60"),
        (SECTION + 'owner = "x/y"', "nno.0.owner: must be a bare JID"),
        ('[[nno]]\nnode = "x"\nurls = ["file:///etc/passwd"]', "nno.0.urls.0: must be an address such as"),
        (
            '[sources]\nallowed_networks = ["10.0.0.1/8"]',
            'sources.allowed_networks.0: "10.0.0.1/8" is no network: write "10.0.0.0/8", or "10.0.0.1" for this '
            "address alone",
        ),
        ('[sources]\nallowed_networks = ["fd00::1/64"]', 'write "fd00::/64", or "fd00::1" for this address alone'),
        (
            '[sources]\nallowed_networks = ["10.0.0.0/33"]',
            "sources.allowed_networks.0: must be an address or a network such as",
        ),
        (
            '[webhooks]\nallowed_networks = ["localhost"]',
            "webhooks.allowed_networks.0: must be an address or a network",
        ),
        ("[[nnos]]\nx = 1", "nnos: there is no such section; did you mean nno?"),
    ],
)
def test_mistake_is_told(tmp_path, text, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        loaded(tmp_path, text)


def test_sample_and_manual_have_every_key_with_its_default():
    """What is commented out in the sample is a section when it is not."""
    text = (ROOT / "config/smartfeeds.toml").read_text().partition("#   [[nno]]")[2]
    (section,) = tomllib.loads("[[nno]]\n" + re.sub(r"(?m)^#   ", "", text))["nno"]
    table = (ROOT / "docs/operator.md").read_text().partition("[[nno]]")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"(?m)^\| `([a-z_]+)` \| `?(.*?)`? \|", table))

    assert set(section) == set(rows) == set(NnoSettings.model_fields)
    NnoSettings.model_validate(section)
    for key, field in NnoSettings.model_fields.items():
        if not field.is_required() and key != "owner":
            assert section[key] == field.default, key
            assert rows[key] == str(field.default).lower(), key


def settings(site, folder, section, allowed):
    return settings_of(
        **{
            "component": {"jid": "feeds.example.org", "secret": "s", "port": 1},
            "store": {"url": f"sqlite:///{folder}/feeds.db"},
            "http": {"listen": ""},
            "nno": [{"node": "planet", "urls": [site.blog("a", ("urn:1", "one", 1))], **section}],
            **allowed,
        }
    )


async def test_network_for_callbacks_is_closed_to_fetching(site, tmp_path):
    """Strangers name the callbacks, so the two lists are separate."""
    app = App(settings(site, tmp_path, {}, {"webhooks": {"allowed_networks": ["127.0.0.0/8"]}}))
    with capture_logs() as logs:
        await app.start()
        try:
            await until(lambda: any(log["event"] == "nno_round_done" for log in logs), "the round of the nno list")
        finally:
            await app.stop()

    assert site.asked == []
    (reason,) = [log["reason"] for log in logs if log["event"] == "nno_source_failed"]
    assert (
        reason == "was not requested: its address is not public; "
        "the operator may allow it with --allow-private or sources.allowed_networks"
    )


@pytest.mark.parametrize(
    ("section", "allowed"),
    [({"allow_private": True}, {}), ({}, {"sources": {"allowed_networks": ["127.0.0.1", "10.0.0.0/8"]}})],
)
async def test_service_fills_the_node(site, tmp_path, section, allowed):
    """[ESS-018] From the settings to the store, over real sockets."""
    app = App(settings(site, tmp_path, section, allowed))
    stored = asyncio.Event()
    changed = app.changes.announce
    app.service._on_change = lambda node_nos: (changed(node_nos), stored.set())
    await app.start()
    try:
        await wait_for(stored.wait(), "the first change")
        node = await app.service.read(lambda tx, _context: tx.node("planet"))
    finally:
        await app.stop()

    assert node is not None and node.total == 1
    assert node.creator == "feeds.example.org"
    assert site.asked_for("a.ess") == ["/a.ess"]


@pytest.mark.parametrize(("section", "is_read"), [({}, False), ({"allow_private": True}, True)])
async def test_feeds_at_other_hosts_are_in_no_private_network(site, tmp_path, section, is_read):
    """The author of the ESS file names them. A name such as localhost leads into a private network."""
    app = App(settings(site, tmp_path, section, {"sources": {"allowed_networks": ["127.0.0.0/8"]}}))
    site.pages["/a.ess"] = write_ess(site.url("/a.xml", "localhost"), [("one", (BUILD_S - 60) * US)], BUILD_S * US).data
    with capture_logs() as logs:
        await app.start()
        try:
            await until(lambda: any(log["event"] == "nno_round_done" for log in logs), "the round of the nno list")
        finally:
            await app.stop()

    assert sorted(site.paths) == ["/a.ess", *(["/a.xml"] if is_read else [])]
    reasons = [log["reason"] for log in logs if log["event"] == "nno_source_failed"]
    assert is_read or "its address is not public" in reasons[0]
