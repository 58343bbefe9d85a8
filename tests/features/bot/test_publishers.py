"""Messages of the bot name the publisher of an entry whose author has the address of somebody else."""

import pytest

from support.chat import write
from support.component import ALICE, BOB, CAROL, Starter, bare, entry
from support.prose import author

BY_ALICE = entry("Words", author("alice", f"xmpp:{bare(ALICE)}"))


@pytest.mark.parametrize(
    ("publisher", "options", "about"),
    [
        (ALICE, {}, "alice in news"),
        (BOB, {}, f"alice in news, published by {bare(BOB)}"),
        (BOB, {"itemreply": "owner"}, "alice in news"),
    ],
)
async def test_message_names_the_publisher_beside_another_author(
    start: Starter, publisher: str, options: dict[str, str], about: str
) -> None:
    component = await start()
    await component.create(ALICE, "news", publish_model="open", **options)
    await component.publish(publisher, "news", "a", BY_ALICE)
    (latest,) = await write(component, CAROL, "latest news 1")
    assert latest.splitlines()[:2] == ["Words", about]
