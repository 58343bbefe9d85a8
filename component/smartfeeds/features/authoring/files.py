"""Background work on files of feeds: files that no item uses any more are removed (`requests`)."""

from collections.abc import Awaitable, Callable, Collection

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.features.authoring import rows
from smartfeeds.features.authoring.requests import remove_unused
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.files import FileFolder

PAUSE_S = 600.0  # files are unused for an hour before they are removed, so this may be late


async def remove_unused_files(service: FeedService, folder: FileFolder) -> None:
    """Removes the rows of unused files, and then all files without rows: also those that a crash or a deleted feed
    left. Raises StoreError."""
    await service.write(remove_unused, turn="files")

    async def known(digests: Collection[str]) -> set[str]:
        return await service.read(lambda tx, _context: rows.known_digests(tx, digests), turn="files")

    await folder.remove_unknown(known)


async def tidy_files(service: FeedService, folder: FileFolder, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Removes unused files again and again, for ever. Failures are logged."""
    while True:
        with failures_logged():
            await remove_unused_files(service, folder)
        await sleep(PAUSE_S)
