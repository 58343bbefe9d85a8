"""The parts of the service that follow the component stream: mirrors, which need its messages."""

from collections.abc import Callable
from typing import NamedTuple

from lxml import etree


class _Listener(NamedTuple):
    on_up: Callable[[], None]
    on_down: Callable[[], None]
    on_message: Callable[[etree._Element], None]


class Listeners:
    """Callbacks in the order in which they were added. A callback may add and remove listeners."""

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []

    def add(
        self,
        on_up: Callable[[], None],
        on_down: Callable[[], None],
        on_message: Callable[[etree._Element], None],
    ) -> Callable[[], None]:
        """Adds callbacks and returns the function that removes them."""
        listener = _Listener(on_up, on_down, on_message)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def up(self) -> None:
        """The stream is online."""
        for listener in tuple(self._listeners):
            listener.on_up()

    def down(self) -> None:
        """The stream has ended."""
        for listener in tuple(self._listeners):
            listener.on_down()

    def pass_message(self, message: etree._Element, on_failure: Callable[[etree._Element], object]) -> None:
        """Passes a message to every listener. `on_failure` is called for a listener that raises."""
        for listener in tuple(self._listeners):
            try:
                listener.on_message(message)
            except Exception:  # noqa: BLE001 - one follower must not end the link for everybody
                on_failure(message)
