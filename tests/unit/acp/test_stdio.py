"""Tests reading and writing frames as bytes, over pipes, sockets, files and terminals."""

import fcntl
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.interfaces.acp.jsonrpc import (
    OVERLONG,
    ConnectionClosed,
    InvalidFrame,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    RpcError,
    encode_frame,
    error_frame,
    notification_frame,
    parse_frame,
    request_frame,
    result_frame,
)
from frontdesk.interfaces.acp.stdio import BACKLOG_BYTES, CHUNK_BYTES, FrameWriter, ImmediateWriter, StdioTransport
from tests.support.desk import ROOT
from tests.support.waiting import until

# Reading and writing frames, whatever they contain


PARSE_ERROR, INVALID_REQUEST = -32700, -32600
HEAD = b'{"jsonrpc":"2.0","id":1,"method":"m","params":'

# With lone surrogates, which Hypothesis' own texts do not have.
texts = st.text(st.characters(exclude_categories=())) | st.text()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]) | st.text(max_size=3)
framelike = st.dictionaries(keys, st.sampled_from(["2.0", 1, None, True, 1.5, "m"]) | values, max_size=6)


def frame(**changes: Any) -> bytes:
    whole: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}, **changes}
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()) | framelike.map(lambda it: frame(**it)))
def test_whatever_comes_is_a_frame_or_is_told_why_not(data: bytes) -> None:
    match parse_frame(data):
        case RequestFrame(number, method, params):
            assert type(number) in (int, str, type(None))
            assert (type(method), type(params)) == (str, dict)
        case NotificationFrame(method, params):
            assert (type(method), type(params)) == (str, dict)
        case ResponseFrame(number):
            assert type(number) in (int, type(None))
        case InvalidFrame(code, message, number):
            assert code in (PARSE_ERROR, INVALID_REQUEST)
            assert message
            assert type(number) in (int, str, type(None))


@pytest.mark.parametrize("number", [0, 1, -1, 2**70, "", "1", None])
def test_a_request_has_an_id_even_if_it_is_null(number: object) -> None:
    assert parse_frame(frame(id=number, params={"a": 1})) == RequestFrame(number, "m", {"a": 1})  # pyright: ignore[reportArgumentType] - the cases are ids


@pytest.mark.parametrize("params", [..., None, {}, []])
def test_params_may_be_left_out(params: object) -> None:
    assert parse_frame(frame(params=params)) == RequestFrame(1, "m", {})
    assert parse_frame(frame(id=..., params=params)) == NotificationFrame("m", {})


def test_answers_are_told_from_requests() -> None:
    assert parse_frame(frame(method=..., params=..., result={"a": 1})) == ResponseFrame(1, {"a": 1})
    assert parse_frame(frame(method=..., params=..., result=None)) == ResponseFrame(1)
    assert parse_frame(frame(method=..., params=..., error={"code": 1})) == ResponseFrame(1, None, {"code": 1})
    for odd in ("1", True, 1.0, None, [1], ...):
        assert parse_frame(frame(id=odd, method=..., params=..., result={})) == ResponseFrame(None, {})


@pytest.mark.parametrize(
    "data",
    [
        *(b"{", b"", b"nonsense", b'"', b'{"a":1}}', b"\xff\xfe", b'{"a":"\xc3"}', b"{'a':1}", b'{"a":1,}', b'"\x00"'),
        *(HEAD + b"NaN}", HEAD + b"Infinity}", HEAD + b"-Infinity}", HEAD + b"9" * 5000 + b"}"),
        *(b"[" * 100_000, b'{"a":' * 100_000, HEAD + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ],
)
def test_what_is_no_json_is_a_parse_error(data: bytes) -> None:
    got = parse_frame(data)
    assert isinstance(got, InvalidFrame)
    assert (got.code, got.id) == (PARSE_ERROR, None)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        *((data, None) for data in (b"[]", b"42", b"null", b'"text"', b"true", b"{}", b"[" + frame() + b"]")),
        *((frame(jsonrpc=odd), 1) for odd in (..., None, 2, 2.0, "1.0", ["2.0"])),
        *((frame(method=odd), 1) for odd in (None, 5, ["m"], {"a": 1}, True)),
        *((frame(id=odd), None) for odd in (True, False, 1.5, 1.0, [1], {"a": 1})),
        *((frame(params=odd), 1) for odd in ([1], 0, False, "text", 1.5)),
        (frame(method=...), None),
        (frame(id="mine", jsonrpc=...), "mine"),
        # This is our own id: an answer with it would look like an answer to another request.
        (frame(jsonrpc=..., method=..., result={}), None),
    ],
)
def test_json_that_is_no_frame_is_an_invalid_request(data: bytes, number: object) -> None:
    got = parse_frame(data)
    assert isinstance(got, InvalidFrame)
    assert (got.code, got.id) == (INVALID_REQUEST, number)


def test_a_notification_is_owed_no_answer_whatever_its_params_are() -> None:
    assert parse_frame(frame(id=..., params=[1])) == NotificationFrame("m", {})


def test_the_last_of_two_keys_counts() -> None:
    assert parse_frame(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}') == RequestFrame(2, "m", {})


def test_half_a_character_comes_in_as_a_replacement_and_a_whole_one_as_it_is() -> None:
    data = rb'{"jsonrpc":"2.0","id":"\uDFFF","method":"m","params":{"\ud800":["a\ud83d\ude00\udc00b", "\\ud800"]}}'
    assert parse_frame(data) == RequestFrame("\ufffd", "m", {"\ufffd": ["a\U0001f600\ufffdb", "\\ud800"]})


@given(st.dictionaries(texts, values))
def test_whatever_we_say_is_one_line_that_every_reader_takes(value: dict[str, Any]) -> None:
    data = encode_frame(value)
    text = data.decode()
    assert text.splitlines() == [text] or not {"\n", "\r", "\u2028", "\u2029"} & set(text)
    assert json.loads(text, parse_constant=pytest.fail) == _fit(value)


@given(st.sampled_from([1, "a", None]), st.text(), st.dictionaries(st.text(), st.integers() | st.text()))
def test_what_one_side_writes_the_other_reads(number: Any, method: str, params: dict[str, Any]) -> None:
    assert parse_frame(request_frame(number, method, params)) == RequestFrame(number, method, params)
    assert parse_frame(notification_frame(method, params)) == NotificationFrame(method, params)
    assert parse_frame(result_frame(1, params)) == ResponseFrame(1, params)
    told = {"code": 5, "message": "no", "data": params}
    assert parse_frame(error_frame(1, RpcError(5, "no", params))) == ResponseFrame(1, None, told)


def test_frames_are_compact() -> None:
    assert notification_frame("m", {"a": [1, "ü"]}) == '{"jsonrpc":"2.0","method":"m","params":{"a":[1,"ü"]}}'.encode()
    assert error_frame(None, RpcError(5, "no")) == b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"no"}}'


def _fit(value: Any) -> Any:
    """The value as it must arrive: no NaN, no infinity, no lone surrogates."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [_fit(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - whatever is in it
        case dict():
            return {_fit(key): _fit(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] - whatever is in it
        case _:
            return value


# Frames over real descriptors: pipes, sockets, files and terminals, with slow or closed readers and writers


PROGRAM = Path(__file__).parent / "stdio_peer.py"
SECONDS = 30


@dataclass(slots=True)
class Line:
    """Our end is a transport; the other end has descriptors."""

    carrier: StdioTransport
    writing: int
    reading: int

    def write(self, data: bytes) -> None:
        """All of it, and nothing more."""
        with os.fdopen(self.writing, "wb") as file:
            file.write(data)

    async def read(self) -> bytes:
        """All data until the end."""

        def to_the_end() -> bytes:
            with os.fdopen(self.reading, "rb") as file:
                return file.read()

        return await anyio.to_thread.run_sync(to_the_end)

    async def frames(self) -> list[bytes]:
        found: list[bytes] = []
        with anyio.fail_after(SECONDS):
            while (frame := await self.carrier.receive()) is not None:
                found.append(frame)
        return found


def pipes(**options: int) -> Line:
    (theirs, writing), (reading, ours) = os.pipe(), os.pipe()
    return Line(StdioTransport(theirs, ours, **options), writing, reading)


async def given_lines(data: bytes, **options: int) -> list[bytes]:
    line = pipes(**options)
    threading.Thread(target=line.write, args=(data,), daemon=True).start()
    found = await line.frames()
    assert await line.carrier.receive() is None
    await line.carrier.close()
    assert await line.read() == b""
    return found


async def test_a_line_is_a_frame_however_it_ends() -> None:
    assert await given_lines(b"{}\r\n\n  \r\n[1]\n\xff\xfe\nlast") == [b"{}", b"[1]", b"\xff\xfe", b"last"]
    assert await given_lines(b"") == []


async def test_a_line_that_is_too_long_is_passed_over_and_told() -> None:
    long = b"x" * (3 * CHUNK_BYTES)
    lines = [b"a", long, b"y" * 1000, b"y" * 1001, b"b", long]
    assert await given_lines(b"\n".join(lines), most_bytes=1000) == [
        b"a",
        OVERLONG,
        b"y" * 1000,
        OVERLONG,
        b"b",
        OVERLONG,
    ]


@settings(deadline=None, derandomize=True, database=None, max_examples=30)
@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=10))
def test_lines_come_through_as_they_were_written(lines: list[bytes]) -> None:
    stripped = [line.strip() for line in lines]
    assert anyio.run(given_lines, b"\n".join(lines)) == [line for line in stripped if line]


async def test_frames_go_out_in_order_and_all_of_them_before_the_end() -> None:
    line = pipes()
    frames = [b"%d" % number * (number % 97) or b"-" for number in range(5000)]
    got: list[bytes] = []

    async def read() -> None:
        got.append(await line.read())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for frame in frames:
            await line.carrier.send(frame)
        await line.carrier.close()
    assert got == [b"".join(frame + b"\n" for frame in frames)]
    with pytest.raises(ConnectionClosed):
        await line.carrier.send(b"{}")
    os.close(line.writing)


async def test_reading_waits_for_whoever_takes_the_frames() -> None:
    line, frame = pipes(), b"x" * 999
    reader, count = line.carrier._reader, 16 * BACKLOG_BYTES // 1000
    writer = threading.Thread(target=line.write, args=((frame + b"\n") * count,), daemon=True)
    writer.start()
    await until(lambda: reader._size > BACKLOG_BYTES)
    for _ in range(count):
        assert await line.carrier.receive() == frame
        assert reader._size <= BACKLOG_BYTES + CHUNK_BYTES
    assert await line.carrier.receive() is None
    writer.join(SECONDS)
    os.close(line.reading)


async def test_senders_wait_for_a_reader_that_does_not_keep_up() -> None:
    line, frame = pipes(), b"x" * 99_999
    writer_side, count = line.carrier._writer, 2 * BACKLOG_BYTES // 100_000
    sent: list[int] = []

    async def send() -> None:
        for number in range(count):
            await line.carrier.send(frame)
            sent.append(number)
        await line.carrier.close()

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await until(lambda: writer_side._size > BACKLOG_BYTES)
            assert len(sent) < count
            assert await line.read() == (frame + b"\n") * count
    os.close(line.writing)


async def test_a_reader_who_has_left_is_gone_for_those_who_wait_too() -> None:
    line = pipes()

    async def send_on() -> None:
        while True:
            await line.carrier.send(b"x" * 99_999)

    async def send() -> None:
        with pytest.raises(ConnectionClosed):
            await send_on()

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(send)
            await until(lambda: line.carrier._writer._size > BACKLOG_BYTES)
            os.close(line.reading)
        await line.carrier.close()
    os.close(line.writing)


async def test_an_end_does_not_wait_for_ever_for_a_reader() -> None:
    reading, writing = os.pipe()
    writer_side = FrameWriter(writing)
    await writer_side.send(b"x" * 1_000_000)
    with anyio.fail_after(SECONDS):
        await writer_side.close(0.01)
    assert not writer_side._ended
    os.close(reading)
    await until(lambda: writer_side._ended)


def _pipes() -> tuple[int, int]:
    return os.pipe()


def _sockets() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def _open_pipes_that_do_not_block() -> tuple[int, int]:
    reading, writing = os.pipe()
    for end in (reading, writing):
        fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_NONBLOCK)
    return reading, writing


@pytest.mark.parametrize("make", [_pipes, _sockets, _open_pipes_that_do_not_block])
async def test_frames_pass_through_whatever_there_is(make: Callable[[], tuple[int, int]]) -> None:
    (first, second), (third, fourth) = make(), make()
    ours, theirs = StdioTransport(first, fourth), StdioTransport(third, second)
    frame = b"x" * 3_000_000
    with anyio.fail_after(SECONDS):
        for _ in range(3):
            await ours.send(frame)
            assert await theirs.receive() == frame
            await theirs.send(b"{}")
            assert await ours.receive() == b"{}"
        await ours.close()
        assert await theirs.receive() is None
        await theirs.close()
        assert await ours.receive() is None


async def test_a_terminal_carries_frames_until_it_is_gone() -> None:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    carrier = StdioTransport(os.dup(theirs), theirs)
    os.write(ours, b"{}\n")
    with anyio.fail_after(SECONDS):
        assert await carrier.receive() == b"{}"
        await carrier.send(b"[1]")
        assert os.read(ours, 100) == b"[1]\n"
        os.close(ours)
        assert await carrier.receive() is None
        await carrier.close()


async def test_files_carry_frames(tmp_path: Path) -> None:
    asked, told = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(b"a\nb\n")
    carrier = StdioTransport(os.open(asked, os.O_RDONLY), os.open(told, os.O_WRONLY | os.O_CREAT))
    with anyio.fail_after(SECONDS):
        assert [await carrier.receive() for _ in range(3)] == [b"a", b"b", None]
        await carrier.send(b"c")
        await carrier.close()
    assert told.read_bytes() == b"c\n"


@contextmanager
def program(tmp_path: Path, redirections: str = "") -> Generator[subprocess.Popen[bytes]]:
    """The echoing program, perhaps without one of its standard descriptors."""
    command = ["sh", "-c", f'exec "$0" "$@" {redirections}', sys.executable, str(PROGRAM)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.defpath},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)
        for end in (process.stdin, process.stdout):
            if end is not None:
                with suppress(BrokenPipeError):
                    end.close()


def ask(process: subprocess.Popen[bytes], method: str) -> bytes:
    stdin, stdout = ends(process)
    stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"%s"}\n' % method.encode())
    stdin.flush()
    return stdout.readline()


def ends(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def test_nothing_but_frames_reaches_standard_output(tmp_path: Path) -> None:
    with program(tmp_path) as process:
        assert ask(process, "litter") == b'{"jsonrpc":"2.0","id":1,"result":{"read":""}}\n'
        stdin, stdout = ends(process)
        stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"echo"}')
        stdin.close()
        assert stdout.read() == b'{"jsonrpc":"2.0","id":2,"result":{}}\n'
        assert process.wait(SECONDS) == 0
    assert (tmp_path / "log").read_text() == "litter\n" * 3


def test_a_child_that_stays_does_not_keep_the_editor_waiting(tmp_path: Path) -> None:
    with program(tmp_path) as process:
        child = int(ask(process, "spawn").split(b'"pid":')[1].split(b"}")[0])
        stdin, stdout = ends(process)
        stdin.close()
        assert stdout.read() == b""
        os.kill(child, signal.SIGKILL)
        assert process.wait(SECONDS) == 0


def test_an_editor_that_listens_no_more_ends_us(tmp_path: Path) -> None:
    with program(tmp_path) as process:
        assert ask(process, "echo")
        stdin, stdout = ends(process)
        stdout.close()
        stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n')
        stdin.flush()
        assert process.wait(SECONDS) == 0
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("without", ["<&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_one_who_is_started_without_descriptors_ends_in_peace(tmp_path: Path, without: str) -> None:
    with program(tmp_path, without) as process:
        ends(process)[0].close()
        assert process.wait(SECONDS) == 0
    assert (tmp_path / "log").read_text() == ""


def test_one_who_is_started_without_a_place_for_logs_answers(tmp_path: Path) -> None:
    with program(tmp_path, "2>&-") as process:
        assert ask(process, "litter") == b'{"jsonrpc":"2.0","id":1,"result":{"read":""}}\n'


@pytest.mark.parametrize("make", [os.pipe, lambda: tuple(end.detach() for end in socket.socketpair())])
def test_what_nobody_takes_is_not_waited_for(make: Callable[[], tuple[int, int]]) -> None:
    reading, writing = make()
    straight, written = ImmediateWriter(writing), 0
    while not (rest := straight.write(b"x" * 1000)):
        written += 1000
    assert len(rest) <= 1000
    assert written > CHUNK_BYTES // 2
    os.close(reading)
    assert straight.write(b"more") == b"more"
    straight.close()
    os.close(writing)


def test_what_a_pipe_might_take_in_parts_is_left_to_those_who_can_wait() -> None:
    reading, writing = os.pipe()
    whole, longer = b"x" * select.PIPE_BUF, b"x" * (select.PIPE_BUF + 1)
    assert [ImmediateWriter(writing).write(data) for data in (longer, whole)] == [longer, b""]
    os.close(reading)
    os.close(writing)
