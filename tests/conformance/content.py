"""Tools that answer at once, with every kind of content."""

from collections.abc import Mapping
from typing import Any

from mcp.server.context import HandlerResult
from mcp_types import AudioContent, TextContent

from frontdesk.interfaces.mcp.context import SdkContext
from frontdesk.interfaces.mcp.tool_spec import OfferedTool
from tests.conformance.shapes import Json, embedded, fixed, image, object_schema, offer, said

SILENT_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="

# One use of each keyword that the suite looks for; an endpoint must hand it on untouched.
JSON_SCHEMA_2020_12: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
REGION = object_schema({"region": {"type": "string", "x-mcp-header": "Region"}}, ("region",))


async def echo_region(_ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
    return said(f"Region: {arguments.get('region', 'none')}")


SIMPLE_TEXT = fixed(TextContent(text="This is a simple text response for testing."))
AUDIO = fixed(AudioContent(data=SILENT_WAV, mime_type="audio/wav"))
RESOURCE = fixed(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))
MIXED = fixed(
    TextContent(text="Multiple content types test:"),
    image(),
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
)
ERROR = fixed(TextContent(text="This tool intentionally returns an error for testing"), is_error=True)
ACCEPTED = fixed(TextContent(text="Schema accepted"))

CONTENT: dict[str, OfferedTool] = dict(
    (
        offer("test_simple_text", "Returns simple text", SIMPLE_TEXT),
        offer("test_image_content", "Returns an image", fixed(image())),
        offer("test_audio_content", "Returns audio", AUDIO),
        offer("test_embedded_resource", "Returns an embedded resource", RESOURCE),
        offer("test_multiple_content_types", "Returns several content types", MIXED),
        offer("test_error_handling", "Returns a tool error", ERROR),
        offer("json_schema_2020_12_tool", "Has a schema of many keywords", ACCEPTED, JSON_SCHEMA_2020_12),
        offer("test_x_mcp_header", "Mirrors an argument into a header", echo_region, REGION),
    )
)
