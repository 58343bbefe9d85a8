"""The sections [[webhook]]: what they hold, what is said when they are wrong, and that the service acts on them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.app.config import Settings, load, settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.errors import ConfigError
from smartfeeds.features.webhook.settings import WebhookSettings
from smartfeeds.service import requests as r
from support.component import DOMAIN
from support.world import draft, entry, jid

ROOT = Path(__file__).parents[3]
HEAD = '[component]\njid = "feeds.example.org"\nsecret = "hush"\n'
SECTION = '[[webhook]]\nurl = "https://hooks.example/in/s3cret"\nnode = "news"\n'


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "smartfeeds.toml"
    path.write_text(HEAD + text)
    return load(path)


def test_sections_have_the_documented_defaults(tmp_path: Path) -> None:
    (section,) = loaded(tmp_path, SECTION).sections(WebhookSettings)
    webhook = section.to_webhook()

    assert (webhook.url, webhook.node, webhook.host) == ("https://hooks.example/in/s3cret", "news", "hooks.example")
    assert (webhook.filter, webhook.secret, webhook.allow_private) == ("", "", False)
    assert re.fullmatch(r"hooks\.example-[0-9a-f]{8}", webhook.name)
    assert not webhook.view.filtered and webhook.view.smart


def test_derived_name_changes_with_what_the_webhook_is(tmp_path: Path) -> None:
    """The mark belongs to the name: another address or filter begins anew."""
    others = (SECTION.replace("news", "sport"), SECTION.replace("s3cret", "other"), SECTION + 'filter = "lang=en"\n')
    names = [loaded(tmp_path, text).sections(WebhookSettings)[0].to_webhook().name for text in (SECTION, *others)]
    assert len(set(names)) == 4


def test_sample_has_every_key(root: Path) -> None:
    text = (root / "config/smartfeeds.toml").read_text().partition("#   [[webhook]]\n")[2]
    keys = set(re.findall(r"(?m)^#   (\w+) = ", text.partition("\n\n")[0]))
    lines = "\n".join(re.findall(r"(?m)^#   (\w+ = .*)", text.partition("\n\n")[0]))

    assert keys == set(WebhookSettings.model_fields)
    assert WebhookSettings(**tomllib.loads(lines)).to_webhook().view.filtered


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('filter = "category"', 'must be filters of views, such as "category=news&lang=en", not "category"'),
        ('filter = "order=created"', 'must be filters of views, such as "category=news&lang=en", not "order=created"'),
        ('filter = "q=x&order=created"', "must be filters of views"),
        ('filter = "q=x&sync=true"', "must be filters of views"),
        ('filter = "since=cursor:1"', "must be filters of views"),
        ('filter = "q="', "must be filters of views"),
        ('name = "a b"', "name"),
        ('url = "ftp://hooks.example/"', "url"),
        ('node = ""', "node"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, message: str) -> None:
    key = text.partition(" ")[0]
    lines = [line for line in SECTION.splitlines() if not line.startswith(f"{key} ")]
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, "\n".join([*lines, text]))
    assert message in str(caught.value)


def test_two_webhooks_must_not_have_one_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'two \[\[webhook\]\] sections have the name "hook"'):
        loaded(tmp_path, f'{SECTION}name = "hook"\n{SECTION.replace("news", "sport")}name = "hook"\n')
    with pytest.raises(ConfigError, match=r"two .* sections have the name"):
        loaded(tmp_path, SECTION + SECTION)


def test_secret_is_not_in_the_text_of_the_settings(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f'{SECTION}secret = "confidential"\n')
    assert "confidential" not in repr(settings)
    assert settings.sections(WebhookSettings)[0].to_webhook().secret == "confidential"


async def run_service(path: Path, webhook: list[dict[str, Any]]) -> list[str]:
    """Starts and stops a service that has the feed news, and returns the names of the stored consumers."""
    app = App(
        settings_of(
            component={"jid": DOMAIN, "secret": "x", "link": "off"},
            store={"url": f"sqlite:///{path}"},
            http={"listen": ""},
            webhook=webhook,
        )
    )
    await app.start()
    try:
        owner = jid("owner@example.org")
        if await app.service.read(lambda tx, _context: tx.node("news")) is None:
            await app.service.handle(r.CreateNode(owner, DOMAIN, "news", None))
        await app.service.handle(r.Publish(owner, DOMAIN, "news", "a", draft(entry("a")), None))
        rows = await app.service.read(lambda tx, _context: tx.consumers((0, "", ""), 9))
        return [row.consumer.name for row in rows]
    finally:
        await app.stop()


async def test_service_begins_with_webhooks_and_forgets_those_that_are_gone(tmp_path: Path) -> None:
    """A service without webhooks forgets the former ones, too, although it loads nothing of the feature."""
    path = tmp_path / "feeds.db"
    section = {"url": "http://127.0.0.1:9/", "node": "news"}
    assert await run_service(path, []) == []
    assert await run_service(path, [{**section, "name": "one"}]) == ["webhook:one"]
    assert await run_service(path, [{**section, "name": "two"}]) == ["webhook:two"]
    assert await run_service(path, []) == []
