"""What was made and may be asked for again: as much as its bytes allow, what was used longest ago goes first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRY_BYTES = 512  # what an entry takes beside what it says it takes


class Kept(Generic[Key, Value]):
    """Remembers values by their keys, up to `limit_bytes` of them."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The value, which counts as used now; None where it is not kept."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, size_bytes: int) -> None:
        """Keeps a value of this size, in the place of the former one."""
        self.drop(key)
        self._values[key] = (value, size_bytes + ENTRY_BYTES)
        self.size_bytes += size_bytes + ENTRY_BYTES
        while self.size_bytes > self._limit_bytes:
            _, (_, dropped_bytes) = self._values.popitem(last=False)
            self.size_bytes -= dropped_bytes

    def drop(self, key: Key) -> None:
        """Forgets a value."""
        former = self._values.pop(key, None)
        if former is not None:
            self.size_bytes -= former[1]

    def drop_where(self, unwanted: Callable[[Value], bool]) -> None:
        """Forgets all values of which this is true."""
        for key in [key for key, (value, _) in self._values.items() if unwanted(value)]:
            self.drop(key)
