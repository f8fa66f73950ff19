"""The protocol's own words, checked: the one place that knows its SDK."""

from typing import TypeVar

from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    AudioContentBlock,
    AuthenticateRequest,
    BlobResourceContents,
    CancelElicitationResponse,
    CancelNotification,
    ClientCapabilities,
    CloseSessionRequest,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    DeleteSessionRequest,
    DeniedOutcome,
    EmbeddedResourceContentBlock,
    EnvVariable,
    ForkSessionRequest,
    HttpHeader,
    HttpMcpServer,
    ImageContentBlock,
    InitializeRequest,
    KillTerminalResponse,
    ListSessionsRequest,
    LoadSessionRequest,
    LogoutRequest,
    McpServerStdio,
    NewSessionRequest,
    OtherElicitationResponse,
    PromptRequest,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    ResourceContentBlock,
    ResumeSessionRequest,
    SetSessionConfigOptionBooleanRequest,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    SseMcpServer,
    TerminalExitStatus,
    TerminalOutputResponse,
    TextContentBlock,
    TextResourceContents,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from frontdesk.surfaces.acp.wire.model import INVALID_PARAMS, Json, RpcError

__all__ = [
    "AcceptElicitationResponse",
    "AllowedOutcome",
    "AudioContentBlock",
    "AuthenticateRequest",
    "BlobResourceContents",
    "CancelElicitationResponse",
    "CancelNotification",
    "ClientCapabilities",
    "CloseSessionRequest",
    "ConfigChoice",
    "ContentBlock",
    "CreateTerminalResponse",
    "DeclineElicitationResponse",
    "DeleteSessionRequest",
    "DeniedOutcome",
    "Elicited",
    "EmbeddedResourceContentBlock",
    "EnvVariable",
    "ForkSessionRequest",
    "HttpHeader",
    "HttpMcpServer",
    "ImageContentBlock",
    "InitializeRequest",
    "KillTerminalResponse",
    "ListSessionsRequest",
    "LoadSessionRequest",
    "LogoutRequest",
    "McpServerStdio",
    "NewSessionRequest",
    "OtherElicitationResponse",
    "PromptRequest",
    "ReadTextFileResponse",
    "ReleaseTerminalResponse",
    "RequestPermissionResponse",
    "ResourceContentBlock",
    "ResumeSessionRequest",
    "SetSessionConfigOptionBooleanRequest",
    "SetSessionConfigOptionSelectRequest",
    "SetSessionModeRequest",
    "SseMcpServer",
    "TerminalExitStatus",
    "TerminalOutputResponse",
    "TextContentBlock",
    "TextResourceContents",
    "WaitForTerminalExitResponse",
    "WriteTextFileResponse",
    "config_choice",
    "elicited",
    "parsed",
]

ContentBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
ConfigChoice = SetSessionConfigOptionBooleanRequest | SetSessionConfigOptionSelectRequest
Elicited = AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse | OtherElicitationResponse
MOST_PROBLEMS = 5
MOST_PLACE = 100
_ELICITED: dict[object, type[Elicited]] = {
    "accept": AcceptElicitationResponse,
    "decline": DeclineElicitationResponse,
    "cancel": CancelElicitationResponse,
}

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], params: Json) -> M:
    """What was sent, as the protocol has it; `RpcError` in one line where it does not fit, without a word of it.

    By the protocol's names alone: nothing in `_meta`, and no field under its name in Python, is taken for another.
    """
    try:
        return model.model_validate(params, by_alias=True, by_name=False)
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {_problems(error)}") from None
    except RecursionError:
        raise RpcError(INVALID_PARAMS, "Invalid params: nested too deeply") from None


def config_choice(params: Json) -> ConfigChoice:
    """What `session/set_config_option` asks for."""
    if params.get("type") == "boolean":
        return parsed(SetSessionConfigOptionBooleanRequest, params)
    return parsed(SetSessionConfigOptionSelectRequest, params)


def elicited(result: Json) -> Elicited:
    """What came of an elicitation."""
    action = result.get("action")
    # The SDK looks it up before it looks at what it is, and fails on a list.
    if not isinstance(action, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: action: Input should be a valid string")
    return parsed(_ELICITED.get(action, OtherElicitationResponse), result)


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    told = list(dict.fromkeys(map(_problem, problems)))
    more = f"; and {len(told) - MOST_PROBLEMS} more" if len(told) > MOST_PROBLEMS else ""
    return "; ".join(told[:MOST_PROBLEMS]) + more


def _problem(problem: ErrorDetails) -> str:
    place = ".".join(map(str, problem["loc"]))[:MOST_PLACE] or "params"
    # The library's own words would say which kind was sent.
    if problem["type"] == "union_tag_invalid":
        return f"{place}: expected one of {problem.get('ctx', {}).get('expected_tags')}"
    return f"{place}: {problem['msg'].removeprefix('Value error, ')}"
