"""The sections [[mirror]]: what they hold, and what is said when they are wrong."""

import re
import tomllib
from pathlib import Path

import pytest

from smartfeeds.app.config import load
from smartfeeds.errors import ConfigError
from smartfeeds.features.mirrors.mirror import Direction
from smartfeeds.features.mirrors.settings import MirrorSettings

ROOT = Path(__file__).parents[3]
HEAD = '[component]\njid = "feeds.example.org"\nsecret = "hush"\n'
SECTION = '[[mirror]]\nnode = "plans"\naddress = "xmpp:feeds.b.example?;node=plans"\n'


def loaded(tmp_path, text):
    path = tmp_path / "smartfeeds.toml"
    path.write_text(HEAD + text)
    return load(path)


def test_sections_have_the_documented_defaults(tmp_path):
    assert loaded(tmp_path, "").mirror == ()
    first, second = loaded(tmp_path, SECTION + SECTION.replace("feeds.b", "feeds.c") + 'direction = "both"').mirror

    mirror = first.to_mirror()
    assert (mirror.node, mirror.address, mirror.direction) == (
        "plans",
        "xmpp:feeds.b.example?;node=plans",
        Direction.IN,
    )
    assert (mirror.owner, mirror.every_s, mirror.own_edits, mirror.allow_private) == ("", 300.0, False, False)
    assert second.to_mirror().direction is Direction.BOTH
    assert mirror.name != second.to_mirror().name


def test_sections_come_from_the_environment_as_a_list(tmp_path, monkeypatch):
    monkeypatch.setenv("SMARTFEEDS_MIRROR", '[{"node": "n", "address": "https://e/f", "owner": "Alice@example.org"}]')

    (section,) = loaded(tmp_path, "").mirror
    assert (section.to_mirror().node, section.to_mirror().owner) == ("n", "alice@example.org")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[mirror]]\naddress = "https://e/"', "mirror.0.node: is missing"),
        ('[[mirror]]\nnode = "x"', "mirror.0.address: is missing"),
        ('[[mirror]]\nnode = "x"\naddress = "y"', "mirror.0: 'y' is not the address of a feed; write it as"),
        (SECTION + "own_edit = true", "mirror.0.own_edit: there is no such key; did you mean own_edits?"),
        (SECTION + "every_s = 1", "mirror.0: every_s is 1; set it to at least 5 seconds"),
        (SECTION + 'direction = "up"', "mirror.0.direction: "),
        (SECTION + 'owner = "x/y"', "mirror.0.owner: must be a bare JID"),
        (SECTION + SECTION, "two [[mirror]] sections have the same node and address"),
        (SECTION + 'name = "a"\n' + SECTION.replace("feeds.b", "feeds.c") + 'name = "a"', "have the same name"),
        (
            SECTION.replace("feeds.b.example", "feeds.example.org"),
            "is at this service; name a feed of another service",
        ),
        ("[[mirrors]]\nx = 1", "mirrors: there is no such section; did you mean mirror?"),
    ],
)
def test_mistake_is_told(tmp_path, text, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        loaded(tmp_path, text)


def test_sample_and_manual_have_every_key_with_its_default():
    """What is commented out in the sample is a section when it is not."""
    text = (ROOT / "config/smartfeeds.toml").read_text().partition("#   [[mirror]]")[2].partition("\n\n")[0]
    (section,) = tomllib.loads("[[mirror]]\n" + re.sub(r"(?m)^#   ", "", text))["mirror"]
    table = (ROOT / "docs/mirrors.md").read_text().partition("[[mirror]]")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"(?m)^\| `([a-z_]+)` \| `?(.*?)`? \|", table))

    assert set(section) == set(rows) == set(MirrorSettings.model_fields)
    MirrorSettings.model_validate(section)
    for key, field in MirrorSettings.model_fields.items():
        if not field.is_required() and key not in ("owner", "name"):
            default = field.default.value if isinstance(field.default, Direction) else field.default
            assert section[key] == default, key
            assert rows[key] == str(default).lower(), key
