"""Bookmarks that open a page of this site for the page that a browser shows (`javascript:` addresses).

Browsers do not run them on our own pages, whose policy forbids it: people drag them to their bookmarks.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from smartfeeds.formats.json_text import dump_json

PAGE: Final = "location.href"
TITLE: Final = "document.title.slice(0,300)"  # with a longer one the address could get too long for a request line


def bookmarklet(address: str, values: Mapping[str, str]) -> str:
    """Returns the address of a bookmark that opens `address`. `values` maps parameters to PAGE or TITLE.

    Browsers decode percent-encoding before they run the script. So the whole script is encoded: otherwise `%22` in the
    name of a feed would end the text that it is in.
    """
    script = f"location.href={dump_json(address).decode()}"
    for place, (name, value) in enumerate(values.items()):
        script += f'+"{"&" if place else "?"}{name}="+encodeURIComponent({value})'
    return f"javascript:{quote(script, safe='')}"
