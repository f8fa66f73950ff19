"""Tools that send a request to the client while it waits for them, as the revisions with sessions could."""

import json
from collections.abc import Mapping
from typing import Any

from mcp.server.context import HandlerResult
from mcp.shared.message import ServerMessageMetadata
from mcp_types import CreateMessageResult

from frontdesk.interfaces.mcp.context import SdkContext
from frontdesk.interfaces.mcp.tool_spec import OfferedTool
from tests.conformance.shapes import Call, Json, object_schema, offer, said, sampling, text_of

PERSON: Json = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]
ENUMS: Json = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": OPTIONS, "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


async def sample(ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
    request = sampling(str(arguments.get("prompt", "")), 100)
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    reply = await ctx.session.send_request(request, CreateMessageResult, metadata=related)
    return said(f"LLM response: {text_of(reply)}")


def elicit(properties: Json, required: tuple[str, ...] = ()) -> Call:
    """A tool that asks the person for `properties` and says what came back."""

    async def call(ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
        schema = object_schema(properties, required)
        message = str(arguments.get("message", "Please fill this in"))
        reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return said(f"User response: action={reply.action}, content={json.dumps(reply.content)}")

    return call


PROMPT = object_schema({"prompt": {"type": "string"}}, ("prompt",))
MESSAGE = object_schema({"message": {"type": "string"}}, ("message",))

CALLING_BACK: dict[str, OfferedTool] = dict(
    (
        offer("test_sampling", "Asks the client's model", sample, PROMPT),
        offer("test_elicitation", "Asks the person", elicit(PERSON, ("username", "email")), MESSAGE),
        offer("test_elicitation_sep1034_defaults", "Asks with default values", elicit(DEFAULTS)),
        offer("test_elicitation_sep1330_enums", "Asks with every kind of enum", elicit(ENUMS)),
    )
)
