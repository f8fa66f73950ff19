"""Runs one case by the SDK or by our client, and gives what was asked of the platform and what came of it."""

import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from microsoft_agents_a365.runtime.utility import Utility
from microsoft_agents_a365.tooling import models as sdk_models
from microsoft_agents_a365.tooling.services import mcp_tool_server_configuration_service as sdk_service

from frontdesk.agent365 import agent_identity, model
from frontdesk.agent365 import client as ours
from tests.referees.platform.cases import MANIFEST, PLATFORM, Case, Chat, Listing
from tests.referees.platform.relay import Recorded, Relay

Fields = Mapping[str, Any]
Asked = tuple[int, tuple[str, ...], str]
# What a case may set, and so must not find set by another.
FILES = (MANIFEST, f"../{MANIFEST}", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Listed:
    servers: tuple[Fields, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    succeeded: bool
    text: str
    errors: tuple[Exception, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    error: BaseException


Outcome = Listed | Sent | Raised


@dataclass(frozen=True, slots=True)
class Run:
    """What one side did, and what it said; `exchanges` are the tokens it asked for, by all that it gave."""

    requests: tuple[Recorded, ...]
    outcome: Outcome
    exchanges: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """A client: how its service is made, and its words for options and messages."""

    service: Callable[[Case], Any]
    options: Callable[[str | None], object]
    message: Callable[..., object]


def _sdk_service(case: Case) -> Any:
    sdk_service.DEFAULT_REQUEST_TIMEOUT_SECONDS = case.seconds
    return sdk_service.McpToolServerConfigurationService()


def _our_service(case: Case) -> Any:
    if case.retries is None:
        return ours.McpToolServerConfigurationService(timeout=case.seconds)
    return ours.McpToolServerConfigurationService(timeout=case.seconds, retries=case.retries)


SDK = Side(_sdk_service, sdk_models.ToolOptions, sdk_models.ChatHistoryMessage)
OURS = Side(_our_service, model.ToolOptions, model.ChatHistoryMessage)


async def run(case: Case, side: Side, relay: Relay, folder: Path) -> Run:
    """One side alone, with everything as if nobody had been there before."""
    relay.begin(case.answers)
    exchange = _Exchange(case)
    with _surroundings(case, relay, folder):
        outcome = await _outcome(_call(case, side, exchange))
    return Run(tuple(relay.recorded), outcome, tuple(exchange.asked))


async def _call(case: Case, side: Side, exchange: "_Exchange") -> Outcome:
    service = side.service(case)
    match case.call:
        case Listing() as call:
            servers = await service.list_tool_servers(
                call.app_id,
                call.token,
                side.options(call.orchestrator),
                exchange if call.exchanging else None,
                call.handler,
                call.turn,
            )
            return Listed(tuple(asdict(server) for server in servers))
        case Chat() as call:
            messages = None if call.messages is None else [side.message(**said) for said in call.messages]
            result = await service.send_chat_history(call.turn, messages, side.options(call.orchestrator))
            return Sent(result.succeeded, str(result), tuple(error.exception for error in result.errors))


async def _outcome(call: Awaitable[Outcome]) -> Outcome:
    try:
        return await call
    # Whatever it is: that it is raised is what is compared.
    except Exception as error:  # noqa: BLE001
        return Raised(error)


class _Exchange:
    """Exchanges tokens as the case says, and notes what for."""

    def __init__(self, case: Case) -> None:
        given = case.call.exchanging if isinstance(case.call, Listing) else None
        self._gives = given.gives if given else None
        self.asked: list[Asked] = []

    async def exchange_token(self, context: object, scopes: list[str], handler: str) -> object:
        self.asked.append((id(context), tuple(scopes), handler))
        if isinstance(self._gives, Exception):
            raise self._gives
        return self._gives(scopes[0]) if callable(self._gives) else self._gives


@contextmanager
def _surroundings(case: Case, relay: Relay, folder: Path) -> Generator[None]:
    """The environment and the folder of the case; everything is put back."""
    for name in FILES:
        path = folder / name
        if (content := case.files.get(name)) is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
    before, here = dict(os.environ), Path.cwd()
    _replace_environment({name: value.replace(PLATFORM, relay.url) for name, value in case.environment.items()})
    os.chdir(folder)
    Utility.reset_application_name_cache()
    agent_identity.reset_application_name_cache()
    try:
        yield
    finally:
        os.chdir(here)
        _replace_environment(before)
        Utility.reset_application_name_cache()
        agent_identity.reset_application_name_cache()


def _replace_environment(values: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)
