"""Tools that send notifications: progress and logs on their own stream, changes to whoever listens."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ServerEvent,
    SubscriptionBus,
    ToolsListChanged,
)

from frontdesk.interfaces.mcp.context import SdkContext
from frontdesk.interfaces.mcp.tool_spec import OfferedTool
from tests.conformance.shapes import Call, fixed, offer, said

BUS = InMemorySubscriptionBus()


async def with_progress(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100)
    return said("Tool with progress executed")


async def with_logging(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        # Deprecated, and still part of both revisions.
        await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)  # pyright: ignore[reportDeprecated]
    return said("Tool with logging executed")


def publish(bus: SubscriptionBus, event: ServerEvent) -> Call:
    """A tool that tells every open subscription of `event`."""

    async def call(_ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
        await bus.publish(event)
        return said("Announced")

    return call


async def set_level(_ctx: SdkContext, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def add_listening(server: Server[Any]) -> None:
    """Let clients open a stream of changes, and say how much log they want."""
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(BUS))
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)


RECONNECTED = fixed(types.TextContent(text="Reconnection test completed"))

NOTIFYING: dict[str, OfferedTool] = dict(
    (
        offer("test_tool_with_progress", "Reports progress", with_progress),
        offer("test_tool_with_logging", "Sends log messages", with_logging),
        offer("test_logging_tool", "Sends log messages when the request opts in", with_logging),
        offer("test_reconnection", "Answers on the stream of its request", RECONNECTED),
        offer("test_trigger_tool_change", "Announces another tool list", publish(BUS, ToolsListChanged())),
        offer("test_trigger_prompt_change", "Announces another prompt list", publish(BUS, PromptsListChanged())),
    )
)
