"""The authentication of requests: the interface of the feature that recognises users, and the anonymous service without
one.

Without it everybody is anonymous: feeds that are open to all can be read, and nothing can be changed over HTTP.
"""

from typing import Protocol

from smartfeeds.core.token import Token
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import HttpCall

FORM_TOKEN = "csrf"  # noqa: S105 - the name of the form field with `HttpCall.form_token`


class Authenticator(Protocol):
    """Recognises the senders of requests."""

    async def identify(self, call: HttpCall) -> None:
        """Sets the actor of a call from its credentials. Raises FeedError if they are not valid. Called for requests
        with the header Authorization or Cookie."""

    async def authenticate(self, credential: str) -> Token:
        """Returns the token for the credential of a call that was identified before, if it is still valid. Raises
        FeedError."""

    async def read_token(self, text: str) -> Token:
        """Returns the bearer token with a text that is not in the header Authorization. Raises FeedError."""

    async def check_form(self, call: HttpCall) -> None:
        """Raises HttpError(403) if a change does not come from a page of ours that was made for this browser. Called
        for browsers that are signed in, and for forms of guests."""


class NobodyKnown:
    """The authenticator of a service that recognises nobody."""

    async def identify(self, call: HttpCall) -> None:
        """Raises FeedError for a call with credentials: its sender expects other rights than it would get."""
        if call.credential:
            await self.authenticate(call.credential)

    async def authenticate(self, credential: str) -> Token:
        """Raises FeedError."""
        return await self.read_token(credential)

    async def read_token(self, text: str) -> Token:  # noqa: ARG002 - no text is a token
        """Raises FeedError."""
        raise FeedError(Condition.NOT_AUTHORIZED, "this service has no tokens: send the request without credentials")

    async def check_form(self, call: HttpCall) -> None:
        """Accepts every form: a browser that is not signed in has no rights that another page could use."""
