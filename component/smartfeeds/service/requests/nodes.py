"""Creating, configuring and deleting nodes (XEP-0060 8.1 to 8.4)."""

from dataclasses import dataclass, field

from smartfeeds.core.options import FormFields, NodeOptions, OptionLimits
from smartfeeds.service.requests.base import Answer, NodeRequest, Request


@dataclass(frozen=True, slots=True)
class CreateNode(NodeRequest):
    """Creates a node (XEP-0060 8.1). `node` None requests an instant node; `form` None means no configuration."""

    form: FormFields | None = None


@dataclass(frozen=True, slots=True)
class NodeCreated(Answer):
    """`generated` is true if the service chose the name, which the response must then contain."""

    node: str
    generated: bool


@dataclass(frozen=True, slots=True)
class EnsureNode(NodeRequest):
    """Creates a node, or checks that the actor owns one with these options, as PUT does (RFC 9110 9.3.4)."""

    form: FormFields


@dataclass(frozen=True, slots=True)
class NodeEnsured(Answer):
    """`created` is false if the node existed already."""

    created: bool


@dataclass(frozen=True, slots=True)
class GetConfiguration(NodeRequest):
    """Asks for the configuration of a node (XEP-0060 8.2)."""


@dataclass(frozen=True, slots=True)
class Configure(NodeRequest):
    """Configures a node (XEP-0060 8.2.4). `form` None is a form of type cancel. If `expected` is given, the tag of the
    options (`service.nodes.options_tag`) must be one of these texts."""

    form: FormFields | None
    expected: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class GetDefaultConfiguration(Request):
    """Asks for the default configuration of nodes (XEP-0060 8.3). `type` is leaf or collection."""

    type: str = "leaf"


@dataclass(frozen=True, slots=True)
class Configuration(Answer):
    """A node's options, or the defaults of a new node if `node` is None. `limits` decide which choices a form has."""

    node: str | None
    options: NodeOptions
    limits: OptionLimits = field(default_factory=OptionLimits)


@dataclass(frozen=True, slots=True)
class DeleteNode(NodeRequest):
    """Deletes a node (XEP-0060 8.4). `redirect` is the address of the node that replaces the deleted node, empty
    without one."""

    redirect: str = ""
