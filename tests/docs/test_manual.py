"""The manual names everything there is, names nothing that is not, and its marked commands run."""

import re
from pathlib import Path

import pytest

from smartfeeds.app.config import SECTIONS, load
from smartfeeds.cli import main
from smartfeeds.console import EXIT_TEXTS
from smartfeeds.core.model import MAX_SYNC_BYTES
from smartfeeds.formats.xml import MAX_PAYLOAD_BYTES
from smartfeeds.service.merging import MAX_ENDPOINTS
from smartfeeds.service.syncing import EDITED_SYNC_BYTES
from smartfeeds.sync.record import MAX_CONFLICTS, MAX_HISTORY
from support.headings import anchors
from support.metrics import metric_names
from support.shell import commands

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\(([^)#]+)[^)]*\)")


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def manual() -> str:
    return (ROOT / "docs/operator.md").read_text()


def keys() -> list[str]:
    return [f"{section}.{key}" for section, model in SECTIONS.items() for key in model.model_fields]


def test_manual_has_every_configuration_key_and_no_other(manual: str) -> None:
    table = set(re.findall(r"(?m)^\| `([a-z]+\.[a-z_]+)` \|", manual))

    assert table == set(keys())


def test_sample_loads() -> None:
    assert load(ROOT / "config/smartfeeds.toml").component.jid == "feeds.example.org"


def test_manual_has_the_defaults(manual: str, tmp_path: Path) -> None:
    path = tmp_path / "smartfeeds.toml"
    path.write_text('[component]\njid = "feeds.example.org"\nsecret = "x"\n')
    defaults = load(path).model_dump(mode="json")

    rows = re.findall(r"(?m)^\| `([a-z]+)\.([a-z_]+)` \| `(.*?)` \|", manual)
    assert len(rows) > 20
    for section, key, shown in rows:
        value = defaults[section][key]
        assert shown == (str(value).lower() if isinstance(value, bool) else str(value)), f"{section}.{key}"


def test_manual_has_every_command_and_no_other(manual: str) -> None:
    table = manual.partition("## Commands")[2].partition("### Exit codes")[0]
    shown = re.findall(r"`(smartfeeds [^`]+)`", table)

    for command in commands(main):
        assert any(f"{one} ".startswith(f"{command} ") for one in shown), command
    for one in shown:
        assert any(f"{one} ".startswith(f"{command} ") for command in commands(main)), one


def test_manual_has_every_exit_code_with_its_meaning(manual: str) -> None:
    table = dict(re.findall(r"(?m)^\| (\d+) \| (.*?) \|$", manual))

    assert {int(code) for code in table} == {int(code) for code in EXIT_TEXTS}
    for code, text in EXIT_TEXTS.items():
        assert table[str(int(code))].startswith(text)


def test_manual_quotes_messages_of_the_program(manual: str) -> None:
    """Word for word; `...` stands for the parts that differ."""
    table = manual.partition("| message | what to do |")[2].partition("\n\n")[0]
    quotations = re.findall(r"(?m)^\| `([^`]+)` \|", table)
    source = "\n".join(path.read_text() for path in (ROOT / "component").rglob("*.py"))
    source = re.sub(r"\"\s+f?\"", "", source)  # a text may be written in several pieces

    assert len(quotations) > 8
    for quotation in quotations:
        assert re.search(r"[^\n]*".join(map(re.escape, quotation.split("..."))), source), quotation


def test_manual_has_every_metric_and_no_other(manual: str) -> None:
    rows = re.findall(r"(?m)^\| (`smartfeeds_\w+`(?:, `smartfeeds_\w+`)*) \|", manual)
    assert set(re.findall(r"smartfeeds_\w+", " ".join(rows))) == set(metric_names())


def test_every_metric_is_measured_somewhere() -> None:
    source = {path: path.read_text() for path in (ROOT / "component/smartfeeds").rglob("*.py")}
    modules = [path for path in source if path.name in ("telemetry.py", "metrics.py")]
    definitions = "\n".join(source.pop(path) for path in modules)
    names = re.findall(r"(?m)^([A-Z_]+) = (?:Counter|Gauge|Histogram)\(", definitions)
    used = "\n".join([*source.values(), definitions.partition("REGISTRY.register(GATHERED)")[2]])

    assert len(names) > 5
    assert [name for name in names if not re.search(rf"\b{name}\.(labels|inc|dec|set|observe)\b", used)] == []
    assert "GATHERED.source = " in used


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_to_files_that_are_there(path: Path) -> None:
    targets = [target for target in LINK.findall(path.read_text()) if "://" not in target]

    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_to_sections_that_are_there(path: Path) -> None:
    targets = re.findall(r"\[[^\]]+\]\(([^)#:]*)#([^)]+)\)", path.read_text())

    missing = [(page, name) for page, name in targets if name not in anchors(path.parent / page if page else path)]
    assert missing == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_make_targets_that_are_named_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"`make ([a-z]+)", path.read_text()) + re.findall(
        r"(?m)^make ([a-z]+)$", path.read_text()
    ):
        assert re.search(rf"(?m)^{target}:", makefile), target


def test_readme_excerpt_is_from_the_demonstration() -> None:
    """Scene 2 shows the gap and scene 5 the proof. Cursors and times differ from run to run."""
    text = (ROOT / "README.md").read_text()
    transcript = text.partition("<!-- transcript: smartfeeds demo gap -->")[2].partition("<!-- end of transcript -->")[
        0
    ]
    source = (ROOT / "component/smartfeeds/features/demo/gap.py").read_text()

    scenes = re.findall(r"(?m)^\d\. .*$", transcript)
    assert [scene[0] for scene in scenes] == ["2", "5"]
    for scene in scenes:
        assert scene in source
    assert "They are the same. Bob, in all his runs: in step" in transcript and "Bob, in all his runs: " in source
    assert re.search(r"mirror (\d+ items, sha256 \w+)\s+feed   \1", transcript)


def test_readme_numbers_are_those_of_the_benchmarks() -> None:
    readme, benchmarks = (ROOT / "README.md").read_text(), (ROOT / "docs/benchmarks.md").read_text()
    numbers = re.findall(r"(?<=\| )[\d.,]+ ?(?:ms|/s)(?= \|)", readme)

    assert len(numbers) >= 6
    assert [number for number in numbers if not re.search(rf"\| {re.escape(number)} [(|]", benchmarks)] == []


def test_readme_program_can_be_pasted_into_a_file() -> None:
    """As it stands, without asyncio."""
    (program,) = re.findall(r"(?s)```python\n(.*?)```", (ROOT / "README.md").read_text())

    compile(program, "bot.py", "exec")
    assert "await " not in program


@pytest.mark.parametrize("page", ["operator.md", "convergence.md"])
def test_bounds_of_an_item_are_those_of_the_code(page: str) -> None:
    """[A-55]"""
    text = " ".join((ROOT / "docs" / page).read_text().split())
    told = (f"{MAX_SYNC_BYTES:,} bytes", f"{EDITED_SYNC_BYTES:,} bytes", "`max_payload_size`")
    read = (f"{MAX_HISTORY:,} records", f"{MAX_CONFLICTS} conflicts", f"{MAX_PAYLOAD_BYTES // 1024**2} MiB")

    assert [bound for bound in (*told, *read) if bound not in text] == []


def test_bound_of_endpoints_is_that_of_the_code(manual: str) -> None:
    """[A-55]"""
    assert f"{MAX_ENDPOINTS} endpoints" in " ".join(manual.split())


def test_pages_say_what_else_a_decision_settles(manual: str) -> None:
    """[FS-051] Versions of the person who decides, in the same words on both pages."""
    settled = (
        "It also settles conflicts with earlier versions by this person at this service, because authors have seen "
        "their own versions (FeedSync 3.2)"
    )

    for text in (manual, (ROOT / "docs/http.md").read_text()):
        assert settled in " ".join(text.split())
