"""The schema files in parts. A copy builds the indexes after its rows, which is faster than updating them."""

import re

_INDEX = re.compile(r"(?m)\A(?:--.*\n)*CREATE (?:UNIQUE )?INDEX ")


def schema_blocks(text: str) -> tuple[list[str], list[str]]:
    """Returns the blocks of a schema file that are not indexes, and those that are.

    A block ends with an empty line and has one or several statements.
    """
    blocks = [block for block in re.split(r"\n{2,}", text) if block.strip()]
    indexes = [block for block in blocks if _INDEX.match(block)]
    return [block for block in blocks if block not in indexes], indexes
