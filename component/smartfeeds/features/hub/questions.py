"""Questions to callbacks: checks of intent, and denials (WebSub sections 5.2 and 5.3).

Questions are stored with their subscription and are asked when they are due, so a restart loses none.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from smartfeeds.core.times import US_PER_S
from smartfeeds.delivery.changes import LOOK_S, failures_logged
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.callbacks.targets import TargetRates
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.hub.protocol import HUB_QUESTION, Mode, question_url
from smartfeeds.features.hub.requests import HUB, QuestionOutcome, prepare_question, settle_question
from smartfeeds.net.callbacks import CallbackAnswer

# A silent callback takes ten seconds. With these places strangers from many networks hardly delay the checks of others.
AT_ONCE: Final = 100
POSTPONED_US: Final = 60 * US_PER_S  # the rates of hosts are per minute (`callbacks.targets`)
_MAX_BYTES: Final = 1_024  # of an answer; a challenge is far shorter

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """The outcome of a question, and the reason for people. `callback` is the subscription if it is active now."""

    verdict: QuestionOutcome
    reason: str = ""
    callback: Callback | None = None


class HubQuestions:
    """Asks the questions that are due. `on_active` is called for each subscription that is active or was renewed."""

    def __init__(self, tools: CallbackTools, on_active: Callable[[Callback], None]) -> None:
        self._service = tools.service
        self._client = tools.client
        self._settings = tools.settings
        self._clock = tools.now_us
        self._new_challenge = tools.new_challenge
        self._on_active = on_active
        self._targets = TargetRates(tools.client, lambda: tools.now_us() / US_PER_S)
        # The hosts that were asked too often, and when they may be asked again. In memory only: a host may have 10,000
        # questions, and a transaction for each of them and minute would delay publishing.
        self._postponed_us: dict[str, int] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Looks for due questions now."""
        self._news.set()

    async def run(self) -> None:
        """Asks for ever. Questions of other processes are found within LOOK_S seconds. Failures are logged."""
        try:
            while True:
                self._news.clear()
                with failures_logged():
                    await self.start_due()
                # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with news.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._news.wait()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def start_due(self) -> None:
        """Starts to ask the questions that are due, up to AT_ONCE at a time. Raises StoreError."""
        limit, now_us = AT_ONCE + len(self._tasks), self._clock()
        self._postponed_us = {host: until_us for host, until_us in self._postponed_us.items() if until_us > now_us}
        hosts = list(self._postponed_us)
        due = await self._service.read(
            lambda tx, _context: callback_rows.due(tx, HUB, now_us, limit, without_hosts=hosts)
        )
        for callback in due:
            if callback.callback_no not in self._tasks and len(self._tasks) < AT_ONCE:
                task = asyncio.create_task(self._ask_due(callback), name=f"question {callback.callback_no}")
                self._tasks[callback.callback_no] = task
                task.add_done_callback(partial(self._ended, callback.callback_no))

    async def idle(self) -> None:
        """Waits until no question is being asked."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _ended(self, callback_no: int, _task: "asyncio.Task[None]") -> None:
        self._tasks.pop(callback_no, None)
        self._news.set()

    async def _ask_due(self, callback: Callback) -> None:
        with failures_logged():
            if await self._targets.admits(callback.host):
                await self.ask(callback)
                return
            self._postponed_us[callback.host] = self._clock() + POSTPONED_US

    async def ask_now(self, callback: Callback) -> AskedQuestion:
        """Asks a question once, for a caller that waits for the outcome (WS-018). Raises StoreError."""
        if not await self._targets.admits(callback.host):
            return AskedQuestion(QuestionOutcome.SILENT, f"{callback.host} was asked too often; try again in a minute")
        return await self.ask(callback, again=False)

    async def ask(self, callback: Callback, *, again: bool = True) -> AskedQuestion:
        """Asks the question of a subscription and applies the outcome. Raises StoreError.

        Without `again` a question without an answer is not repeated.
        """
        # Two transactions, because a callback has ten seconds to answer. `settle_question` changes nothing if another
        # request has replaced the question meanwhile.
        no, text, settings = callback.callback_no, callback.question, self._settings
        current = await self._service.write(lambda tx, context: prepare_question(tx, context, no, text, settings))
        if current is None:
            return AskedQuestion(QuestionOutcome.REFUSED, "another request has replaced this one")
        question, challenge = HUB_QUESTION.read(current.question), self._new_challenge()
        answer = await self._client.get(
            question_url(current.url, current.topic, question, challenge), max_bytes=_MAX_BYTES
        )
        verdict, reason = judge(question.mode, answer, challenge)
        text = current.question
        active = await self._service.write(
            lambda tx, context: settle_question(tx, context, no, text, verdict, again=again)
        )
        _log.info(
            "hub_question_asked",
            subscription=no,
            host=current.host,
            mode=question.mode.value,
            outcome=verdict.value,
            reason=reason,
        )
        if active is not None:
            self._on_active(active)
        if text != callback.question:
            return AskedQuestion(QuestionOutcome.REFUSED, question.reason)
        return AskedQuestion(verdict, reason, active)


def judge(mode: Mode, answer: CallbackAnswer, challenge: str) -> tuple[QuestionOutcome, str]:
    """Returns the outcome that an answer means, and the reason for people.

    Only 2xx with exactly the challenge as the body confirms (WS-034). The answer to a denial does not matter.
    """
    if mode is Mode.DENIED and answer.status:
        return QuestionOutcome.PASSED, ""
    if not answer.status or answer.status == 429 or answer.status >= 500:
        return QuestionOutcome.SILENT, f"the callback {answer.outcome}"
    if not answer.succeeded:
        return QuestionOutcome.REFUSED, f"the callback {answer.outcome}"
    if answer.body == challenge.encode():
        return QuestionOutcome.PASSED, ""
    if answer.body.strip() == challenge.encode():
        return (
            QuestionOutcome.REFUSED,
            "the body has white space around the challenge; it must be the challenge and nothing else",
        )
    return QuestionOutcome.REFUSED, "the body is not the challenge"
