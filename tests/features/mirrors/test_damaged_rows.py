"""Damaged rows of mirrors are found."""

import pytest

from smartfeeds.features.mirrors import MIRRORS
from smartfeeds.features.mirrors.mirror import Mirror, dump_settings
from smartfeeds.store.rows import DAMAGES


def test_damaged_row_of_a_mirror_is_found() -> None:
    (reader,) = MIRRORS.row_readers()
    reader.read(("copy", 0, dump_settings(Mirror("copy", "news", "https://b.example/")), "{}"))
    with pytest.raises(DAMAGES):
        reader.read(("copy", 0, "", "{}"))
