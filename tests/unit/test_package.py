"""Tests what the package offers to programs and to the registry of editors."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import frontdesk
from frontdesk import __version__
from tests.support.desk import ROOT, clean_environment

# The protocol's registry: a manifest of the present release, and an icon in the colour of the text


ENTRY = ROOT / "docs/registry/frontdesk"
SVG = "{http://www.w3.org/2000/svg}"


def manifest() -> dict[str, Any]:
    return json.loads(ENTRY.joinpath("agent.json").read_text())


def test_the_manifest_names_the_folder_and_this_release() -> None:
    entry = manifest()
    assert entry["id"] == ENTRY.name
    assert entry["version"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert entry["name"]
    assert entry["description"]


def test_the_manifest_starts_what_an_editor_speaks_to() -> None:
    started = manifest()["distribution"]["uvx"]
    assert started == {"package": f"frontdesk@{__version__}", "args": ["acp"]}


def test_the_icon_is_small_and_has_no_colour_of_its_own() -> None:
    text = ENTRY.joinpath("icon.svg").read_text()
    icon = ET.fromstring(text)
    assert icon.tag == f"{SVG}svg"
    assert (icon.get("width"), icon.get("height"), icon.get("viewBox")) == ("16", "16", "0 0 16 16")
    colours = {value for node in icon.iter() for key in ("fill", "stroke") if (value := node.get(key)) is not None}
    assert colours == {"none", "currentColor"}


# The public imports of frontdesk are few, typed, documented, and cost nothing until they are used


EXTENSIONS = ROOT / "src/frontdesk/agent365/extensions"
# The names that need an extra, and where they are used.
EXTRAS = {
    "letta": ROOT / "src/frontdesk/agents/letta",
    "openai-agents": EXTENSIONS / "openai.py",
    "agent-framework": EXTENSIONS / "agentframework.py",
}


def test_every_public_name_is_there_and_described() -> None:
    page = ROOT.joinpath("docs/reference/python.md").read_text()
    described = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(described) == sorted(frontdesk.__all__)
    for name in frontdesk.__all__:
        assert getattr(frontdesk, name).__name__ == name
    assert {*dir(frontdesk)} == {*frontdesk.__all__, "__version__"}


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'frontdesk' has no attribute 'Journal'"):
        frontdesk.Journal  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    asked = "import frontdesk, sys; print([name for name in sys.modules if name.startswith('frontdesk.')])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_whatever_is_imported_is_declared() -> None:
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text())["project"]
    owners, source = packages_distributions(), ROOT / "src/frontdesk"
    for extra, folder in {None: source, **EXTRAS}.items():
        known = [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else ())]
        declared = {re.split(r"[\[<>=; ]", text)[0] for text in known}
        others = [] if extra else [path for place in EXTRAS.values() for path in [place, *place.rglob("*.py")]]
        paths = [path for path in [folder, *folder.rglob("*.py")] if path.is_file() and path not in others]
        imported = {top for path in paths for top in _imported(path)}
        foreign = sorted(imported - {*sys.stdlib_module_names, "frontdesk"})
        names = {top: {name.lower().replace("_", "-") for name in owners[top]} for top in foreign}
        assert [top for top in foreign if declared.isdisjoint(names[top])] == [], extra


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    page = ROOT.joinpath("docs/reference/python.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    given = clean_environment(FRONTDESK_DATA=str(tmp_path / "data"))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_checkers_of_other_programs_see_the_types() -> None:
    assert ROOT.joinpath("src/frontdesk/py.typed").is_file()
