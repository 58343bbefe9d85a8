"""The benchmark of moving in from ejabberd, with few items; nothing is timed here."""

from pathlib import Path

import pytest

from bench import bench_moving_ejabberd


@pytest.mark.parametrize("form", ["sql", "dump"])
def test_digest_of_the_source_is_that_of_the_store(form: str, tmp_path: Path) -> None:
    """[IMP-024] [IMP-061] Ids, payloads and both dates. The items need several transactions."""
    lines = list(bench_moving_ejabberd.measure(tmp_path, form, 2_500))

    assert f"{form}: the digests are equal" in lines[-1]
