"""The golden values of the Smart Feeds cursors, windows and push chain."""

import json
from pathlib import Path
from typing import Any

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text("utf-8"))


def group_of(example: dict[str, Any]) -> list[str]:
    """The ids of a row of `toc_cursors`; the long group is generated."""
    group = example["group"]
    return [f"g_{n}" for n in range(1000)] if isinstance(group, str) else list(group)
