"""What runs of authoring: the folder of uploads, and the work that removes unused files from it."""

import asyncio
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.authoring.files import tidy_files
from smartfeeds.features.authoring.rights import entry_forms
from smartfeeds.features.authoring.uploads import UploadFolder
from smartfeeds.store.files import FileFolder


def run_authoring(host: Host) -> Running:
    """Returns what runs. One process at a time removes unused files, also without HTTP."""
    settings, folder = host.settings, host.parts.get(FileFolder)
    duty = ("files", partial(tidy_files, host.service, folder, asyncio.sleep))
    if not settings.http.listen:
        return Running(duties=(duty,))
    forms = entry_forms(host.handle, settings.component.jid)
    return Running(parts=(forms, UploadFolder(folder, settings.http.upload_bytes)), duties=(duty,))
