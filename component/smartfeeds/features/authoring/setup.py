"""Sets up the folder of uploads, and the task that removes unused files from it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.delivery.changes import failures_logged
from smartfeeds.features.authoring import rows
from smartfeeds.features.authoring.requests import remove_unused
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.file_folder import FileFolder

PAUSE_S = 600.0  # files are unused for an hour before they are removed, so this may be late


def run_authoring(host: Host) -> Running:
    """Returns what runs. One process at a time removes unused files, also without HTTP."""
    settings, folder = host.settings, host.parts.get(FileFolder)
    duty = ("files", partial(tidy_files, host.service, folder, asyncio.sleep))
    if not settings.http.listen:
        return Running(duties=(duty,))
    from smartfeeds.features.authoring.rights import entry_forms
    from smartfeeds.features.authoring.uploads import UploadFolder

    forms = entry_forms(host.handle, settings.component.jid)
    return Running(parts=(forms, UploadFolder(folder, settings.http.upload_bytes)), duties=(duty,))


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
