"""The last delivery to each callback, for the operator's list; stored some time after the deliveries, many at once."""

import asyncio
from collections.abc import Callable
from time import perf_counter

import structlog

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.errors import StoreError
from smartfeeds.features.callbacks import rows
from smartfeeds.features.callbacks.metrics import CALLBACK_SECONDS
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.net.callbacks import CallbackAnswer
from smartfeeds.service.feeds import FeedService

FLUSH_S = 1.0  # a burst of deliveries costs one write

_log = structlog.get_logger()


class DeliveryResults:
    """Collects results and stores them; `aclose` stores the last ones. `clock` gives microseconds."""

    def __init__(self, service: FeedService, clock: Callable[[], int]) -> None:
        self._service = service
        self._clock = clock
        self._unsaved: dict[int, tuple[int, str]] = {}
        self._saver: asyncio.Task[None] | None = None

    def note(self, callback: Callback, answer: CallbackAnswer, began_s: float, refusal: str = "") -> None:
        """Records a delivery that began at this time of `perf_counter`.

        `refusal` says why a delivery failed although its status may be that of a success.
        """
        result = f"{answer.status // 100}xx" if answer.status else "none"
        CALLBACK_SECONDS.labels(callback.kind, result).observe(perf_counter() - began_s)
        self._unsaved[callback.callback_no] = (self._clock(), refusal or answer.outcome)
        if self._saver is None or self._saver.done():
            self._saver = asyncio.create_task(self._save_later(), name="callback results")

    async def save(self) -> None:
        """Stores the results that are not stored yet. Raises StoreError; the results are lost then."""
        # Results that come during the write belong to the next one.
        unsaved, self._unsaved = self._unsaved, {}
        if unsaved:
            results = [(callback_no, at_us, text) for callback_no, (at_us, text) in unsaved.items()]
            await self._service.write(lambda tx, _context: rows.note_deliveries(tx, results))

    async def aclose(self) -> None:
        """Stores the last results. A failure is logged."""
        if self._saver is not None:
            self._saver.cancel()
            await asyncio.gather(self._saver, return_exceptions=True)
        with failures_logged():
            await self.save()

    async def _save_later(self) -> None:
        while self._unsaved:
            await asyncio.sleep(FLUSH_S)
            try:
                await self.save()
            except StoreError as error:
                # They are only for people, and the next delivery has a newer one.
                _log.error("results_not_saved", reason=str(error))
