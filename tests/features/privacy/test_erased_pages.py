"""What HTTP has in memory ends with the erasure of a person."""

from functools import partial

import pytest

from smartfeeds.core.person import Person
from smartfeeds.features.privacy.erasing import begin_erasure, continue_erasure
from smartfeeds.features.privacy.erasures import ErasurePhase, ErasureSettings
from support.component import ALICE, BOB, bare
from support.web import Web

ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><title>butter unmistakable</title>"
    f"<author><name>Bob</name><uri>xmpp:{bare(BOB)}</uri></author></entry>"
)
PAGES = (
    ("/feeds/notes/?since=time:0", "application/json"),
    ("/feeds/notes/?since=time:0", "application/atom+xml"),
    ("/feeds/notes/", "text/html"),
    ("/feeds/notes.atom", ""),
    ("/feeds/notes.rss", ""),
    ("/entries/notes/mine", "text/html"),
    ("/search?q=butter", "text/html"),
    ("/", "text/html"),
)


@pytest.mark.needs("pages")
async def test_pages_that_were_requested_before_an_erasure_end_with_it(notes: Web) -> None:
    """[OPS-013] [OPS-014] The second request of a page is answered with the bytes of the first."""
    await notes.component.affiliate(ALICE, "notes", BOB, "publisher")
    await notes.component.publish(BOB, "notes", "mine", ENTRY)
    await notes.component.index()
    for path, accept in PAGES:
        for _ in range(2):
            assert "unmistakable" in (await notes.get(path, accept)).text, path
    service, settings = notes.component.app.service, ErasureSettings(now=True)

    await service.write(lambda tx, context: begin_erasure(tx, context, Person(bare(BOB)), settings))
    job = await service.write(partial(continue_erasure, jid=bare(BOB)))

    assert job is not None and job.phase is ErasurePhase.DONE
    for path, accept in PAGES:
        text = (await notes.get(path, accept)).text
        assert "unmistakable" not in text, path
        assert bare(BOB) not in text, path
