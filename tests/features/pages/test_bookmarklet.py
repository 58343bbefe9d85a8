"""Bookmarks: what a browser runs, whatever the name of a feed is."""

import json
from urllib.parse import unquote

import pytest

from smartfeeds.core.urls import WRITE, entry_path
from smartfeeds.features.pages.bookmarklet import PAGE, TITLE, bookmarklet

SITE = "https://feeds.example.org"


@pytest.mark.parametrize(
    "name", ["town", "two words", "a');alert(1)//", 'a");alert(1)//', "%22+alert(1)+%22", "é\n</script>"]
)
def test_name_of_a_feed_stays_a_text(name: str) -> None:
    """A browser decodes the address once, and runs the rest."""
    address = f"{SITE}{entry_path(name, folder=WRITE)}"
    script = unquote(bookmarklet(address, {"link": PAGE, "title": TITLE}).removeprefix("javascript:"))
    text, end = json.JSONDecoder().raw_decode(script.removeprefix("location.href="))
    assert text == address
    assert script.removeprefix("location.href=")[end:] == (
        '+"?link="+encodeURIComponent(location.href)+"&title="+encodeURIComponent(document.title.slice(0,300))'
    )
