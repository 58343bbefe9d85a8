"""A service whose PostgreSQL server hangs ends in time, and says what it could not store."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from smartfeeds.app.lifecycle import App
from smartfeeds.errors import StoreError
from smartfeeds.features.cluster import lock_session
from support.component import settings
from support.postgres import SHORT_S, running_postgres, shorten_waits
from support.waiting import waiting


async def test_service_ends_while_the_server_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[CAM-002] Deliveries, shards and presence are stored at the end, and each of them fails."""
    monkeypatch.setattr(lock_session, "CLOSE_S", SHORT_S)
    with running_postgres() as server, ExitStack() as resumed:  # a frozen server cannot be stopped
        shorten_waits(server, monkeypatch)
        app = App(settings(1, server.create_database(), store={"files": tmp_path / "files", "lease_s": 1.0}))
        async with waiting("the end of the service"):
            await app.start()
            resumed.callback(server.thaw)
            server.freeze()
            await app.stop()

    with pytest.raises(StoreError, match="closed"):
        await app.service.read(lambda tx, _context: tx.node_count())
