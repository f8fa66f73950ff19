"""Requests that come in: each is answered once, in its own time, whatever the others do."""

import asyncio
import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.interfaces.acp.jsonrpc import MOST_REQUESTS, OVERLONG, ConnectionClosed, Json, RpcError, RpcRequest
from tests.unit.acp.talking import SECONDS, Talk, call, echo, notice, reply, talking


def error(number: object, code: int, message: str) -> dict[str, Any]:
    return {"id": number, "error": {"code": code, "message": message}}


CUT_OFF = "The request was cancelled"


class Held:
    """Handlers that wait until they are let go, and tell when they began and ended."""

    def __init__(self) -> None:
        self.begun: list[object] = []
        self.cleaned: list[object] = []
        self.release = anyio.Event()

    async def answer(self, request: RpcRequest) -> Json:
        if request.method == "echo":
            return request.params
        self.begun.append(request.id)
        try:
            await self.release.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.cleaned.append(request.id)
        return {"held": True}


@pytest.mark.parametrize("number", [0, 1, -5, 2**70, "a", "", "1", "ü\n", None])
async def test_an_answer_has_the_id_of_its_request(number: object) -> None:
    async with talking() as talk:
        talk.say(call(number, "echo", a=1))
        assert await talk.hear() == {"id": number, "result": {"a": 1}}


async def test_requests_begin_in_the_order_they_came_and_end_in_their_own() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(*(call(number, "hold") for number in range(20)), call("quick", "echo"))
        assert await talk.hear() == {"id": "quick", "result": {}}
        assert held.begun == list(range(20))
        held.release.set()
        assert sorted([(await talk.hear())["id"] for _ in range(20)]) == list(range(20))


async def test_what_a_handler_sends_goes_out_before_its_answer_and_what_it_leaves_for_later_after() -> None:
    async def answer(request: RpcRequest) -> Json:
        async def later() -> None:
            await talk.peer.notify("later", {})

        async def failing() -> None:
            raise ValueError("secret")

        request.after_answer += [failing, later]
        for number in range(3):
            await talk.peer.notify("now", {"number": number})
        return {}

    async with talking(answer) as talk:
        talk.say(call(1, "any"))
        heard = [await talk.hear() for _ in range(5)]
    assert [frame.get("method") for frame in heard] == ["now", "now", "now", None, "later"]
    assert [frame["params"]["number"] for frame in heard[:3]] == [0, 1, 2]
    assert [str(bug) for bug in talk.bugs] == ["secret"]


async def test_an_error_is_told_and_a_bug_is_not() -> None:
    async def answer(request: RpcRequest) -> Json:
        match request.method:
            case "refused":
                raise RpcError(-32002, "No such\nsession", {"hint": "look"})
            case "unwritable":
                return {"what": object()}
            case _:
                raise ValueError("secret")

    async with talking(answer) as talk:
        talk.say(call(1, "refused"))
        told = {"code": -32002, "message": "No such session", "data": {"hint": "look"}}
        assert await talk.hear() == {"id": 1, "error": told}
        for method in ("unwritable", "bug"):
            talk.say(call(method, method))
            assert await talk.hear() == error(method, -32603, "Internal error")
    assert [type(bug) for bug in talk.bugs] == [TypeError, ValueError]


async def test_a_cancelled_request_is_cut_off_once_it_has_cleaned_up() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"), call("1", "hold"), notice("$/cancel_request", requestId="1"))
        assert await talk.hear() == error("1", -32800, CUT_OFF)
        assert held.cleaned == ["1"]
        held.release.set()
        assert await talk.hear() == {"id": 1, "result": {"held": True}}
    assert talk.bugs == []


async def test_a_request_that_wants_to_end_itself_is_asked_to() -> None:
    async def answer(request: RpcRequest) -> Json:
        stopped = anyio.Event()
        request.on_cancel = stopped.set
        await stopped.wait()
        return {"stopReason": "cancelled"}

    async with talking(answer) as talk:
        # In one breath: the cancel finds the request begun.
        talk.say(call(1, "prompt"), notice("$/cancel_request", requestId=1))
        assert await talk.hear() == {"id": 1, "result": {"stopReason": "cancelled"}}


@pytest.mark.parametrize("odd", [{}, {"requestId": 2}, {"requestId": True}, {"requestId": 1.0}, {"requestId": [1]}])
async def test_a_cancel_of_nothing_that_is_under_way_does_nothing(odd: dict[str, Any]) -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"), notice("$/cancel_request", **odd))
        await talk.left_alone()
        held.release.set()
        assert await talk.hear() == {"id": 1, "result": {"held": True}}


async def test_something_cancelled_under_a_request_is_an_answer_too() -> None:
    async def answer(_request: RpcRequest) -> Json:
        raise asyncio.CancelledError

    async with talking(answer) as talk:
        talk.say(call(1, "any"))
        assert await talk.hear() == error(1, -32800, CUT_OFF)


async def test_an_id_in_use_is_refused_and_may_be_used_again_after_its_answer() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        for number in (7, None):
            talk.say(call(number, "hold"), call(number, "echo"))
            words = "A request with this id is under way; give each an id of its own"
            assert await talk.hear() == error(number, -32600, words)
        held.release.set()
        assert {(await talk.hear())["id"] for _ in range(2)} == {7, None}
        talk.say(call(7, "echo", again=1))
        assert await talk.hear() == {"id": 7, "result": {"again": 1}}


async def test_so_many_requests_are_under_way_and_no_more() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(*(call(number, "hold") for number in range(MOST_REQUESTS)), call("more", "echo"))
        words = f"{MOST_REQUESTS} requests are under way; wait for the answer to one of them"
        assert await talk.hear() == error("more", -32600, words)
        held.release.set()
        assert len({(await talk.hear())["id"] for _ in range(MOST_REQUESTS)}) == MOST_REQUESTS
        await talk.left_alone()


async def test_what_is_no_frame_is_answered_and_ends_nothing() -> None:
    async with talking() as talk:
        for data, number, code in [
            (b"{", None, -32700),
            (b"[]", None, -32600),
            (b'{"jsonrpc":"1.0","id":3,"method":"echo"}', 3, -32600),
            (OVERLONG, None, -32600),
        ]:
            talk.say(data)
            heard = await talk.hear()
            assert (heard["id"], heard["error"]["code"]) == (number, code)
        await talk.left_alone()
    assert talk.bugs == []


async def test_notifications_are_heard_in_order_and_never_answered() -> None:
    heard: list[tuple[str, Json]] = []

    def hear(method: str, params: Json) -> None:
        heard.append((method, params))
        if method == "refused":
            raise RpcError(-32602, "Invalid params")
        if method == "bug":
            raise ValueError("secret")

    async with talking(hear=hear) as talk:
        talk.say(notice("refused"), notice("bug"), {"jsonrpc": "2.0", "method": "$/odd", "params": [1]})
        talk.say(*(notice("count", number=number) for number in range(50)))
        await talk.left_alone()
    assert [method for method, _ in heard] == ["refused", "bug", "$/odd", *["count"] * 50]
    assert [params["number"] for _, params in heard[3:]] == list(range(50))
    assert [str(bug) for bug in talk.bugs] == ["secret"]


@pytest.mark.parametrize("number", [1, "1", True, None, 1.0, [1]])
async def test_an_answer_to_nothing_we_asked_is_dropped(number: object) -> None:
    async with talking() as talk:
        talk.say(reply(number, result={}), reply(number, error={"code": 1, "message": ""}))
        await talk.left_alone()


async def test_requests_end_when_the_other_side_leaves() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"), call(2, "hold"))
        await talk.left_alone()
        talk.leave()
        await talk.ended.wait()
        assert sorted(map(str, held.cleaned)) == ["1", "2"]
        assert talk.carrier.outgoing.empty()
    assert talk.bugs == []


async def test_a_request_that_does_not_want_to_end_is_left_behind() -> None:
    release = anyio.Event()

    async def answer(request: RpcRequest) -> Json:
        with anyio.CancelScope(shield=True):
            await release.wait()
        return {}

    async with talking(answer, cleanup_seconds=0.01) as talk:
        talk.say(call(1, "stubborn"))
        talk.leave()
        await talk.ended.wait()
        release.set()
    assert [str(bug) for bug in talk.bugs] == ["stubborn did not end in 0.01 s"]


async def test_requests_end_with_the_task_that_runs_the_peer() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"))
        await talk.left_alone()
        talk.running.cancel()
        await talk.ended.wait()
        assert held.cleaned == [1]


async def test_a_peer_that_nobody_listens_to_ends() -> None:
    async def answer(_request: RpcRequest) -> Json:
        talk.carrier.deaf = True
        with pytest.raises(ConnectionClosed):
            await talk.peer.notify("update", {})
        return {}

    async with talking(answer) as talk:
        talk.say(call(1, "any"))
        await talk.ended.wait()
    assert talk.bugs == []


pieces = st.sampled_from(
    [
        *(b'{"jsonrpc":"2.0"', b',"id":1', b',"id":null', b',"method":"echo"', b',"method":"$/cancel_request"'),
        *(b',"params":{"requestId":1}', b',"params":[]', b',"result":{}', b',"error":5', b"}", b"[", b'"\\ud800"'),
    ]
)


@settings(deadline=None, derandomize=True, database=None)
@given(st.lists(st.binary(min_size=1) | st.lists(pieces, min_size=1, max_size=6).map(b"".join), max_size=8))
def test_whatever_comes_the_next_request_is_answered(lines: list[bytes]) -> None:
    async def survive() -> list[dict[str, Any]]:
        async with talking(echo) as talk:
            talk.say(*lines, call("last", "echo"))
            return await _until_last(talk)

    for frame in anyio.run(survive):
        assert ("result" in frame) != ("error" in frame)


async def _until_last(talk: Talk) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    with anyio.fail_after(SECONDS):
        while not heard or heard[-1]["id"] != "last":
            heard.append(json.loads(await talk.carrier.outgoing.get()))
    return heard
