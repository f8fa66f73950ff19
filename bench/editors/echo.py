"""The peer: an agent on the protocol's own SDK, written like its examples; it repeats each prompt word by word."""

import asyncio
import re
from typing import Any
from uuid import uuid4

from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from acp.interfaces import Client
from acp.schema import (
    AcpMcpServer,
    AgentMessageChunk,
    AudioContentBlock,
    ClientCapabilities,
    EmbeddedResourceContentBlock,
    HttpMcpServer,
    ImageContentBlock,
    Implementation,
    McpServerStdio,
    ResourceContentBlock,
    SseMcpServer,
    TextContentBlock,
)
from typing_extensions import override

WORD = re.compile(r"\S+\s*")


class EchoAgent(Agent):
    """One `session_update` for each word."""

    _client: Client

    @override
    def on_connect(self, conn: Client) -> None:
        self._client = conn

    @override
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,
    ) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    @override
    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    @override
    async def prompt(
        self,
        session_id: str,
        prompt: list[
            TextContentBlock
            | ImageContentBlock
            | AudioContentBlock
            | ResourceContentBlock
            | EmbeddedResourceContentBlock
        ],
        **kwargs: Any,
    ) -> PromptResponse:
        for block in prompt:
            for word in WORD.findall(block.text) if isinstance(block, TextContentBlock) else ():
                chunk = AgentMessageChunk(content=TextContentBlock(text=word))
                await self._client.session_update(session_id=session_id, update=chunk)
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    agent = EchoAgent()  # pyright: ignore[reportAbstractUsage] - as in the examples, what it cannot do is left out
    asyncio.run(run_agent(agent))
