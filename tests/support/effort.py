"""The number of examples of properties: few in `make test`, all in `make test-all`, very many at night."""

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")  # quick, full or nightly
_QUICK_SHARE = 5  # one example of so many
_QUICK_LEAST = 10


def runs(full: int, nightly: int = 0) -> int:
    """The number of examples of a property that has `full` in `make test-all`, and `nightly`, if more, at night."""
    quick = min(full, max(full // _QUICK_SHARE, _QUICK_LEAST))
    return {"quick": quick, "full": full, "nightly": max(full, nightly)}[PROFILE]
