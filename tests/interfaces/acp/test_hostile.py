"""Tests `frontdesk acp` as a process against hostile input, and checks every frame that it sends."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.requirements import shows
from tests.support.desk import clean_environment
from tests.support.waiting import comes_true

# Far longer than any answer takes, for a machine with other load.
SECONDS = 30
INITIALIZE: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
BUG = {"code": -32603, "message": "Internal error"}


class Victim:
    """A thread sends the input, so that a process that stops reading is noticed without blocking the test."""

    def __init__(self, folder: Path, ears: int | None = None) -> None:
        """After `ears` frames this side stops reading."""
        self.log = folder / "log"
        self.heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.litter: list[bytes] = []
        self.bugs: list[dict[str, Any]] = []
        self._ears = ears
        self._numbers = count(1)
        self._unsent: queue.Queue[bytes | None] = queue.Queue()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "frontdesk", "acp"],
                env=clean_environment(FRONTDESK_DATA=str(folder / "data"), FRONTDESK_EMBEDDINGS="off"),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True).start()

    def say(self, *lines: bytes | dict[str, Any]) -> None:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0", **line}).encode()
            self._unsent.put(data + b"\n")

    def cut(self, data: bytes) -> None:
        """The last input, which may break off anywhere."""
        self._unsent.put(data)
        self._unsent.put(None)

    def ask(self, method: str, params: object = None) -> dict[str, Any]:
        """The answer to a valid request; other frames that come meanwhile answer other requests."""
        number = f"probe-{next(self._numbers)}"
        self.say({"id": number, "method": method, "params": {} if params is None else params})
        while True:
            frame = self.heard.get(timeout=SECONDS)
            assert frame is not None, f"ended:\n{self.log.read_text()[-2000:]}"
            if frame.get("id") == number and "method" not in frame:
                return frame

    def is_well(self) -> None:
        """The process answers, it has sent nothing but frames, and nothing in it has failed."""
        # The input may have contained a log-out.
        assert "result" in self.ask("authenticate", {"methodId": "frontdesk"})
        assert "result" in self.ask("session/list")
        assert self.litter == []
        assert self.bugs == []

    def leave(self) -> int:
        """The exit status, once it has ended by itself; nothing that it started is left."""
        self._unsent.put(None)
        status = self.process.wait(SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 0)
            raise AssertionError("a child is left")
        return status

    def listen_to_the_end(self) -> None:
        while self.heard.get(timeout=SECONDS) is not None:
            pass

    def stop(self) -> None:
        self._unsent.put(None)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait(SECONDS)

    def _write(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError), self.process.stdin as stdin:
            while (data := self._unsent.get()) is not None:
                stdin.write(data)
                stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in islice(stdout, self._ears):
                self._take(line)
        self.heard.put(None)

    def _take(self, line: bytes) -> None:
        frame = _frame(line)
        if frame is None:
            self.litter.append(line)
            return
        if frame.get("error") == BUG:
            self.bugs.append(frame)
        self.heard.put(frame)


@contextmanager
def victim(folder: Path, ears: int | None = None) -> Generator[Victim]:
    """A process before any handshake."""
    folder.mkdir(exist_ok=True)
    started = Victim(folder, ears)
    try:
        yield started
    finally:
        started.stop()


def _frame(line: bytes) -> dict[str, Any] | None:
    """The frame in a line of its own; None if the line is not a frame."""
    try:
        frame: Any = json.loads(line, parse_constant=lambda _name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return None
    if not line.endswith(b"\n") or not isinstance(frame, dict):
        return None
    return _checked(cast("dict[str, Any]", frame))


def _checked(frame: dict[str, Any]) -> dict[str, Any] | None:
    is_answer = "id" in frame and ("result" in frame) != ("error" in frame) and "method" not in frame
    is_said = isinstance(frame.get("method"), str) and "result" not in frame and "error" not in frame
    return frame if frame.get("jsonrpc") == "2.0" and (is_answer or is_said) else None


METHODS = (
    *("initialize", "authenticate", "session/new", "session/load", "session/resume", "session/list"),
    *("session/close", "session/delete", "session/prompt", "session/cancel", "session/set_mode", "session/fork"),
    *("session/set_config_option", "session/set_title", "session/update", "session/request_permission"),
    *("_session/steering", "$/cancel_request", "$/unknown", "_unknown", "fs/read_text_file", "", "session", "\ud800"),
)
FIELDS = (
    *("sessionId", "cwd", "mcpServers", "additionalDirectories", "prompt", "modeId", "configId", "value", "type"),
    *("methodId", "cursor", "requestId", "protocolVersion", "clientCapabilities", "title", "_meta", "session_id"),
)
STRANGE = (
    *("", " ", "\0", "\ud800", "\u2028", "a" * 5000, "/", "relative", "/does/not/exist", "/tmp\0", "../..", "~"),
    *("text", "resource", "resource_link", "image", "http", "sse", "boolean", "ask", "plan", "model", "mode", "%00"),
)
SERVERS: tuple[dict[str, Any], ...] = (
    {"name": "a", "command": "/does/not/exist", "args": [], "env": []},
    {"name": "", "command": "", "args": [], "env": [{"name": "=", "value": "\0"}]},
    {"type": "http", "name": "h", "url": "http://127.0.0.1:1/", "headers": []},
    {"type": "sse", "name": "\n", "url": "no url", "headers": [{"name": "\r\n", "value": "\ud800"}]},
)
BLOCKS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "/help"},
    {"type": "resource_link", "uri": "file:///does/not/exist", "name": "n"},
    {"type": "resource", "resource": {"uri": "\0", "text": "\ud800"}},
    {"type": "image", "data": "no base64", "mimeType": "image/png"},
)
# The starts of the process are expensive; a started process can receive much input.
fuzzed = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    # No shrinking: a process that has crashed stays down.
    phases=[Phase.generate],
)
fuzzed_long = settings(fuzzed, max_examples=3000)

texts = st.text(max_size=8) | st.sampled_from(STRANGE)
values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from([*SERVERS, *BLOCKS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=5,
)
ODD_IDS: list[Any] = [0, 1, "1", None, True, 1.5, [], {}, -1, 2**70, "a" * 100]
ids = st.sampled_from(ODD_IDS) | st.integers() | st.text(max_size=3)
bodies = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, values))
frames = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0"] * 9 + ["1.0"])},
    optional={
        "id": ids,
        "method": st.sampled_from(METHODS) | values,
        "params": bodies | values,
        "result": values,
        "error": values,
    },
)


def written(value: object) -> bytes:
    return json.dumps(value).encode()


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A frame with something cut out, inserted or swapped."""
    data = bytearray(written(draw(frames)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data).replace(b"\n", b" ")


lines = st.lists(st.binary(max_size=200) | values.map(written) | frames.map(written) | mutated(), max_size=12)
calls = st.lists(st.tuples(st.sampled_from(METHODS), bodies), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    """A process after the handshake."""
    with victim(tmp_path_factory.mktemp("hostile")) as started:
        assert "result" in started.ask("initialize", INITIALIZE)
        yield started


def survives_lines(editor: Victim, sent: list[bytes]) -> None:
    editor.say(*sent)
    editor.is_well()


def survives_calls(editor: Victim, sent: list[tuple[str, dict[str, Any]]]) -> None:
    """Each of them gets an answer too."""
    for method, params in sent:
        answer = editor.ask(method, params)
        assert ("result" in answer) != ("error" in answer)
        assert "Traceback" not in str(answer)
    editor.is_well()


@shows("ACP-HOSTILE")
@fuzzed
@given(sent=lines)
def test_bytes_and_frames_of_any_kind_are_survived(editor: Victim, sent: list[bytes]) -> None:
    survives_lines(editor, sent)


@shows("ACP-HOSTILE")
@fuzzed
@given(sent=calls)
def test_requests_with_anything_in_them_are_answered(editor: Victim, sent: list[tuple[str, dict[str, Any]]]) -> None:
    survives_calls(editor, sent)


@pytest.mark.slow
@fuzzed_long
@given(sent=lines)
def test_bytes_and_frames_of_any_kind_are_survived_for_long(editor: Victim, sent: list[bytes]) -> None:
    survives_lines(editor, sent)


@pytest.mark.slow
@fuzzed_long
@given(sent=calls)
def test_requests_with_anything_in_them_are_answered_for_long(
    editor: Victim, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    survives_calls(editor, sent)


@shows("ACP-HOSTILE")
@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_type_in_any_field_of_any_method_is_a_mistake_and_not_a_failure(editor: Victim, field: str) -> None:
    odd: list[Any] = [5, True, 1.5, None, "\ud800", [], [[]], {}, {"a": {"b": []}}, [5, None, "x", {}]]
    right = {"sessionId": "none", "cwd": "/does/not/exist", "mcpServers": [], "prompt": [BLOCKS[0]]}
    survives_calls(editor, [(method, right | {field: value}) for method in METHODS for value in odd])


@shows("ACP-HOSTILE")
def test_one_who_has_logged_out_is_told_so(editor: Victim) -> None:
    assert "result" in editor.ask("logout", {"_meta": 5})
    assert editor.ask("session/list")["error"]["code"] == -32000
    editor.is_well()


@shows("ACP-HOSTILE")
def test_an_id_that_is_used_again_and_again_is_survived(editor: Victim) -> None:
    for number in (1, None, "1"):
        editor.say(*({"id": number, "method": method} for method in METHODS * 5))
    editor.say(*({"method": "$/cancel_request", "params": {"requestId": 1}} for _ in range(20)))
    editor.is_well()


@shows("ACP-HOSTILE")
def test_more_requests_than_anybody_has_are_survived(editor: Victim) -> None:
    asked = {f"many-{number}" for number in range(2000)}
    editor.say(*({"id": number, "method": "session/list"} for number in asked))
    while asked:
        asked.discard((editor.heard.get(timeout=SECONDS) or {}).get("id", ""))
    editor.is_well()


@shows("ACP-HOSTILE")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"x" * (66 * 1024 * 1024), -32600),
        (b"[" * (20 * 1000 * 1000), -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"a":"' + b"x" * 20_000_000 + b'"}}', -32602),
    ],
    ids=["overlong", "deep", "large"],
)
def test_a_huge_frame_is_answered(editor: Victim, data: bytes, code: int) -> None:
    editor.say(data)
    while "error" not in (answer := editor.heard.get(timeout=SECONDS) or {}):
        pass
    assert answer["error"]["code"] == code
    editor.is_well()


@shows("ACP-HOSTILE")
def test_nothing_is_done_for_one_who_has_not_introduced_himself(tmp_path: Path) -> None:
    with victim(tmp_path / "stranger") as stranger:
        for method in METHODS:
            if method != "initialize":
                assert "error" in stranger.ask(method, {"sessionId": "none", "cwd": "/", "mcpServers": []})
        stranger.say({"method": "session/cancel", "params": {"sessionId": "none"}}, b"[]", b"\xff")
        assert stranger.ask("initialize", INITIALIZE)["result"]["protocolVersion"] == 1
        assert "error" in stranger.ask("initialize", INITIALIZE)
        stranger.is_well()
        assert stranger.leave() == 0


def script(folder: Path) -> bytes:
    """A session with a server of its own."""
    server: dict[str, Any] = {"name": "child", "command": "/bin/cat", "args": [], "env": []}
    said: list[tuple[str, dict[str, Any]]] = [
        ("initialize", INITIALIZE),
        ("session/list", {}),
        ("session/new", {"cwd": str(folder), "mcpServers": [server]}),
        ("session/prompt", {"sessionId": "none", "prompt": [BLOCKS[0]]}),
    ]
    return b"".join(
        written({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"
        for number, (method, params) in enumerate(said)
    )


def broken_off(folder: Path, share: float) -> None:
    """An editor that ends at some byte of its input."""
    with victim(folder) as editor:
        said = script(folder)
        editor.cut(said[: int(len(said) * share)])
        assert editor.leave() == 0
        editor.listen_to_the_end()
        assert (editor.litter, editor.bugs) == ([], [])


def broken_off_at(folder: Path, shares: list[float]) -> None:
    folders = [folder / f"at-{share:.3f}" for share in shares]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(broken_off, folders, shares))


@shows("ACP-HOSTILE")
def test_an_editor_may_leave_in_the_middle_of_a_word(tmp_path: Path) -> None:
    broken_off_at(tmp_path, [0, 0.1, 0.5, 1])


@pytest.mark.slow
def test_an_editor_may_leave_at_any_byte(tmp_path: Path) -> None:
    broken_off_at(tmp_path, [share / 40 for share in range(41)])


@shows("ACP-HOSTILE")
def test_nothing_is_left_of_a_session_whose_editor_has_left(tmp_path: Path) -> None:
    with victim(tmp_path / "session") as editor:
        editor.ask("initialize", INITIALIZE)
        server: dict[str, Any] = {"name": "child", "command": "/bin/cat", "args": [], "env": []}
        assert "result" in editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": [server]})
        children = psutil.Process(editor.process.pid).children(recursive=True)
        assert editor.leave() == 0
        assert comes_true(lambda: not any(child.is_running() for child in children))
        assert editor.litter == []


@shows("ACP-HOSTILE")
def test_an_editor_that_does_not_listen_any_more_has_left(tmp_path: Path) -> None:
    with victim(tmp_path / "deaf", ears=1) as editor:
        assert "result" in editor.ask("initialize", INITIALIZE)
        assert editor.heard.get(timeout=SECONDS) is None
        editor.say({"id": 1, "method": "session/list", "params": {}}, {"id": 2, "method": "session/list", "params": {}})
        assert editor.process.wait(SECONDS) == 0
