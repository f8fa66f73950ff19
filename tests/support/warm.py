"""Runs the `frontdesk` command without its start: a process that has loaded everything forks one for each command.

The command itself runs in a process, a folder and an environment of its own. Only the loading, two seconds of each
start, is done once. The other tests of `tests/e2e` start the command normally.
"""

import array
import atexit
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from tests.support.desk import ROOT, STOP_SECONDS, clean_environment

# Python runs this as a script without site packages, in a few milliseconds.
SHIM = """#!{python} -ISs
import array, json, os, signal, socket, sys
wire = socket.socket(socket.AF_UNIX)
wire.connect({address!r})
said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
fds = array.array("i", [0, 1, 2])
wire.sendmsg([len(said).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
wire.sendall(said)
heard = wire.makefile("rb")
pid = int(heard.readline())
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda got, _frame: os.kill(pid, got))
code = heard.readline()
sys.exit(int(code) if code else 1)
"""


@contextmanager
def warm_command(folder: Path) -> Generator[Path]:
    """A program that acts as `frontdesk` until the end of the block."""
    address = folder / "warm.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm", str(address)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        program = folder / "frontdesk"
        program.write_text(SHIM.format(python=sys.executable, address=str(address)))
        program.chmod(0o755)
        yield program
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS)


@cache
def the_command() -> Path:
    """One such program for all tests of this process; it ends with them."""
    opened = ExitStack()
    atexit.register(opened.close)
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="warm-"))
    return opened.enter_context(warm_command(Path(folder)))


def _load_all() -> None:
    import frontdesk  # noqa: PLC0415

    for found in pkgutil.walk_packages(frontdesk.__path__, "frontdesk."):
        # Modules that only run, or need an extra, are loaded on demand.
        if "__main__" not in found.name and ".migrations" not in found.name and ".extensions" not in found.name:
            importlib.import_module(found.name)


def _serve(address: str) -> None:
    _load_all()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        wire, _ = listener.accept()
        # A thread would be lost in the fork; so a process takes the call, and forks the one that runs it.
        if os.fork() == 0:
            listener.close()
            os._exit(_take(wire))
        wire.close()
        _reap()


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _take(wire: socket.socket) -> int:
    fds = array.array("i")
    head, ancillary, *_ = wire.recvmsg(8, socket.CMSG_LEN(3 * fds.itemsize))
    fds.frombytes(ancillary[0][2])
    with wire.makefile("rb") as heard:
        arguments, folder, environment = json.loads(heard.read(int.from_bytes(head, "big")))
    pid = os.fork()
    if pid == 0:
        wire.close()
        _run(arguments, folder, environment, list(fds))
    for fd in fds:
        os.close(fd)
    wire.sendall(b"%d\n" % pid)
    # The caller may be gone; then it needs no answer and no process.
    threading.Thread(target=_watch, args=(wire, pid), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        wire.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
    return 0


def _watch(wire: socket.socket, pid: int) -> None:
    with suppress(OSError):
        wire.recv(1)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _run(arguments: list[str], folder: str, environment: dict[str, str], fds: list[int]) -> None:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8")  # noqa: SIM115, PTH123 - they last as long as the process
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["frontdesk", *arguments]
    from frontdesk.interfaces.cli.main import main  # noqa: PLC0415

    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
