"""Our own requests: answered, refused, given up, or left without anybody to answer."""

from typing import Any

import anyio
import pytest

from frontdesk.interfaces.acp.jsonrpc import ConnectionClosed, Json, RpcError, RpcRequest
from tests.unit.acp.talking import SECONDS, Talk, call, reply, talking


class SentRequest:
    """One request of ours, in a task of its own."""

    def __init__(self, talk: Talk, seconds: float = SECONDS) -> None:
        self.scope = anyio.CancelScope()
        self.outcome: Json | Exception | None = None
        self._talk = talk
        self._seconds = seconds

    async def run(self) -> None:
        with self.scope:
            try:
                self.outcome = await self._talk.peer.request("fs/read_text_file", {"path": "/a"}, self._seconds)
            except (RpcError, TimeoutError, ConnectionClosed) as error:
                self.outcome = error


async def outcome_of(**answer: Any) -> Json | Exception | None:
    async with talking() as talk:
        asked = SentRequest(talk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run)
            request = await talk.hear()
            talk.say(reply(request["id"], **answer))
    return asked.outcome


async def test_each_question_gets_its_own_answer() -> None:
    requests: list[dict[str, Any]] = []
    async with talking() as talk:
        first, second = SentRequest(talk), SentRequest(talk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.run)
            tasks.start_soon(second.run)
            requests += [await talk.hear(), await talk.hear()]
            assert [request["params"] for request in requests] == [{"path": "/a"}] * 2
            # The same number as one of theirs: the two sides count each for itself.
            talk.say(call(requests[0]["id"], "echo"))
            assert await talk.hear() == {"id": requests[0]["id"], "result": {}}
            talk.say(*(reply(request["id"], result={"for": request["id"]}) for request in reversed(requests)))
    assert [first.outcome, second.outcome] == [{"for": request["id"]} for request in requests]
    assert requests[0]["id"] != requests[1]["id"]


@pytest.mark.parametrize("answer", [{"result": None}, {"result": {}}, {"result": None, "error": None}])
async def test_an_answer_without_words_is_an_empty_one(answer: dict[str, Any]) -> None:
    assert await outcome_of(**answer) == {}


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"error": {"code": -32002, "message": "No such\nfile"}}, -32002, "No such file"),
        ({"error": {"code": "x", "message": 5}}, -32603, "fs/read_text_file was refused without a reason"),
        ({"error": "no"}, -32603, "fs/read_text_file was refused without a reason"),
        ({"result": [1]}, -32603, "The answer to fs/read_text_file is not an object"),
        ({"result": "yes"}, -32603, "The answer to fs/read_text_file is not an object"),
    ],
)
async def test_an_error_or_nonsense_is_raised(answer: dict[str, Any], code: int, message: str) -> None:
    error = await outcome_of(**answer)
    assert isinstance(error, RpcError)
    assert (error.code, error.message) == (code, message)


async def test_a_question_that_takes_too_long_is_withdrawn() -> None:
    async with talking() as talk:
        asked = SentRequest(talk, seconds=0.01)
        await asked.run()
        number = (await talk.hear())["id"]
        assert await talk.hear() == {"method": "$/cancel_request", "params": {"requestId": number}}
        talk.say(reply(number, result={"late": 1}))
        await talk.left_alone()
    assert isinstance(asked.outcome, TimeoutError)


async def test_a_question_of_a_cancelled_request_is_withdrawn() -> None:
    async def answer(request: RpcRequest) -> Json:
        return await talk.peer.request("session/request_permission", {}, SECONDS) if request.id == 1 else {}

    async with talking(answer) as talk:
        talk.say(call(1, "prompt"))
        number = (await talk.hear())["id"]
        talk.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}})
        assert await talk.hear() == {"method": "$/cancel_request", "params": {"requestId": number}}
        assert (await talk.hear())["error"]["code"] == -32800
        talk.say(reply(number, result={}))
        await talk.left_alone()


async def test_nobody_waits_for_one_who_has_left() -> None:
    async with talking() as talk:
        before, after = SentRequest(talk), SentRequest(talk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(before.run)
            await talk.hear()
            talk.leave()
        await talk.ended.wait()
        await after.run()
        assert talk.carrier.outgoing.empty()
    assert isinstance(before.outcome, ConnectionClosed)
    assert isinstance(after.outcome, ConnectionClosed)
