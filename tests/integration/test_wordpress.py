"""WordPress of Debian as a publisher that a source follows. It has no hub and no cloud without a plug-in."""

from pathlib import Path

from lxml import etree

from support.following import COPY, LOOPBACK, follower
from support.gateway import running_gateway
from support.web import WebStarter
from support.wordpress import running_wordpress

ATOM = "{http://www.w3.org/2005/Atom}"
SLASH = "{http://purl.org/rss/1.0/modules/slash/}comments"
WFW = "{http://wellformedweb.org/CommentAPI/}commentRss"


async def test_posts_of_wordpress_arrive_by_polls(start_web: WebStarter, tmp_path: Path) -> None:
    """[SRC-001] [SRC-049] Its RSS with content:encoded, slash and wfw; conditional requests; its pings get a fault."""
    web = await start_web(http={"base_url": "http://reader.example"}, sources=LOOPBACK)
    async with running_gateway() as before_blog, running_gateway(web.origin) as before_web:
        ping = f"{before_web.origin}/RPC2"
        folder = tmp_path / "blog"
        folder.mkdir()
        async with running_wordpress(folder, before_blog.origin, ping) as blog:
            before_blog.target = blog.target
            copy = await follower(web, f"{before_blog.origin}/?feed=rss2")
            await copy.poll()
            assert await copy.titles() == ["Hello world!"]
            await copy.poll()
            assert [status for _, status in before_blog.answers] == [200, 304]

            await blog.publish("Second", "<p>Text of the <b>second</b> post</p>")
            assert before_web.asked == ["POST /RPC2"] * 2  # extendedPing, and ping after its fault
            assert all(b"there is no procedure weblogUpdates." in body for body in before_web.bodies)
            await copy.poll()
            assert await copy.titles() == ["Hello world!", "Second"]

    feed = etree.fromstring((await web.get(f"/feeds/{COPY}.atom")).body)
    second = next(entry for entry in feed.iter(f"{ATOM}entry") if entry.findtext(f"{ATOM}title") == "Second")
    assert "<p>Text of the <b>second</b> post</p>" in (second.findtext(f"{ATOM}content") or "")
    assert second.findtext(f"{ATOM}author/{ATOM}name") == "ann"
    assert second.findtext(SLASH) == "0"
    assert "feed=rss2&p=" in (second.findtext(WFW) or "")
