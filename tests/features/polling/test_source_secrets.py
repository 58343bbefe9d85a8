"""Secrets in the address of a source: the request has them, documents and the log do not."""

from structlog.testing import capture_logs

from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.sources import add_source
from support.component import ALICE
from support.following import LOOPBACK
from support.polling import atom
from support.web import WebStarter
from support.website import running_site

FORMS = (".atom", ".rss", ".rss092", ".jsonfeed", ".json", "/", ".opml", ".atom?sync=true")


async def test_address_in_documents_and_log_has_no_secret(start_web: WebStarter) -> None:
    """[RSS-008] The feed of an item is named, and a parameter that is no secret stays in its address."""
    web = await start_web(sources=LOOPBACK)
    service = web.component.app.service
    await web.component.create(ALICE, "copy", access_model="open")
    async with running_site() as site:
        site.pages["/feed"] = atom("first")
        url = site.url("/feed?feed=rss2&api_key=SECRET")
        source = new_source("copy", url, web.component.clock())
        row = await service.write(lambda tx, context: add_source(tx, context, source))
        with capture_logs() as logs:
            await web.component.app.parts.get(Poller).poll(row)
    bodies = {form: (await web.get(f"/feeds/copy{form}", accept="text/html")).body for form in FORMS}
    assert b"feed=rss2" in bodies[".atom"] and b"feed=rss2" in bodies[".rss"]
    assert [form for form, body in bodies.items() if b"SECRET" in body] == []
    assert "feed=rss2" in str(logs) and "SECRET" not in str(logs)
