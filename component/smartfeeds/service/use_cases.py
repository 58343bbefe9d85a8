"""Use cases as values: which function answers a type of request, and under which name it is counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smartfeeds.service.context import NO_HOOKS, Hooks
from smartfeeds.service.requests import Request

# Parameters: the transaction, the context, and `request`. A read may return `steps.IndexFirst` in place of its answer,
# a write `steps.MoreSteps` as well.
Read = Callable[..., Any]
Write = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class UseCases:
    """The use cases that only read and those that write, by the type of the request.

    The names are for metrics and logs. `pulls` are the requests that the statistics count as pulls, and `limited` those
    that count against `limits.publishes_per_s`. `governed` are the functions of some writes for nodes whose name says
    that they belong to another node (`core.attachment_names`). `hooks` are what they add to the use cases of the
    kernel.
    """

    reads: Mapping[type[Request], tuple[str, Read]] = field(default_factory=dict)
    writes: Mapping[type[Request], tuple[str, Write]] = field(default_factory=dict)
    pulls: frozenset[type[Request]] = frozenset()
    limited: frozenset[type[Request]] = frozenset()
    governed: Mapping[type[Request], Write] = field(default_factory=dict)
    hooks: Hooks = NO_HOOKS

    @property
    def names(self) -> Mapping[type[Request], str]:
        """The name of each use case."""
        return {request: name for request, (name, _) in (*self.reads.items(), *self.writes.items())}

    def __or__(self, others: "UseCases") -> "UseCases":
        """These use cases and others. Those that both have are the others'."""
        return UseCases(
            {**self.reads, **others.reads},
            {**self.writes, **others.writes},
            self.pulls | others.pulls,
            self.limited | others.limited,
            {**self.governed, **others.governed},
            self.hooks | others.hooks,
        )
