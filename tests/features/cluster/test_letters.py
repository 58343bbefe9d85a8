"""The queue of letters to other processes."""

import asyncio

import pytest

from smartfeeds.delivery.letters import LetterTopic
from smartfeeds.errors import StoreError
from smartfeeds.features.cluster import letters as letters_module
from smartfeeds.features.cluster.letter import EVERY_PROCESS, SHARED, split_letter, write_letter
from smartfeeds.features.cluster.letters import LIFE_S, Letterbox


class Post:
    """A database that may be away, with a clock that moves in pauses only."""

    def __init__(self) -> None:
        self.letters: list[bytes] = []
        self.failures = 0  # of the next attempts
        self.fault: Exception | None = None
        self.now_s = 0.0
        self.box = Letterbox(self.send, lambda: True, clock=lambda: self.now_s, sleep=self.pause)

    async def send(self, _recipient: str, letter: bytes) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the database is away")
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.letters.append(letter)

    async def pause(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)

    async def settle(self) -> None:
        assert self.box._work is not None
        await self.box._work


async def test_letters_wait_for_the_database_in_their_order() -> None:
    """[TOP-013] Presence in another order would mean something else."""
    post = Post()
    post.failures = 3
    post.box.post(EVERY_PROCESS, b"1")
    post.box.post(EVERY_PROCESS, b"2")
    await post.settle()
    assert post.letters == [b"1", b"2"]


async def test_letter_that_is_too_old_is_lost(capfd: pytest.CaptureFixture[str]) -> None:
    """[TOP-013] The process that it was for asks anew."""
    post = Post()
    post.failures = 1_000
    post.box.post(EVERY_PROCESS, b"1")
    post.box.post(EVERY_PROCESS, b"2")
    await post.settle()
    assert post.letters == [] and post.now_s == LIFE_S
    assert capfd.readouterr().err.count("letters_lost") <= 1


async def test_letters_that_wait_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that hangs must not fill the memory."""
    monkeypatch.setattr(letters_module, "WAITING_BYTES", 1_500)
    post = Post()
    for _ in range(4):
        post.box.post(EVERY_PROCESS, b"x" * 100)
    await post.settle()
    assert len(post.letters) == 2
    post.box.post(EVERY_PROCESS, b"x" * 100)
    await post.settle()
    assert len(post.letters) == 3, "there is room again"


async def test_fault_in_one_letter_does_not_hold_up_the_others() -> None:
    post = Post()
    post.fault = ValueError("a NUL in a text")
    post.box.post(EVERY_PROCESS, b"1")
    post.box.post(EVERY_PROCESS, b"2")
    await post.settle()
    assert post.letters == [b"2"]


async def test_process_that_stops_does_not_wait_for_the_database() -> None:
    """[TOP-034]"""
    post = Post()
    post.failures = 1_000
    post.box.post(EVERY_PROCESS, b"1")
    await post.box.close()
    assert (post.letters, post.now_s) == ([], 0.0)


def test_topics_of_newer_versions_are_ignored() -> None:
    """[TOP-034] Both versions run during a restart of one process after the other."""
    bodies: list[bytes] = []
    box = Post().box
    box.read(SHARED, bodies.append)
    for letter in (write_letter(SHARED, b"a:b"), b"later:c", write_letter(LetterTopic("other"), b"d")):
        box.receive(letter)
    assert bodies == [b"a:b"]
    assert split_letter(b"later:c") == ("later", b"c")
