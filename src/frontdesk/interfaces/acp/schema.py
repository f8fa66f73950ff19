"""Imports the protocol's models from its SDK, and validates messages with them."""

from typing import TypeVar

from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    AudioContentBlock,
    AuthenticateRequest,
    BlobResourceContents,
    CancelElicitationResponse,
    ClientCapabilities,
    CloseSessionRequest,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    DeleteSessionRequest,
    EmbeddedResourceContentBlock,
    EnvVariable,
    ForkSessionRequest,
    HttpHeader,
    HttpMcpServer,
    ImageContentBlock,
    ListSessionsRequest,
    LoadSessionRequest,
    LogoutRequest,
    McpServerStdio,
    NewSessionRequest,
    OtherElicitationResponse,
    PromptRequest,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ResourceContentBlock,
    ResumeSessionRequest,
    SetSessionConfigOptionBooleanRequest,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    SseMcpServer,
    TerminalOutputResponse,
    TextContentBlock,
    TextResourceContents,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from frontdesk.interfaces.acp.jsonrpc import INVALID_PARAMS, Json, RpcError

__all__ = [
    "AcceptElicitationResponse",
    "AllowedOutcome",
    "AudioContentBlock",
    "AuthenticateRequest",
    "BlobResourceContents",
    "CancelElicitationResponse",
    "ClientCapabilities",
    "CloseSessionRequest",
    "ConfigChoice",
    "ContentBlock",
    "CreateTerminalResponse",
    "DeclineElicitationResponse",
    "DeleteSessionRequest",
    "ElicitationResponse",
    "EmbeddedResourceContentBlock",
    "EnvVariable",
    "ForkSessionRequest",
    "HttpHeader",
    "HttpMcpServer",
    "ImageContentBlock",
    "ListSessionsRequest",
    "LoadSessionRequest",
    "LogoutRequest",
    "McpServerStdio",
    "NewSessionRequest",
    "OtherElicitationResponse",
    "PromptRequest",
    "ReadTextFileResponse",
    "RequestPermissionResponse",
    "ResourceContentBlock",
    "ResumeSessionRequest",
    "SetSessionConfigOptionBooleanRequest",
    "SetSessionConfigOptionSelectRequest",
    "SetSessionModeRequest",
    "SseMcpServer",
    "TerminalOutputResponse",
    "TextContentBlock",
    "TextResourceContents",
    "WaitForTerminalExitResponse",
    "WriteTextFileResponse",
    "parse",
    "parse_config_option",
    "parse_elicitation",
]

ContentBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
ConfigChoice = SetSessionConfigOptionBooleanRequest | SetSessionConfigOptionSelectRequest
ElicitationResponse = (
    AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse | OtherElicitationResponse
)
MAX_PROBLEMS = 5
MAX_PLACE_CHARACTERS = 100
_ELICITATION_RESPONSES: dict[object, type[ElicitationResponse]] = {
    "accept": AcceptElicitationResponse,
    "decline": DeclineElicitationResponse,
    "cancel": CancelElicitationResponse,
}

M = TypeVar("M", bound=BaseModel)


def parse(model: type[M], params: Json) -> M:
    """Validate a message; raises an `RpcError` of one line that repeats nothing of the message.

    Only the protocol's names count, so neither `_meta` nor a field under its Python name is taken for another field.
    """
    try:
        return model.model_validate(params, by_alias=True, by_name=False)
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {_describe_problems(error)}") from None
    except RecursionError:
        raise RpcError(INVALID_PARAMS, "Invalid params: nested too deeply") from None


def parse_config_option(params: Json) -> ConfigChoice:
    """Parse the parameters of `session/set_config_option`."""
    if params.get("type") == "boolean":
        return parse(SetSessionConfigOptionBooleanRequest, params)
    return parse(SetSessionConfigOptionSelectRequest, params)


def parse_elicitation(result: Json) -> ElicitationResponse:
    """Parse the answer to an elicitation."""
    action = result.get("action")
    # The SDK looks the action up before it checks its type, and fails on a list.
    if not isinstance(action, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: action: Input should be a valid string")
    return parse(_ELICITATION_RESPONSES.get(action, OtherElicitationResponse), result)


def _describe_problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    told = list(dict.fromkeys(map(_describe_problem, problems)))
    more = f"; and {len(told) - MAX_PROBLEMS} more" if len(told) > MAX_PROBLEMS else ""
    return "; ".join(told[:MAX_PROBLEMS]) + more


def _describe_problem(problem: ErrorDetails) -> str:
    place = ".".join(map(str, problem["loc"]))[:MAX_PLACE_CHARACTERS] or "params"
    # The library's message would repeat parts of the message.
    if problem["type"] == "union_tag_invalid":
        return f"{place}: expected one of {problem.get('ctx', {}).get('expected_tags')}"
    return f"{place}: {problem['msg'].removeprefix('Value error, ')}"


class SetTitleRequest(BaseModel):
    """`session/set_title`."""

    session_id: str = Field(alias="sessionId")
    title: str


class SteeringRequest(BaseModel):
    """`_session/steering`, in the form that other agents take."""

    session_id: str = Field(alias="sessionId")
    prompt: list[ContentBlock]
