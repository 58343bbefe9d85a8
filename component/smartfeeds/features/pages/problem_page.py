"""An error as a page."""

from http import HTTPStatus

from smartfeeds.core.urls import LOGIN, NEXT
from smartfeeds.features.pages.frame import PAGE_HEADERS, Frame
from smartfeeds.http.http_errors import BEARER_CHALLENGE, CHALLENGE, Problem
from smartfeeds.http.negotiation import HTML, JSON, choose
from smartfeeds.http.queries import write_query
from smartfeeds.http.replies import Reply
from smartfeeds.texts import N_

_CHOICE = (JSON, HTML)
# The titles of problems: the phrases of `http.HTTPStatus`.
TITLES = (
    *(N_("Bad Request"), N_("Unauthorized"), N_("Forbidden"), N_("Not Found"), N_("Method Not Allowed")),
    *(N_("Not Acceptable"), N_("Request Timeout"), N_("Conflict"), N_("Gone"), N_("Precondition Failed")),
    *(N_("Request Entity Too Large"), N_("Unsupported Media Type"), N_("Requested Range Not Satisfiable")),
    *(N_("Too Many Requests"), N_("Internal Server Error"), N_("Bad Gateway"), N_("Service Unavailable")),
    N_("HTTP Version Not Supported"),
)


# The headings of pages for people, who need not know the phrases.
_HEADINGS = {
    HTTPStatus.UNAUTHORIZED: N_("Please sign in"),
    HTTPStatus.FORBIDDEN: N_("You have no right to do this"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: N_("This is too large"),
}
# What a person can do about it, where the detail does not say it.
_ADVICE = {
    HTTPStatus.TOO_MANY_REQUESTS: N_("Please wait a moment, then load the page again."),
    HTTPStatus.INTERNAL_SERVER_ERROR: N_(
        "This is a fault of the service, not yours. If it happens again, send the number of the incident to the people "
        "who run it."
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: N_("Please wait a moment, then load the page again."),
}


def problem(
    frame: Frame, status: HTTPStatus, title: str, detail: str, here: str = "", *, lacks_scope: bool = False
) -> bytes:
    """An error as a page. `here` is the path to which a sign-in leads back, `lacks_scope` as in `Problem`."""
    text = frame.texts.message(detail)
    return frame.page(
        "problem.html",
        status=status.value,
        title=_HEADINGS.get(status, title),
        advice=_ADVICE.get(status, ""),
        detail=text,
        lacks_scope=lacks_scope,
        login=f"{LOGIN}?{write_query({NEXT: here})}" if here else LOGIN,
        # Errors that have values, and those that only programs cause, are in English.
        translated=text != detail,
    )


def prefers_page(accept: str) -> bool:
    """Whether a client prefers HTML to JSON, as browsers do."""
    return bool(accept) and choose(accept, _CHOICE) is HTML


def for_reader(frame: Frame, accept: str, reply: Reply, *, navigates: bool = False, here: str = "") -> Reply:
    """A problem as a page if the client prefers HTML to JSON, and every other reply unchanged.

    `navigates`: a person opens a page in a browser. The page then has a link to sign in, which leads back to the path
    `here`. A challenge for Basic would make the browser ask for a password before it shows the page.
    """
    if not isinstance(reply, Problem) or not prefers_page(accept):
        return reply
    body = problem(frame, reply.status, reply.title, reply.detail, here, lacks_scope=reply.lacks_scope)
    headers = {**reply.headers, **PAGE_HEADERS}
    if navigates and headers.get("WWW-Authenticate") == CHALLENGE:
        headers["WWW-Authenticate"] = BEARER_CHALLENGE
    return Reply(body, HTML.media_type, reply.status, headers)
