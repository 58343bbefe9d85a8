"""The folder of the data of `smartfeeds demo serve`, for its options: they need nothing of the service."""

from typing import Final

FOLDER: Final = ".run"
