"""An ordinary user in the place of root, for tests of files that may not be read or written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """A folder of an ordinary user, with this process acting as that user.

    Root again at the end whatever happens, because all later tests of this process would fail otherwise.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, user = Path(name), os.geteuid()
        try:
            if user == 0:
                os.chown(folder, _NOBODY, _NOBODY)
                os.seteuid(_NOBODY)
            yield folder
        finally:
            os.seteuid(user)
            folder.chmod(0o700)
