"""The name and the picture of the bot (XEP-0054, XEP-0084, XEP-0153)."""

import base64
import hashlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from smartfeeds.core.feed_files import png_size
from smartfeeds.features.bot.settings import BotSettings
from support.component import ALICE, BOB, DOMAIN, NS, PS, Component, Starter, bare, ok, tree

METADATA, DATA = "urn:xmpp:avatar:metadata", "urn:xmpp:avatar:data"
CARD = "{vcard-temp}"
# A picture of one pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def card_of(component: Component) -> dict[str, str]:
    """The texts of the card of the service."""
    answer = ok(await component.ask(BOB, "get", "<vCard xmlns='vcard-temp'/>"))
    return {str(child.tag).removeprefix(CARD): child.text or "" for child in answer.iter() if CARD in str(child.tag)}


async def items(component: Component, node: str, inner: str = "", to: str = DOMAIN) -> object:
    request = f"<pubsub xmlns='{PS}'><items node='{node}'>{inner}</items></pubsub>"
    return await component.ask(BOB, "get", request, to=to)


async def test_card_avatar_and_presence_have_one_picture(start: Starter) -> None:
    component = await start(bot={"name": "planet"})
    card = await card_of(component)
    picture = base64.b64decode(card["BINVAL"])
    name = hashlib.sha1(picture).hexdigest()

    assert (card["FN"], card["NICKNAME"], card["TYPE"]) == ("Smart Feeds", "planet", "image/png")
    assert png_size(picture) == (128, 128)
    metadata = ok(await component.get(BOB, f"<items node='{METADATA}'/>")).find(f".//{{{METADATA}}}info")
    assert metadata is not None
    assert dict(metadata.attrib) == {
        "id": name, "type": "image/png", "bytes": str(len(picture)), "width": "128", "height": "128"
    }  # fmt: skip
    data = ok(await component.get(BOB, f"<items node='{DATA}'><item id='{name}'/></items>"))
    assert base64.b64decode(data.findtext(f".//{{{DATA}}}data", "")) == picture
    assert [item.get("id") for item in data.findall("ps:pubsub/ps:items/ps:item", NS)] == [name]


@pytest.mark.needs("presence")
async def test_presence_announces_the_picture(component: Component) -> None:
    """XEP-0153: clients then read the card."""
    await component.send(f"<presence type='subscribe' from='{bare(ALICE)}' to='{DOMAIN}'/>")
    picture = base64.b64decode((await card_of(component))["BINVAL"])
    marks = [
        mark.text
        for presence in component.presences
        if presence.get("to") == bare(ALICE) and presence.get("type") is None
        for mark in presence.iter("{vcard-temp:x:update}photo")
    ]
    assert set(marks) == {hashlib.sha1(picture).hexdigest()}


async def test_presence_in_a_room_announces_the_picture(start: Starter) -> None:
    """Clients show it beside the messages of the bot there."""
    component = await start(bot={"rooms": ["club@rooms.example.org"]})
    picture = base64.b64decode((await card_of(component))["BINVAL"])
    (entered,) = [each for each in component.presences if str(each.get("to")).startswith("club@rooms.example.org/")]
    assert entered.findtext(".//{vcard-temp:x:update}photo") == hashlib.sha1(picture).hexdigest()


async def test_stored_pictures_of_communities_can_be_read(component: Component) -> None:
    """Movim stores them in a node of this name."""
    await component.create(ALICE, DATA, kind="generic")
    await component.publish(ALICE, DATA, "picture", f"<data xmlns='{DATA}'>AAAA</data>")
    assert await component.item_ids(BOB, DATA) == ["picture"]
    answer = ok(await component.get(BOB, f"<items node='{DATA}'><item id='picture'/></items>"))
    assert "AAAA" in str(tree(answer))


async def test_picture_of_the_operator(start: Starter, tmp_path: Path) -> None:
    file = tmp_path / "logo.png"
    file.write_bytes(PNG)
    component = await start(bot={"picture": str(file)})
    assert base64.b64decode((await card_of(component))["BINVAL"]) == PNG


async def test_service_without_the_bot_has_no_picture(start: Starter) -> None:
    component = await start(bot={"enabled": False})
    assert "BINVAL" not in await card_of(component)
    answer = await component.get(BOB, f"<items node='{METADATA}'/>")
    assert answer.get("type") == "error"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("no.png", None, "cannot read picture"),
        ("a.png", b"<svg/>", "is no PNG file"),
        ("b.png", PNG[:20], "is no PNG file"),
        ("c.png", PNG + b"x" * 40_000, "is too large; the limit is 32,768 bytes"),
    ],
)
def test_picture_that_cannot_be_shown_is_refused(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValidationError, match=reason):
        BotSettings(picture=file)
