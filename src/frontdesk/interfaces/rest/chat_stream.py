"""Streams the replies of a chat session as server-sent events."""

from frontdesk.operations import Answer, Call, NoArguments, Operation


async def follow(_chat: object, _call: Call, _request: NoArguments) -> Answer:
    return Answer("")


STREAM_OPERATION = Operation(name="follow", summary="The replies of a session", request=NoArguments, run=follow)
