"""Keeps packages out of memory that a library imports only because they are installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden(*packages: str) -> Iterator[None]:
    """Makes imports of packages fail, as if they were not installed. Packages that are in memory stay there."""
    absent = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: `import` raises ImportError
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
