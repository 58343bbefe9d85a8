"""The registrations of one kind as consumers of their feeds: bounds, start, and the numbers for metrics."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from smartfeeds.core.backoff import StepPauses
from smartfeeds.core.consumers import Consumer
from smartfeeds.delivery.deliverer import ConsumerKind, Deliverer
from smartfeeds.features.callbacks import rows
from smartfeeds.features.callbacks.metrics import CallbackReading
from smartfeeds.features.callbacks.registration import Callback, CallbackKind
from smartfeeds.features.callbacks.tools import CallbackTools

# Deliveries in progress, in all and to one host (WS-072, RC-051).
AT_ONCE: Final = 100
HOST_AT_ONCE: Final = 4
# A quarter of the deliveries stays free for callbacks that work.
FAILING_AT_ONCE: Final = 75
# A delivery to a silent callback lasts ten seconds. A thousand callbacks that become silent together occupy the places
# for seconds, not for minutes. Each delivery is a connection, and the process has few files (RLIMIT_NOFILE).
SLOW_AT_ONCE: Final = 400
# A delivery occupies the event loop for 0.3 ms. Two of them a millisecond leave a third of its time to publishers and
# readers: beside 1,000 deliveries a publish takes 1.3 ms with the pause and 3.7 ms without; they take 0.9 and 0.3 s.
STARTS: Final = 2
PAUSE_S: Final = 0.001
START_PAGE: Final = 500  # registrations that one transaction reads


class CallbackConsumers:
    """The consumers of the registrations of a kind.

    `label_of` returns the dialect of a registration for metrics.
    """

    def __init__(
        self,
        kind: CallbackKind,
        deliverer: Deliverer,
        pauses: StepPauses,
        tools: CallbackTools,
        label_of: Callable[[Callback], str],
    ) -> None:
        self._kind = kind
        self._service = tools.service
        self._dispatcher = tools.dispatcher
        self._label_of = label_of
        self._clock = tools.now_us
        # With the end of each registration: the store forgets an expired one without telling anybody.
        self._labels: dict[Consumer, tuple[str, int]] = {}
        self._dispatcher.register(
            kind.name,
            ConsumerKind(
                deliverer,
                at_once=AT_ONCE,
                host_at_once=HOST_AT_ONCE,
                failing_at_once=FAILING_AT_ONCE,
                slow_at_once=SLOW_AT_ONCE,
                starts=STARTS,
                pause_s=PAUSE_S,
                backoff=pauses,
                # Another process may have taken the registration.
                stored=True,
            ),
        )

    async def start(self) -> None:
        """Resumes the deliveries of all active registrations, from their marks. Raises StoreError."""
        await self._dispatcher.resume(self._kind.name)
        after_no = 0
        while page := await self._service.read(
            lambda tx, _context: rows.callbacks(tx, self._kind, after_no, START_PAGE)  # noqa: B023
        ):
            for callback in page:
                if callback.active:
                    self.follow(callback)
            after_no = page[-1].callback_no

    def follow(self, callback: Callback) -> None:
        """Delivers the changes of its feed to a registration from now on."""
        self._labels[callback.consumer] = self._label_of(callback), callback.expires_us
        self._dispatcher.follow(callback.consumer)

    def forget(self, consumer: Consumer) -> None:
        """Counts a registration no more."""
        self._labels.pop(consumer, None)

    def readings(self) -> tuple[CallbackReading, ...]:
        """The active registrations by dialect."""
        now_us = self._clock()
        counts = Counter(label for label, expires_us in self._labels.values() if expires_us > now_us)
        return tuple(CallbackReading(label, count) for label, count in counts.items())
