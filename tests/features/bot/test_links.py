"""The links in messages of the bot."""

from support.chat import write
from support.component import ALICE, BOB, Starter


async def test_links_lead_to_the_original_first(start: Starter) -> None:
    """The page of the blog, then the page here; lists have one link."""
    component = await start(http={"listen": "127.0.0.1:0", "base_url": "https://feeds.example.org"})
    await component.create(ALICE, "blog")
    entry = (
        "<entry xmlns='http://www.w3.org/2005/Atom'><id>urn:x:1</id><title>First</title>"
        "<updated>2026-01-01T00:00:00Z</updated><link rel='alternate' href='{}'/></entry>"
    )
    await component.publish(ALICE, "blog", "a", entry.format("https://blog.example/first"))
    (latest,) = await write(component, BOB, "latest blog 1")
    assert latest.splitlines()[-2:] == ["https://blog.example/first", "https://feeds.example.org/entries/blog/a"]
    await component.publish(ALICE, "blog", "b", entry.format("javascript:alert(1)"))
    (latest,) = await write(component, BOB, "latest blog 1")
    assert latest.splitlines()[-1] == "https://feeds.example.org/entries/blog/b" and "javascript" not in latest
    (listed,) = await write(component, BOB, "latest blog 2")
    assert listed.splitlines()[1] == "  https://blog.example/first"
