"""Resources of each kind, and a template of them."""

import json
import re
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk.interfaces.mcp.context import SdkContext
from tests.conformance.shapes import RED_PIXEL_PNG

Contents = types.TextResourceContents | types.BlobResourceContents


def text(uri: str, content: str, mime_type: str = "text/plain") -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)


BINARY = "test://static-binary"
RESOURCES: dict[str, Contents] = {
    found.uri: found
    for found in (
        text("test://static-text", "This is the content of the static text resource."),
        text("test://watched-resource", "This resource can be subscribed to."),
        types.BlobResourceContents(uri=BINARY, mime_type="image/png", blob=RED_PIXEL_PNG),
    )
}
TEMPLATE = types.ResourceTemplate(
    uri_template="test://template/{id}/data", name="Template data", mime_type="application/json"
)
OF_TEMPLATE = re.compile(r"test://template/(?P<id>[^/]+)/data")


def contents(uri: str) -> Contents:
    """What is at `uri`; the error for a resource that is not there carries its address."""
    if uri in RESOURCES:
        return RESOURCES[uri]
    match = OF_TEMPLATE.fullmatch(uri)
    if match is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    data = {"id": match["id"], "templateTest": True, "data": f"Data for ID: {match['id']}"}
    return text(uri, json.dumps(data), "application/json")


async def list_resources(_ctx: SdkContext, _params: types.PaginatedRequestParams) -> types.ListResourcesResult:
    listed = [types.Resource(uri=uri, name=uri, mime_type=found.mime_type) for uri, found in RESOURCES.items()]
    return types.ListResourcesResult(resources=listed)


async def list_templates(_ctx: SdkContext, _params: types.PaginatedRequestParams) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])


async def read(_ctx: SdkContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[contents(params.uri)])


async def subscribe(_ctx: SdkContext, _params: types.SubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def unsubscribe(_ctx: SdkContext, _params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def add_resources(server: Server[Any]) -> None:
    server.add_request_handler("resources/list", types.PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
