"""Counts what each address or user has in use at the moment, up to a limit."""

from collections import Counter


class Quota:
    """Counts what each key has in use, at most `most` at a time."""

    __slots__ = ("_counts", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def take(self, key: str) -> bool:
        """Whether a key may use one more; if so it is counted until `release`."""
        if self._counts.get(key, 0) >= self._most:
            return False
        self._counts[key] += 1
        return True

    def release(self, key: str) -> None:
        """A key uses one less."""
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
