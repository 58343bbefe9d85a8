"""An error as a page."""

from http import HTTPStatus

from smartfeeds.http import negotiation as n
from smartfeeds.http.http_errors import Problem
from smartfeeds.http.replies import Reply
from smartfeeds.http.web.frame import PAGE_POLICY, PAGE_VARY, Frame
from smartfeeds.http.web.static_files import LOGIN

_CHOICE = (n.JSON, n.HTML)


def problem(frame: Frame, status: HTTPStatus, title: str, detail: str) -> bytes:
    """An error as a page."""
    return frame.page("problem.html", status=status.value, title=title, detail=detail, login=LOGIN)


def for_reader(frame: Frame, accept: str, reply: Reply) -> Reply:
    """A problem as a page if the client prefers HTML to JSON, and every other reply unchanged."""
    if not isinstance(reply, Problem) or not accept or n.choose(accept, _CHOICE) is not n.HTML:
        return reply
    body = problem(frame, reply.status, reply.title, reply.detail)
    headers = {**reply.headers, "Content-Security-Policy": PAGE_POLICY, "Vary": PAGE_VARY}
    return Reply(body, n.HTML.media_type, reply.status, headers)
