"""What is imported when: help texts load no feature, a command no wires, so that both start quickly."""

import subprocess
import sys

HEAVY = {"aiohttp", "jinja2", "slixmpp", "smartfeeds.app.lifecycle", "smartfeeds.http.site", "smartfeeds.xmpp.router"}


def loaded_by(code: str) -> set[str]:
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_declaration_of_a_feature_loads_nothing_else_of_it() -> None:
    modules = loaded_by("import smartfeeds.features")

    assert {name for name in modules if name.startswith("smartfeeds.features.") and name.count(".") > 2} == set()
    assert modules.isdisjoint(HEAVY)


def test_command_that_opens_the_store_loads_no_wires() -> None:
    assert loaded_by("from smartfeeds.app.opening import all_use_cases\nall_use_cases()").isdisjoint(HEAVY)
