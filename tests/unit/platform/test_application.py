"""The name of the application that runs here."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.agent365 import get_application_name, reset_application_name_cache
from tests.requirements import shows

SECONDS = 60
THREADS = """
import sys, threading
from frontdesk.agent365 import get_application_name
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
together = threading.Barrier(8)
def ask():
    together.wait()
    for _ in range(20):
        get_application_name({})
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(str(path).endswith("pyproject.toml") for path in opened), get_application_name({}))
"""


@pytest.fixture(autouse=True)
def pyproject(tmp_path: Path) -> Iterator[Path]:
    reset_application_name_cache()
    yield tmp_path / "pyproject.toml"
    reset_application_name_cache()


def test_the_variable_is_looked_at_each_time_and_beats_what_was_read(pyproject: Path) -> None:
    pyproject.write_text('[project]\nname = "of-the-file"\n')
    assert get_application_name({}) == "of-the-file"
    assert get_application_name({"AGENT365_APPLICATION_NAME": "one"}) == "one"
    assert get_application_name({"AGENT365_APPLICATION_NAME": "two"}) == "two"
    assert get_application_name({"AGENT365_APPLICATION_NAME": ""}) == "of-the-file"


def test_that_there_is_no_name_is_kept_too_until_it_is_reset(pyproject: Path) -> None:
    assert get_application_name({}) is None
    pyproject.write_text('[project]\nname = "late"\n')
    assert get_application_name({}) is None
    reset_application_name_cache()
    assert get_application_name({}) == "late"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('[project]\nname = "double"\n', "double"),
        ("[project]\nname = 'single' # why\n", "single"),
        ('\ufeff[project]\r\nname = "windows"\r\n', "windows"),
        ('[project]\nnames = "a"\nname_x = "b"\n', None),
        ('[tool.project]\nname = "a"\n[build-system]\nname = "b"\n', None),
        ('[project]\nname = ""\n', None),
        ("[project]\nname = 5\n", None),
        ("project = 5\n", None),
        ("[project\nname = 'broken'\n", None),
        ("", None),
    ],
)
def test_only_the_name_of_the_project_counts(content: str, name: str | None, pyproject: Path) -> None:
    pyproject.write_text(content, encoding="utf-8", newline="")
    assert get_application_name({}) == name


def test_a_file_that_cannot_be_read_names_nothing(pyproject: Path) -> None:
    pyproject.mkdir()
    assert get_application_name({}) is None
    reset_application_name_cache()
    pyproject.rmdir()
    pyproject.write_bytes(b"\xff\xfe\x00")
    assert get_application_name({}) is None


def test_a_folder_that_is_gone_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert get_application_name({}) is None


@shows("A365-AGENTID")
def test_eight_threads_that_come_at_once_open_the_file_once(pyproject: Path) -> None:
    pyproject.write_text('[project]\nname = "many"\n')
    # A process of its own: nobody can stop listening to what is opened.
    run = subprocess.run(
        [sys.executable, "-c", THREADS],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
        env=dict(os.environ),
        cwd=pyproject.parent,
    )
    assert run.stdout.split() == ["1", "many"], run.stderr
