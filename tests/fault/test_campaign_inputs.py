"""Short versions of the campaigns with mutated input and with two services that mirror each other."""

from pathlib import Path

import pytest

from campaign.federation import federation_piece
from campaign.fuzz import TARGETS, fuzz_piece, try_input
from campaign.fuzz_target import Target
from campaign.service import Preload

SEED = 20261
INPUTS = 300
SLOW_INPUTS = {"ejabberd dump": 40, "ejabberd sql": 20, "prosody sql": 40}


@pytest.mark.parametrize("name", list(TARGETS))
def test_mutated_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    """[CAM-060]"""
    assert fuzz_piece(name, tmp_path, SEED, SLOW_INPUTS.get(name, INPUTS)).problems == ()


def test_error_outside_of_the_contract_is_a_finding() -> None:
    """[CAM-036] A parser that lets an error of its own escape."""

    def read(data: bytes) -> object:
        return data[3]

    target = Target(read, (b"abc",), (b"x",), (ValueError,))
    assert try_input(target, b"abc") == "IndexError: index out of range"
    assert try_input(target, b"abcd") == ""


async def test_services_that_mirror_each_other_end_equal_after_kills_and_cuts(preload: Preload, tmp_path: Path) -> None:
    """[CAM-007] [CAM-058] Items of both sides conflict; the last edit of each is the winner or a conflict."""
    piece = await federation_piece(preload, tmp_path / "run", SEED, 3)
    assert (piece.problems, piece.verdict.findings) == ((), ())
    assert piece.verdict.counts["acknowledged"] > 0 and piece.verdict.counts["faults"] > 0
