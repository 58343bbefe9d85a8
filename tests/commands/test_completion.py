"""The completion of the shell."""

import re
import subprocess
from pathlib import Path

import pytest

from support.shell import program_in

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("smartfeeds tok", ["token"]),
        ("smartfeeds token ", ["add", "list", "remove"]),
        ("smartfeeds ret", []),  # a former name works, and is not offered
        ("smartfeeds conflicts ", ["list", "resolve"]),  # one of them runs if none is named
        ("smartfeeds item list --w", ["--wide"]),
        ("smartfeeds export --to js", ["json", "jsonfeed"]),
        ("smartfeeds token add --sc", ["--scope"]),
    ],
)
def test_bash_completes(line: str, words: list[str], tmp_path: Path) -> None:
    """With the line that the operator's guide puts into ~/.bashrc."""
    guide = (ROOT / "docs/operator.md").read_text()
    (set_up,) = re.findall(r"(?m)^eval .*_SMARTFEEDS_COMPLETE=bash_source.*$", guide)
    script = f"""
        {set_up}
        [[ $(complete -p smartfeeds) == *"-F _smartfeeds_completion smartfeeds" ]] || exit 9
        read -ra COMP_WORDS <<< "$1"
        [[ $1 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _smartfeeds_completion smartfeeds
        printf "%s\\n" "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-uc", script, "bash", line],
        env=program_in(tmp_path / "bin"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == words
