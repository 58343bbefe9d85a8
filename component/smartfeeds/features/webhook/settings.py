"""The section `[[webhook]]`, its value, and the consumer of a webhook."""

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from smartfeeds.app.config_types import SettingsSection, WebAddress
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Node
from smartfeeds.core.view import SMART, View, parse_view
from smartfeeds.errors import FeedError

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings

KIND: Final = "webhook"  # of the consumers: webhook:NAME


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that receives the changes of a view of a node. `filter` is the text of the view, "" for all items.
    `secret` signs the changes, "" for none."""

    name: str
    url: str
    node: str
    filter: str
    view: View
    secret: str
    allow_private: bool

    @property
    def host(self) -> str:
        """The host of the address. Lists show it in place of the address, whose path is often a secret."""
        return urlsplit(self.url).hostname or ""

    def consumer(self, node: Node) -> Consumer:
        """Its consumer at its node."""
        return Consumer(node.node_no, f"{KIND}:{self.name}")


class WebhookSettings(SettingsSection):
    """An address that receives the changes of a node. The section may occur several times."""

    url: WebAddress
    node: Annotated[str, Field(min_length=1)]
    filter: str = ""
    name: Annotated[str, Field(max_length=60, pattern=r"^[A-Za-z0-9._-]*$")] = ""
    secret: SecretStr = SecretStr("")
    allow_private: bool = False

    def to_webhook(self) -> Webhook:
        """Returns the webhook that this section describes. Raises ValueError for a filter that does not exist."""
        return Webhook(
            self.name or self._derived_name(),
            self.url,
            self.node,
            self.filter,
            view_of(self.filter),
            self.secret.get_secret_value(),
            self.allow_private,
        )

    def _derived_name(self) -> str:
        """A name that stays the same as long as the address, the node and the filter do."""
        digest = sha256("\0".join((self.url, self.node, self.filter)).encode()).hexdigest()[:8]
        return f"{urlsplit(self.url).hostname}-{digest}"

    @model_validator(mode="after")
    def _check_webhook(self) -> "WebhookSettings":
        self.to_webhook()
        return self


def view_of(text: str) -> View:
    """Returns the view with filters such as `category=news&lang=en`. Raises ValueError."""
    try:
        view = parse_view(text) if text else SMART
    except FeedError:  # a position, or a search without words
        view = None
    if view is None or (text and not view.filtered) or view.order is not SMART.order or view.sync:
        raise ValueError(f'filter: must be filters of views, such as "category=news&lang=en", not "{text}"')
    return view


def check_webhooks(settings: "Settings") -> None:
    """Checks that no two webhooks have one name. Raises ValueError."""
    names = [section.to_webhook().name for section in settings.sections(WebhookSettings)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f'two [[webhook]] sections have the name "{name}"; change or remove one of them')
