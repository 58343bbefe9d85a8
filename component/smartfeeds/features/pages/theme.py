"""The choice of the theme: light, dark or that of the system. A cookie holds it, so it works without a script."""

from smartfeeds.core.urls import RIVER
from smartfeeds.features.pages.frame import THEME, THEMES
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall, set_cookie
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.replies import Reply

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
        return call.see_other(call.referer_path or RIVER, set_cookie(call, THEME, theme if age_s else "", age_s))
