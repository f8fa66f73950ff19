"""Tools that ask for input through their result, as 2026-07-28 does."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import HandlerResult
from mcp.shared.exceptions import MCPError

from frontdesk.interfaces.mcp.context import SdkContext
from frontdesk.interfaces.mcp.tool_spec import OfferedTool
from tests.conformance.shapes import elicitation, offer, said, sampling, text_of

Reply = TypeVar("Reply", types.ElicitResult, types.CreateMessageResult, types.ListRootsResult)

ASK_NAME = elicitation("What is your name?", {"name": {"type": "string"}}, ("name",))
ASK_CONFIRMATION = elicitation("Please confirm", {"ok": {"type": "boolean"}}, ("ok",))
ASK_FIRST = elicitation("Step 1: What is your name?", {"name": {"type": "string"}}, ("name",))
ASK_SECOND = elicitation("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ("color",))
ASK_CAPITAL = sampling("What is the capital of France?", 100)
ASK_GREETING = sampling("Generate a greeting", 50)
ASK_ROOTS = types.ListRootsRequest()

NEEDED: dict[str, tuple[types.ClientCapabilities, types.InputRequest]] = {
    "user_name": (types.ClientCapabilities(elicitation=types.ElicitationCapability()), ASK_NAME),
    "greeting": (types.ClientCapabilities(sampling=types.SamplingCapability()), ASK_GREETING),
    "client_roots": (types.ClientCapabilities(roots=types.RootsCapability()), ASK_ROOTS),
}


def ask(requests: Mapping[str, types.InputRequest], state: str | None = None) -> types.InputRequiredResult:
    """A result that asks the client for more, and to bring `state` along."""
    return types.InputRequiredResult(input_requests=dict(requests), request_state=state)


def retried(ctx: SdkContext) -> types.InputResponseRequestParams:
    """What a client that asks again adds to its request; the state is unsealed by then."""
    return types.InputResponseRequestParams.model_validate(ctx.params or {}, by_name=False)


def replied(ctx: SdkContext, key: str, kind: type[Reply]) -> Reply | None:
    """The client's reply under `key`, when there is one of this kind."""
    reply = (retried(ctx).input_responses or {}).get(key)
    return reply if isinstance(reply, kind) else None


def accepted(ctx: SdkContext, key: str) -> dict[str, Any] | None:
    """What the person filled in under `key`, when they did."""
    reply = replied(ctx, key, types.ElicitResult)
    return None if reply is None or reply.action != "accept" else dict(reply.content or {})


async def require_sampling(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    required = types.ClientCapabilities(sampling=types.SamplingCapability())
    if ctx.session.check_client_capability(required):
        return said("The client declared the sampling capability")
    data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=required)
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "This tool requires the sampling capability",
        data.model_dump(by_alias=True, mode="json", exclude_none=True),
    )


async def ask_name(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    name = (accepted(ctx, "user_name") or {}).get("name")
    return said(f"Hello, {name}!") if isinstance(name, str) else ask({"user_name": ASK_NAME})


async def ask_model(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    reply = replied(ctx, "capital_question", types.CreateMessageResult)
    return ask({"capital_question": ASK_CAPITAL}) if reply is None else said(f"Sampling response: {text_of(reply)}")


async def ask_roots(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    reply = replied(ctx, "client_roots", types.ListRootsResult)
    if reply is None:
        return ask({"client_roots": ASK_ROOTS})
    return said("Roots: " + ", ".join(str(root.uri) for root in reply.roots))


async def ask_with_state(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    if accepted(ctx, "confirm") is None or retried(ctx).request_state != "confirming":
        return ask({"confirm": ASK_CONFIRMATION}, "confirming")
    return said("state-ok")


async def ask_several(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    name = accepted(ctx, "user_name")
    greeting = replied(ctx, "greeting", types.CreateMessageResult)
    roots = replied(ctx, "client_roots", types.ListRootsResult)
    if name is None or greeting is None or roots is None:
        return ask({key: request for key, (_, request) in NEEDED.items()}, "gathering")
    return said(f"Gathered inputs for {name.get('name')} with {len(roots.roots)} root(s)")


async def ask_in_rounds(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    state = json.loads(retried(ctx).request_state or "{}")
    first, second = accepted(ctx, "step1"), accepted(ctx, "step2")
    if "name" in state and second is not None:
        return said(f"{state['name']} likes {second.get('color')}")
    if state.get("round") == 1 and first is not None:
        return ask({"step2": ASK_SECOND}, json.dumps({"round": 2, "name": first.get("name")}))
    return ask({"step1": ASK_FIRST}, json.dumps({"round": 1}))


async def ask_what_client_can(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    able = {key: request for key, (needs, request) in NEEDED.items() if ctx.session.check_client_capability(needs)}
    if able.keys() <= (retried(ctx).input_responses or {}).keys():
        return said(f"Answered: {', '.join(sorted(able)) or 'nothing to ask'}")
    return ask(able)


PREFIX = "test_input_required_result_"

INPUT_REQUIRED: dict[str, OfferedTool] = dict(
    (
        offer("test_missing_capability", "Requires the sampling capability", require_sampling),
        offer("test_streaming_elicitation", "Asks for a name through its result", ask_name),
        offer(f"{PREFIX}elicitation", "Asks for a name", ask_name),
        offer(f"{PREFIX}sampling", "Asks the client's model", ask_model),
        offer(f"{PREFIX}list_roots", "Asks for the client's roots", ask_roots),
        offer(f"{PREFIX}request_state", "Asks for confirmation and keeps state", ask_with_state),
        offer(f"{PREFIX}tampered_state", "Refuses state that was tampered with", ask_with_state),
        offer(f"{PREFIX}multiple_inputs", "Asks for several inputs at once", ask_several),
        offer(f"{PREFIX}multi_round", "Asks for input in two rounds", ask_in_rounds),
        offer(f"{PREFIX}capabilities", "Asks only for what the client supports", ask_what_client_can),
    )
)
