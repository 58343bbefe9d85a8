"""What `import`, `convert` and `merge` share: a document out of a file or standard input."""

from pathlib import Path

import click

from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.formats.documents import read_document
from smartfeeds.formats.items import Document
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES

# A path of a document; "-" is standard input.
DOCUMENT = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


def name_of(file: Path) -> str:
    """What to call the file."""
    return "standard input" if str(file) == "-" else str(file)


def read_file(file: Path, base: str) -> Document:
    """The document in the file, of which no more is read than a document may have. Raises ConfigError."""
    name = name_of(file)
    try:
        with click.open_file(str(file), "rb") as opened:
            data = opened.read(MAX_DOCUMENT_BYTES + 1)
        return read_document(data, base)
    except FeedError as error:
        raise ConfigError(f"{name}: {error.text or error.condition.value}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror}") from None
