"""Shows the first steps of a new installation, and takes them with forms."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import quote

from pydantic import ValidationError

from frontdesk.agents.host import Agent, MemoryBlock, NewAgent, host_answer_in_time
from frontdesk.app import base_url
from frontdesk.errors import FrontdeskError, Invalid
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.interfaces.demo_server import DEMO_SERVER, DEMO_SERVER_MODULE, demo_server_spec
from frontdesk.interfaces.web.model import ActionRoute, PageContent, PageRedirect, PageRequest, PageRoute, StreamRoute
from frontdesk.llm.access import OFFLINE, ModelAccess
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.schedules.api_models import explain_missing_rule
from frontdesk.schedules.model import RunRecord, RunStatus, Schedule, ScheduleState, from_us
from frontdesk.schedules.requests import ListRuns, ListSchedules, NewSchedule, RuleDescription
from frontdesk.settings import Settings
from frontdesk.tools.crawler import CrawlStep
from frontdesk.tools.requests import AddServerRequest
from frontdesk.tools.servers import ServerState, Transport

SHOWN_SCHEDULES = 5
MOST_AGENTS = 200
# The page waits for a prompt that is due within this time.
SOON = timedelta(minutes=10)
UNFINISHED = (RunStatus.RUNNING, RunStatus.WAITING)


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """A schedule, its rule in words, and its newest run."""

    schedule: Schedule
    latest: RunRecord | None
    waiting: bool

    @property
    def rule(self) -> str:
        return RuleDescription.of(self.schedule.what.trigger, self.schedule.intended_us).sentence

    @property
    def runs(self) -> bool:
        return self.latest is not None and self.latest.standing in UNFINISHED


@dataclass(frozen=True, slots=True)
class SetupState:
    """The state of each step. `letta` is the server that hosts the agents; `away` is its error, if any."""

    letta: str | None
    model: str
    agents: Sequence[Agent]
    away: str
    servers: Sequence[ServerState]
    schedules: Sequence[Schedule]
    planned: PlannedSchedule | None
    editor: bool
    platform: bool

    @property
    def offline(self) -> bool:
        return self.letta is None and self.model == OFFLINE

    @property
    def tools(self) -> int:
        return sum(state.tools for state in self.servers)

    @property
    def steps(self) -> Sequence[tuple[str, str, bool]]:
        """(anchor, title, whether it is done) of each step."""
        return (
            ("model", "Connect a model or Letta", not self.offline),
            ("agent", "Make an agent", bool(self.agents)),
            ("server", "Add a tool server", self.tools > 0),
            ("schedule", "Schedule a prompt", bool(self.schedules)),
            ("editor", "Open an editor", self.editor),
            ("platform", "Agent 365", self.platform),
        )

    @property
    def done(self) -> int:
        return sum(done for _, _, done in self.steps[: self.needed])

    @property
    def needed(self) -> int:
        """The steps without the last, which not everybody needs."""
        return len(self.steps) - 1


async def read_setup_state(request: PageRequest) -> SetupState:
    app, caller = request.app, request.caller
    agents, away = await _list_agents(request)
    states = [state for state in app.tools.catalogue.servers() if state.spec.transport is not Transport.HOST]
    listed = await app.schedules.queries.list(caller, ListSchedules(include_cancelled=True, limit=SHOWN_SCHEDULES))
    # The editor sessions of the local person belong to the person of the first start.
    person = replace(caller, user_id=caller.user_id or LOCAL_USER)
    sessions = await app.workspace.sessions.list(person)
    return SetupState(
        letta=app.settings.letta_base_url,
        model=ModelAccess.from_settings(app.settings).default_model,
        agents=agents,
        away=away,
        servers=states,
        schedules=listed.schedules,
        planned=await _find_planned(request, listed.schedules),
        editor=bool(sessions.sessions),
        platform=app.settings.platform_app_id is not None,
    )


async def _list_agents(request: PageRequest) -> tuple[Sequence[Agent], str]:
    """The host's agents, or its error, which a person who sets it up has to see here."""
    try:
        return await host_answer_in_time(request.app.host.list(MOST_AGENTS)), ""
    except FrontdeskError as error:
        return (), error.public_message


async def _find_planned(request: PageRequest, listed: Sequence[Schedule]) -> PlannedSchedule | None:
    """The schedule that was just created, or the newest one."""
    looking, caller = request.app.schedules.queries, request.caller
    made = request.query.get("made")
    chosen = await looking.get(caller, made) if made else listed[-1] if listed else None
    if chosen is None:
        return None
    runs = (await looking.history(caller, ListRuns(schedule_id=chosen.id, limit=1))).runs
    latest = runs[0] if runs else None
    due = chosen.intended_us if chosen.state is ScheduleState.ACTIVE else None
    soon = due is not None and from_us(due) - request.now < SOON
    return PlannedSchedule(chosen, latest, soon or (latest is not None and latest.standing in UNFINISHED))


PLACEHOLDER = "…"
GREETING_SCRIPT = '@@[{"text": "Good morning. Nothing is waiting at the desk."}]@@'
TOOLS_SCRIPT = (
    '@@[{"tool": "find_tools", "args": {"query": "weather forecast for a city"}}, '
    f'{{"tool": "call_tool", "args": {{"name": "{DEMO_SERVER}::weather_forecast", '
    '"arguments": {"city": "Lisbon"}}}, '
    '{"text": "I looked for a tool that knows the weather, and asked it about Lisbon. Take a light jacket."}]@@'
)


@dataclass(frozen=True, slots=True)
class SetupSnippets:
    """The commands and configurations to copy, and the initial values of the prompt form."""

    models: Sequence[tuple[str, str]]
    editors: Sequence[tuple[str, str, str]]
    mcp: str
    address: str
    prompt: str
    demo_tools: str


def setup_snippets(settings: Settings, state: SetupState) -> SetupSnippets:
    return SetupSnippets(
        models=(
            ("Anthropic", "ANTHROPIC_API_KEY=… frontdesk up"),
            ("OpenAI", "OPENAI_API_KEY=… frontdesk up"),
            (
                "Ollama or similar",
                "OPENAI_BASE_URL=http://127.0.0.1:11434/v1 FRONTDESK_MODEL=openai:qwen3 frontdesk up",
            ),
            ("Letta", "LETTA_BASE_URL=http://127.0.0.1:8283 LETTA_SERVER_PASSWORD=… frontdesk up"),
        ),
        editors=_editor_snippets(settings),
        mcp=_format_json({"mcpServers": {"frontdesk": {"url": f"{base_url(settings)}/mcp"}}}),
        address=f"{base_url(settings)}/mcp",
        prompt=_first_prompt(state),
        demo_tools=f"frontdesk tools add {DEMO_SERVER} -- {shlex.join((sys.executable, '-m', DEMO_SERVER_MODULE))}",
    )


def _first_prompt(found: SetupState) -> str:
    """The initial prompt. Without a model, it is a script for the offline model."""
    if not found.offline:
        return "Find a tool that knows the weather, and tell me in one sentence whether I need a jacket in Lisbon."
    return TOOLS_SCRIPT if any(state.name == DEMO_SERVER for state in found.servers) else GREETING_SCRIPT


def _editor_snippets(settings: Settings) -> Sequence[tuple[str, str, str]]:
    """(editor, file, content): the editor's configuration for this installation, with absolute paths."""
    variables = _installation_variables(settings)
    start: Mapping[str, object] = {"command": sys.executable, "args": ["-m", "frontdesk", "acp"], "env": variables}
    typed = shlex.join((sys.executable, "-m", "frontdesk", "acp"))
    set_here = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return (
        ("Zed", "settings.json", _format_json({"agent_servers": {"Frontdesk": {"type": "custom", **start}}})),
        ("JetBrains IDEs", "~/.jetbrains/acp.json", _format_json({"agent_servers": {"Frontdesk": start}})),
        ("VS Code with ACP Client", "settings.json", _format_json({"acp.agents": {"Frontdesk": start}})),
        ("Toad", "a terminal", f"{set_here} toad acp {shlex.quote(typed)}"),
    )


def _installation_variables(settings: Settings) -> dict[str, str]:
    """The variables with which another process uses the same agents and records. Secrets are left out."""
    wanted = {
        "FRONTDESK_DATA": str(settings.data),
        "FRONTDESK_DATABASE_URL": PLACEHOLDER if settings.database_url else None,
        "LETTA_BASE_URL": settings.letta_base_url,
        "LETTA_API_KEY": PLACEHOLDER if settings.letta_api_key else None,
        "LETTA_SERVER_PASSWORD": PLACEHOLDER if settings.letta_server_password else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _format_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


async def create_agent(request: PageRequest) -> PageRedirect:
    name, persona, model = (_form_value(request, field) for field in ("name", "persona", "model"))
    if name is None:
        raise Invalid("An agent needs a name")
    blocks = (MemoryBlock("persona", persona),) if persona else ()
    made = await request.app.host.create(NewAgent(name, _form_value(request, "description") or "", model, blocks))
    return PageRedirect(
        "/start#server", f"Created {made.name}, with the id {made.id}. Talk with it: frontdesk chat {made.id}"
    )


async def add_server(request: PageRequest) -> PageRedirect:
    token = _form_value(request, "token")
    given = {
        "name": _form_value(request, "name") or "",
        "url": _form_value(request, "url") or "",
        "transport": _form_value(request, "transport") or "http",
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
    }
    try:
        wanted = AddServerRequest.model_validate(given)
    except ValidationError as error:
        raise Invalid(f"That does not fit: {describe_validation_errors(error)}") from error
    return _server_added(await request.app.tools.administration.add_server(request.caller, wanted.spec))


async def add_demo_tools(request: PageRequest) -> PageRedirect:
    return _server_added(
        await request.app.tools.administration.add_server(request.caller, demo_server_spec(DEMO_SERVER))
    )


async def create_schedule(request: PageRequest) -> PageRedirect:
    plan = NewSchedule(
        _form_value(request, "prompt") or "",
        agent_id=_form_value(request, "agent"),
        when=_form_value(request, "when"),
        zone=_form_value(request, "zone"),
    )
    with explain_missing_rule("when it should run: in plain words, or as a cron rule"):
        added = await request.app.schedules.add(request.caller, plan)
    return PageRedirect(
        _schedule_path(added.schedule.id), f"Scheduled with number {added.schedule.id}: {added.rule.sentence}"
    )


async def run_schedule(request: PageRequest) -> PageRedirect:
    number = request.form.get("schedule", "")
    await request.app.schedules.run_now(request.caller, number)
    return PageRedirect(_schedule_path(number), "It runs now; the agent's answer is shown here.")


def _schedule_path(number: object) -> str:
    return f"/start?made={quote(str(number), safe='')}#schedule"


def _form_value(request: PageRequest, field: str) -> str | None:
    """The values of the form, if it was sent."""
    return request.form.get(field, "").strip() or None


def _server_added(step: CrawlStep) -> PageRedirect:
    return PageRedirect("/start#schedule", f"{step.server} answered, and has {step.tools} tools.")


async def show_start(request: PageRequest) -> PageContent:
    found = await read_setup_state(request)
    return PageContent(
        "start/start.html", "Start", {"found": found, "words": setup_snippets(request.app.settings, found)}
    )


START: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/start", show_start),
    ActionRoute("/start/agent", create_agent),
    ActionRoute("/start/server", add_server),
    ActionRoute("/start/demo-tools", add_demo_tools),
    ActionRoute("/start/schedule", create_schedule),
    ActionRoute("/start/run", run_schedule),
)
