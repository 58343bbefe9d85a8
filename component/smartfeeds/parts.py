"""The running objects of a service by type, through which features and HTTP handlers reach those of other features."""

from typing import TypeVar

P = TypeVar("P")


class Parts:
    """The running objects that features have added. There is one of each type at most."""

    def __init__(self) -> None:
        self._by_type: dict[type, object] = {}

    def add(self, part: object) -> None:
        """Adds a part under its type."""
        self._by_type[type(part)] = part

    def find(self, kind: type[P]) -> P | None:
        """Returns the part of a type; None if its feature is switched off."""
        part = self._by_type.get(kind)
        return part if isinstance(part, kind) else None

    def get(self, kind: type[P]) -> P:
        """Returns the part of a type. Raises LookupError if there is none: `needs` of the feature lacks its owner."""
        part = self.find(kind)
        if part is None:
            raise LookupError(f"no feature runs a {kind.__name__}")
        return part
