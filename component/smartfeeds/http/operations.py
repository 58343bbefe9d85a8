"""Operations as values: what a client may send to a route, who may send it, and which responses come back.

Each module of handlers declares its operations. Tables join them to paths and handlers (`side.Route`). The router
checks rights from these values, and `openapi.py` writes the OpenAPI document from the same values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from smartfeeds.core.token import TokenScope
from smartfeeds.core.view import PARAMETER_SCHEMAS, PARAMETERS
from smartfeeds.http.forms import FeedForms
from smartfeeds.http.negotiation import WEB_FORM
from smartfeeds.http.openapi_schemas import TEXT, Schema, ref
from smartfeeds.http.queries import ALL, CALLBACK_NAME, MAX_CALLBACK

# In the order in which headers and the OpenAPI document name them.
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Media type without parameters -> schema of the body.
Content = Mapping[str, Schema]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query string; `place` is "path" or "header" for the others (OpenAPI 3.1, 4.8.12). Those of a
    path are always required."""

    name: str
    schema: Schema
    text: str
    place: str = "query"
    required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `name` is the operationId.

    `answers` maps a status below 300 or a redirect to its content. `errors` are the statuses that `openapi.py` cannot
    derive from the other fields. `scope` is what a token needs on the feed of the path: None means that rights are not
    checked here, READ that a request without a token is anonymous, any other scope that a token is required. `cors`
    lets pages of other hosts use the operation. `body` is empty for an operation that ignores its body. `hint` is added
    to the error for a method that the path does not have. `any_site`: forms of other sites reach the handler, because
    it takes a token that browsers do not send by themselves. `guests`: a form of people who are not signed in, which
    must carry a form token, too. `own_token`: a form with a token of its handler, for which the session of the sender
    does not count. `for_people`: a page or a form of a page. `for_hubs`: a callback path, which only the hub or cloud
    knows that this service has asked. `plain_errors`: errors are plain text, because the protocol of the operation
    demands it. `forms` and `body_forms` return the content of the response 200, and of the body, that depends
    on the formats which the service has.
    """

    name: str
    summary: str
    answers: Mapping[int, Content]
    errors: tuple[int, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Content = field(default_factory=dict)
    body_required: bool = True
    scope: TokenScope | None = None
    cors: bool = False
    hint: str = ""
    any_site: bool = False
    guests: bool = False
    own_token: bool = False
    for_people: bool = False
    for_hubs: bool = False
    plain_errors: bool = False
    forms: Callable[[FeedForms], Content] | None = None
    body_forms: Callable[[FeedForms], Content] | None = None

    @property
    def needs_token(self) -> bool:
        """Whether an anonymous request is rejected."""
        return self.scope is not None and self.scope is not TokenScope.READ

    def with_forms(self, forms: FeedForms) -> "Operation":
        """The operation with the content that depends on the formats which the service has."""
        answers, body = self.answers, self.body
        if self.forms is not None:
            answers = {**answers, 200: {**self.forms(forms), **answers[200]}}
        if self.body_forms is not None:
            body = {**self.body_forms(forms), **body}
        return replace(self, answers=answers, body=body)

    def without(self, media_type: str) -> "Operation":
        """The operation without a media type of its answers."""
        answers = {
            status: {kind: schema for kind, schema in content.items() if kind != media_type}
            for status, content in self.answers.items()
        }
        return replace(self, answers=answers)

    @property
    def described(self) -> bool:
        """Whether the OpenAPI document has the operation. For what pages do, programs have operations of their own."""
        return not (self.for_people or self.for_hubs)


def page_for_people(
    name: str, summary: str, *, form: bool = False, scope: TokenScope | None = None, guests: bool = False
) -> Operation:
    """The operation of a page, or of a form of a page."""
    body: Content = {WEB_FORM: {"type": "object"}} if form else {}
    return Operation(name, summary, {200: {}}, body=body, scope=scope, guests=guests, for_people=True)


IF_NONE_MATCH = Parameter("If-None-Match", {"type": "string"}, "entity tags that the client has", "header")
IF_MATCH = Parameter("If-Match", {"type": "string"}, "entity tag of the version to change", "header")
LAST_EVENT_ID = Parameter("Last-Event-ID", {"type": "string"}, "event streams: cursor to resume after", "header")
WHOLE_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
# Those of a pull, and of the views of a feed.
SINCE = Parameter(
    "since", ref("Position"), "items after this position, which need not be that of an item; empty for the oldest page"
)
UNTIL = Parameter("until", ref("Position"), "items before this position; empty for the newest page")
MAX = Parameter("max", WHOLE_NUMBER, "largest number of items")
# The schema of a parameter cannot depend on the suffix and on another parameter, so the word is only in the text.
MAX_OR_ALL = Parameter("max", WHOLE_NUMBER, f"{MAX.text}; for Atom, RSS and OPML with sync=true also the word {ALL}")
TIMEOUT = Parameter(
    "timeout",
    WHOLE_NUMBER,
    "seconds to wait while no item is in range; the service has a default and an upper limit",
)
CALLBACK = Parameter(
    "callback",
    {"type": "string", "pattern": f"^{CALLBACK_NAME}$", "maxLength": MAX_CALLBACK},
    "JavaScript function that is called with the page (JSON-P)",
)
VIEW_PARAMETERS = tuple(Parameter(name, dict(PARAMETER_SCHEMAS[name]), text) for name, text in PARAMETERS.items())
SYNC = next(parameter for parameter in VIEW_PARAMETERS if parameter.name == "sync")
# Without the characters that XML forbids (XML 1.0, 2.2).
NAME_TEXT: Schema = TEXT | {
    "maxLength": 1023,
    "pattern": "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\ufffe\\uffff]*$",
}
