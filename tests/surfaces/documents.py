"""Documents that the program writes without HTTP: a fixed feed in every format, and documents with sync data."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from click.testing import CliRunner

from smartfeeds.app.formats import FORMATS
from smartfeeds.cli import main
from smartfeeds.core.model import Item
from smartfeeds.core.times import US_PER_S
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.formats.xml import parse_payload
from support.component import DOMAIN
from support.entries import accept_entry
from support.prose import ATOM, PROSE
from support.versions import B1, C1, version
from surfaces.program import Surface
from surfaces.world import World

_START_US: Final = 1_767_225_600 * US_PER_S
_SUFFIXES: Final = {"json": "json", "jsonfeed": "json", "ess": "txt"}  # of snapshots; others are XML


def _job() -> FeedExport:
    """A feed with the entries of `PROSE`, a deleted item and an item that is no entry."""
    items = []
    for number, (item_id, text) in enumerate(PROSE.items(), 1):
        time_us = _START_US + number * 3_600 * US_PER_S
        payload = accept_entry(parse_payload(text.encode()), item_id, time_us)
        items.append(Item(number, item_id, time_us, time_us + US_PER_S, payload, "alice@example.org"))
    gone = items[0]._replace(item_no=8, id="gone", deleted=True)
    plain = items[0]._replace(item_no=9, id="plain", payload=b'<thing xmlns="urn:example:things">1</thing>')
    channel = Channel(
        copyright="All rights reserved",
        categories=(("Towns", "https://example.org/topics"),),
        ttl_min=60,
        skip_hours=(1, 2),
        icon="https://town.example/icon.png",
        hub="https://hub.example/",
        authors=("Alice",),
    )
    head = FeedHead(
        id="xmpp:feeds.example.org?;node=town",
        title="Town news",
        updated_us=_START_US + 86_400 * US_PER_S,
        self_link="https://feeds.example.org/feeds/town.atom",
        subtitle="What happens & when",
        link="https://town.example/",
        language="en-GB",
        total=len(items) + 2,
        last_cursor="1767243601_0_00000000",
        channel=channel,
        entry_prefix="https://feeds.example.org/entries/town/",
    )
    return FeedExport(head, [*items, gone, plain], _START_US + 90_000 * US_PER_S, keys=True)


async def _written(_: World, form: str) -> bytes:
    return b"".join(FORMATS[form].write(_job()))


async def _losses(_: World) -> str:
    """What each format says that it cannot represent."""
    rows = []
    for form in sorted(FORMATS):
        job = _job()
        assert list(FORMATS[form].write(job))
        rows += [f"{form}: {loss.item_id or '-'}: {loss.what}" for loss in job.losses]
    return "\n".join(rows) + "\n"


async def _run(prepare: Callable[[Path], list[str]]) -> bytes:
    """The document that a command of the program writes. `prepare` writes what the command reads to a folder."""

    def run() -> bytes:
        with TemporaryDirectory() as name:
            folder = Path(name)
            result = CliRunner().invoke(main, [*prepare(folder), "--output", str(folder / "written")])
            assert result.exit_code == 0, (result.output, result.exception)
            return (folder / "written").read_bytes()

    return await asyncio.to_thread(run)


async def _shared(world: World, form: str) -> bytes:
    """The feed `plans` with its histories and conflicts, as `smartfeeds export --sync` writes it."""

    def prepare(folder: Path) -> list[str]:
        config = folder / "smartfeeds.toml"
        component = f'[component]\njid = "{DOMAIN}"\nsecret = "secret"\n'
        config.write_text(f'{component}[store]\nurl = "{world.component.app.settings.store.url}"\n', "utf-8")
        return ["export", "--node", "plans", "--to", form, "--sync", "--config", str(config)]

    return await _run(prepare)


async def _merged(_: World) -> bytes:
    """Two documents with sync data that `smartfeeds merge` merges."""

    def prepare(folder: Path) -> list[str]:
        for name, by, title in (("here", B1, "Boat on Sunday"), ("there", C1, "Boat trip")):
            head = f"<feed xmlns='{ATOM}'><id>urn:example:{name}</id><title>{name}</title>"
            (folder / name).write_text(f"{head}{version(by, title=title, sync_id='boat')}</feed>", "utf-8")
        return ["merge", str(folder / "here"), str(folder / "there")]

    return await _run(prepare)


DOCUMENTS: Final[Mapping[str, Surface]] = {
    **{f"written-{form}.{_SUFFIXES.get(form, 'xml')}": partial(_written, form=form) for form in FORMATS},
    "written-losses.txt": _losses,
    "shared-atom.xml": partial(_shared, form="atom"),
    "shared-opml.xml": partial(_shared, form="opml"),
    "shared-merged.xml": _merged,
}
