"""Opens Frontdesk in this process, and runs the methods of the library on its services."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from frontdesk.agents.host import Agent, MemoryBlock, NewAgent, Prompt
from frontdesk.agents.turns.operations import TurnAnswer, ask_agent
from frontdesk.app import App, open_app, running
from frontdesk.errors import FrontdeskError, Invalid, InvalidArguments, Unauthenticated
from frontdesk.identity.inbound import check_agent_id, is_user_id
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import AgentIdSource, Caller, Signals
from frontdesk.interfaces.calls import run_call
from frontdesk.interfaces.http.context import ensure_request_id
from frontdesk.interfaces.library.exposure import ROOT_SERVICE, LibraryMethod, library_methods
from frontdesk.interfaces.library.methods import DeskMethods
from frontdesk.interfaces.logs import pass_logs_on
from frontdesk.journal.service import CallRecord
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.operations import Answer, BoundOperation, Call, Requires, RestAnswer, RestInput
from frontdesk.settings import Settings

# How the journal names calls of the library.
SURFACE = "library"
MOST_AGENTS = 1000
NEEDS_PERSON = "These are a person's own records: say whose, with desk.as_person(USER_ID)"


@asynccontextmanager
async def open(settings: Settings | None = None, *, background: bool = True) -> "AsyncGenerator[Desk]":  # noqa: A001 - read as frontdesk.open
    """Open Frontdesk in this process, without a server.

    Args:
        settings: The settings; those of the environment and `frontdesk.toml` when left out.
        background: Run the background tasks of a server until the end: deliver due prompts, read the tools of servers,
            index memories, write the journal. Without them it opens faster, as a short script wants it.

    Yields:
        The desk, whose calls are the operator's until `as_person` or `as_agent` names somebody.
    """
    pass_logs_on()
    async with open_app(settings or Settings.read()) as app, running(app) if background else nullcontext():
        yield Desk(app)


@dataclass(frozen=True, slots=True)
class NamedCaller:
    """The person and the agent that calls are made for. Without either they are the operator's."""

    person: str | None = None
    agent_id: str | None = None

    def caller(self, *, person_alone: bool = False) -> Caller:
        request_id = ensure_request_id(None)
        agent_id = None if person_alone else self.agent_id
        if agent_id is not None:
            return Caller(request_id, agent_id, self.person, AgentIdSource.CREDENTIAL, verified=True)
        if self.person is not None:
            return Caller(request_id, None, self.person, verified=True)
        if person_alone:
            return Caller(request_id, None, LOCAL_USER, credential_id=LOCAL_USER)
        return Caller(request_id, local=True, any_agent=True)


class Desk(DeskMethods):
    """Frontdesk in this process.

    Attributes:
        app: The services below the methods.
        agents: The agents, and turns of them.
    """

    def __init__(self, app: App, named: NamedCaller | None = None) -> None:
        self._named = named or NamedCaller()
        super().__init__(InProcessTransport(app, self._named))
        self.app = app
        self.agents = AgentMethods(app, self._named)

    def as_person(self, user_id: str) -> "Desk":
        """The same desk for a person.

        Args:
            user_id: The person's id, as keys and tokens have it. The program vouches for it.

        Returns:
            A desk whose calls are this person's, and see this person's records only.
        """
        if not is_user_id(user_id):
            raise Invalid("A user id is printable text of at most 200 characters")
        return Desk(self.app, replace(self._named, person=user_id))

    def as_agent(self, agent_id: str) -> "Desk":
        """The same desk for an agent, and for the person if one is named already.

        Args:
            agent_id: The agent's id.

        Returns:
            A desk whose calls are this agent's.
        """
        return Desk(self.app, replace(self._named, agent_id=check_agent_id(agent_id)))


class AgentMethods:
    """The agents of the host, built in or on a Letta server."""

    def __init__(self, app: App, named: NamedCaller) -> None:
        self._app = app
        self._named = named

    async def list(self) -> Sequence[Agent]:
        """List the agents.

        Returns:
            The agents, a thousand at most.
        """
        return await self._app.host.list(MOST_AGENTS)

    async def create(
        self, name: str, *, description: str = "", model: str | None = None, blocks: Sequence[MemoryBlock] = ()
    ) -> Agent:
        """Create an agent. It belongs to the person of the desk, if there is one.

        Args:
            name: Its name.
            description: What it is for.
            model: The model that it uses, such as `anthropic:claude-sonnet-5-5`; the host's default when left out.
            blocks: Its memory blocks; those with the labels `persona` and `human` are made when left out.

        Returns:
            The agent, with its id.
        """
        caller = self._named.caller(person_alone=True)
        with CallRecord(self._app.journal, SURFACE, "agents create", caller) as record:
            agent = await self._app.host.create(NewAgent(name, description, model, blocks, self._named.person))
            record.caller = replace(caller, agent_id=agent.id)
        return agent

    async def prompt(
        self, agent_id: str, text: str, *, conversation_id: str | None = None, seconds: float = 300
    ) -> TurnAnswer:
        """Say something to an agent, for the person of the desk, and wait for its answer.

        Args:
            agent_id: The agent's id.
            text: The message to the agent.
            conversation_id: The conversation; the person's first with this agent when left out.
            seconds: How long the turn may take; then it is cancelled.

        Returns:
            The answer: its `text`, why the turn stopped, and in `trouble` why it failed.
        """
        person = self._named.person
        caller = Caller(ensure_request_id(None), user_id=person)
        prompt = Prompt(agent_id, caller, text, conversation_id=conversation_id, runs=person is None)
        return await ask_agent(self._app.host, self._app.journal, SURFACE, prompt, seconds)


@dataclass(frozen=True, slots=True)
class InProcessTransport:
    """Runs the operations of an app that is open in this process."""

    app: App
    named: NamedCaller

    async def call(self, name: str, arguments: Mapping[str, object]) -> Any:  # noqa: ANN401 - the type of the method's answer
        method = library_methods()[name]
        caller = self.named.caller(person_alone=method.for_person_alone)
        service = self.app if method.service == ROOT_SERVICE else getattr(self.app, method.service)
        bound = self.app.bind(method.operation, service)

        async def identify(_signals: Signals) -> Caller:
            return caller

        async def work(caller: Caller) -> object:
            return await _run(method, bound, caller, method.given(arguments))

        answer = await run_call(self.app, SURFACE, name, Signals(caller.request_id), work, identify)
        return _value(method, answer)


async def _run(method: LibraryMethod, bound: BoundOperation, caller: Caller, fields: Mapping[str, object]) -> object:
    operation, call = bound.operation, Call(caller)
    requires = method.tool.requires if method.tool is not None else None
    if (requires or operation.requires) is Requires.PERSON and caller.user_id is None:
        raise Unauthenticated(NEEDS_PERSON)
    bound.check(caller, requires)
    try:
        if method.route is None or not method.has_own_route:
            return await operation.run(bound.service, call, method.request.model_validate(fields))
        path = {name: str(fields[name]) for name in method.route.path_names}
        query = method.route.query.model_validate(_of_model(fields, method.route.query))
        body = (
            None
            if method.route.body is None
            else method.route.body.model_validate(_of_model(fields, method.route.body))
        )
        run = method.route.route.run or operation.run
        return await run(bound.service, call, RestInput(path, query, body))
    except ValidationError as error:
        raise InvalidArguments(f"Invalid arguments for {method.name}: {describe_validation_errors(error)}") from error


def _of_model(fields: Mapping[str, object], model: type[BaseModel]) -> Mapping[str, object]:
    known = {field.alias or name for name, field in model.model_fields.items()}
    return {name: value for name, value in fields.items() if name in known}


def _value(method: LibraryMethod, answer: object) -> Any:  # noqa: ANN401 - the type of the method's answer
    if isinstance(answer, Answer):
        if not answer.ok:
            raise FrontdeskError(answer.text)
        answer = answer.data
    return method.adapter.validate_python(answer.value if isinstance(answer, RestAnswer) else answer)
