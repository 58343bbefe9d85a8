"""The choice of the theme: light, dark or that of the system. A cookie holds it, so it works without a script."""

from collections.abc import Mapping
from http import HTTPStatus

from smartfeeds.core.urls import RIVER, local_path
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.replies import Reply
from smartfeeds.http.web.frame import THEME, THEMES

_YEAR_S = 365 * 24 * 3_600

CHOOSE_THEME = page_for_people("chooseTheme", "Chooses the theme of the pages for this browser", form=True)


class Themes:
    """Handles the form of the theme, which every page has."""

    def __init__(self, bodies: BodyReader) -> None:
        self._bodies = bodies

    async def choose(self, call: HttpCall) -> Reply:
        """Stores the theme in a cookie and redirects to the page that has the form. Raises FeedError."""
        theme = (await self._bodies.fields(call)).get(THEME, "")
        age_s = _YEAR_S if theme in THEMES else 0
        secure = "; Secure" if call.origin.startswith("https:") else ""
        cookie = (
            f"{THEME}={theme if age_s else ''}; Path={call.base_path or '/'}; Max-Age={age_s}; SameSite=Lax{secure}"
        )
        headers: Mapping[str, str] = {
            "Location": f"{call.base_path}{path_of_referer(call) or RIVER}",
            "Set-Cookie": cookie,
            "Cache-Control": "no-store",
        }
        return Reply(status=HTTPStatus.SEE_OTHER, headers=headers)


def path_of_referer(call: HttpCall) -> str:
    """The path of the page of this site that led to the request, "" if another site or no page did."""
    referer = call.header("Referer")
    return local_path(referer.removeprefix(call.site_url)) if referer.startswith(f"{call.site_url}/") else ""
