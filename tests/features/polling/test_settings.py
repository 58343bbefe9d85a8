"""The sections [[source]]: what they hold, what is said when they are wrong, and that the service acts on them."""

import re
import tomllib
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from smartfeeds.app.config import load, settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.settings import SourceSection
from support.polling import atom
from support.waiting import until

ROOT = Path(__file__).parents[3]
HEAD = '[component]\njid = "feeds.example.org"\nsecret = "hush"\n'
SECTION = '[[source]]\nnode = "news"\nurl = "https://example.org/feed"\n'


def loaded(tmp_path, text):
    path = tmp_path / "smartfeeds.toml"
    path.write_text(HEAD + text)
    return load(path)


def test_section_becomes_a_source(tmp_path):
    """[SRC-085] Name and password may be keys, or a part of the address."""
    text = (
        SECTION + 'every_s = 900\nuser = "me"\npassword = "secret"\npublisher = "Alice@example.org"\nonly = "lang=en"'
    )
    (section,) = loaded(tmp_path, text).source
    source = section.to_source(5)

    assert (source.node, source.url, source.configured, source.due_us) == ("news", "https://example.org/feed", True, 5)
    assert (source.settings.every_s, source.settings.user, source.settings.password) == (900, "me", "secret")
    assert (source.settings.publisher, source.settings.only) == ("alice@example.org", "lang=en")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[source]]\nurl = "https://e/"', "source.0.node: is missing"),
        ('[[source]]\nnode = "x"', "source.0.url: is missing"),
        (SECTION + "every_s = 60", "source.0.every_s: must be at least 300"),
        (SECTION + "every = 900", "source.0.every: there is no such key; did you mean every_s?"),
        (SECTION + 'only = "kind=new"', "the filter 'kind=new' cannot be used"),
        (SECTION + SECTION, "two [[source]] sections have the same node and address"),
        ('[[source]]\nnode = "x"\nurl = "file:///etc/passwd"', "source.0.url: must be an address such as"),
    ],
)
def test_mistake_is_told(tmp_path, text, message):
    """[SRC-085]"""
    with pytest.raises(ConfigError, match=re.escape(message)):
        loaded(tmp_path, text)


def test_password_is_not_in_messages(tmp_path):
    """[SRC-015]"""
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, SECTION.replace("https://", "https://me:secret@") + 'password = "hidden"\nevery_s = 1')
    assert "secret" not in str(caught.value) and "hidden" not in str(caught.value)


def test_sample_and_page_have_every_key_with_its_default():
    text = (ROOT / "config/smartfeeds.toml").read_text().partition("#   [[source]]")[2]
    (section,) = tomllib.loads("[[source]]\n" + re.sub(r"(?m)^#   ", "", text))["source"]
    page = (ROOT / "docs/webfeeds.md").read_text()
    documented = {
        key for row in re.findall(r"(?m)^\| (`[a-z_]+`.*?) \|", page) for key in re.findall(r"`([a-z_]+)`", row)
    }

    assert set(section) == set(SourceSection.model_fields)
    assert set(SourceSection.model_fields) <= documented
    sample = SourceSection.model_validate(section)
    for key, field in SourceSection.model_fields.items():
        if not field.is_required() and key not in ("publisher", "every_s"):
            assert getattr(sample, key) == field.default, key


async def test_service_polls_the_sources_of_the_configuration(site, tmp_path):
    """[SRC-083] From the settings to the store, over real sockets. Private networks are closed to the other source."""
    site.pages["/feed"] = atom("b", "a")
    sections = [
        {"node": "news", "url": site.url("/feed"), "allow_private": True},
        {"node": "closed", "url": site.url("/feed")},
    ]
    app = App(
        settings_of(
            component={"jid": "feeds.example.org", "secret": "s", "port": 1},
            store={"url": f"sqlite:///{tmp_path}/feeds.db"},
            http={"listen": ""},
            source=sections,
        )
    )
    with capture_logs():
        await app.start()
        try:

            async def are_polled() -> bool:
                news, closed = await app.service.read(lambda tx, _context: source_rows.sources(tx, 0, 9))
                return bool(news.polled_us and closed.polled_us)

            await until(are_polled, "the polls of both sources")
            _, closed = await app.service.read(lambda tx, _context: source_rows.sources(tx, 0, 9))
            node = await app.service.read(lambda tx, _context: tx.node("news"))
        finally:
            await app.stop()

    assert (node.total, node.options.title, node.creator) == (2, "A blog", "feeds.example.org")
    assert "not public" in closed.reason and closed.state.value == "slowed"
    assert site.asked_for("/feed") == ["/feed"]
