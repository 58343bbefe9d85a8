"""An error as a page."""

from http import HTTPStatus

from smartfeeds.features.pages.frame import PAGE_HEADERS, Frame
from smartfeeds.http.http_errors import BEARER_CHALLENGE, CHALLENGE, Problem
from smartfeeds.http.negotiation import HTML, JSON, choose
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


def problem(frame: Frame, status: HTTPStatus, title: str, detail: str) -> bytes:
    """An error as a page."""
    text = frame.texts.message(detail)
    return frame.page(
        "problem.html",
        status=status.value,
        title=title,
        detail=text,
        # Errors that have values, and those that only programs cause, are in English.
        translated=text != detail,
    )


def prefers_page(accept: str) -> bool:
    """Whether a client prefers HTML to JSON, as browsers do."""
    return bool(accept) and choose(accept, _CHOICE) is HTML


def for_reader(frame: Frame, accept: str, reply: Reply, *, navigates: bool = False) -> Reply:
    """A problem as a page if the client prefers HTML to JSON, and every other reply unchanged.

    `navigates`: a person opens a page in a browser. The page then has a link to sign in. A challenge for Basic would
    make the browser ask for a password before it shows the page.
    """
    if not isinstance(reply, Problem) or not prefers_page(accept):
        return reply
    body = problem(frame, reply.status, reply.title, reply.detail)
    headers = {**reply.headers, **PAGE_HEADERS}
    if navigates and headers.get("WWW-Authenticate") == CHALLENGE:
        headers["WWW-Authenticate"] = BEARER_CHALLENGE
    return Reply(body, HTML.media_type, reply.status, headers)
