"""What a program may import from frontdesk is small, typed, written down, and costs nothing until it is used."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import frontdesk
from tests.support.desk import clean_environment

ROOT = Path(__file__).parents[2]
EXTENSIONS = ROOT / "src/frontdesk/agent365/extensions"
# What needs an extra, and where it is used.
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
