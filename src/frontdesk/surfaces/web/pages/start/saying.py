"""What the first steps are told in: commands and snippets that fit this very house, without its secrets."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.app import base_url
from frontdesk.settings import Settings
from frontdesk.surfaces.demo.place import MODULE
from frontdesk.surfaces.demo.place import NAME as DEMO
from frontdesk.surfaces.web.pages.start.looking import Found

LEFT_OUT = "…"
HELLO = '@@[{"text": "Good morning. Nothing is waiting at the desk."}]@@'
WITH_TOOLS = (
    '@@[{"tool": "find_tools", "args": {"query": "weather forecast for a city"}}, '
    f'{{"tool": "call_tool", "args": {{"name": "{DEMO}::weather_forecast", "arguments": {{"city": "Lisbon"}}}}}}, '
    '{"text": "I looked for a tool that knows the weather, and asked it about Lisbon. Take a light jacket."}]@@'
)


@dataclass(frozen=True, slots=True)
class Words:
    """What is there to be copied, and what the form of a prompt begins with."""

    models: Sequence[tuple[str, str]]
    editors: Sequence[tuple[str, str, str]]
    mcp: str
    address: str
    prompt: str
    demo_tools: str


def words_for(settings: Settings, found: Found) -> Words:
    return Words(
        models=(
            ("Anthropic", "ANTHROPIC_API_KEY=… frontdesk up"),
            ("OpenAI", "OPENAI_API_KEY=… frontdesk up"),
            (
                "Ollama or the like",
                "OPENAI_BASE_URL=http://127.0.0.1:11434/v1 FRONTDESK_MODEL=openai:qwen3 frontdesk up",
            ),
            ("Letta", "LETTA_BASE_URL=http://127.0.0.1:8283 LETTA_SERVER_PASSWORD=… frontdesk up"),
        ),
        editors=_editors(settings),
        mcp=_dumped({"mcpServers": {"frontdesk": {"url": f"{base_url(settings)}/mcp"}}}),
        address=f"{base_url(settings)}/mcp",
        prompt=_prompt(found),
        demo_tools=f"frontdesk tools add {DEMO} -- {shlex.join((sys.executable, '-m', MODULE))}",
    )


def _prompt(found: Found) -> str:
    """Without a model there is nobody to think, so a script says what is to happen."""
    if not found.offline:
        return "Find a tool that knows the weather, and tell me in one sentence whether I need a jacket in Lisbon."
    return WITH_TOOLS if any(state.name == DEMO for state in found.servers) else HELLO


def _editors(settings: Settings) -> Sequence[tuple[str, str, str]]:
    """(editor, where it is written, what is written): this installation on this very house, by whole paths."""
    house = _house(settings)
    start: Mapping[str, object] = {"command": sys.executable, "args": ["-m", "frontdesk", "acp"], "env": house}
    typed = shlex.join((sys.executable, "-m", "frontdesk", "acp"))
    set_here = " ".join(f"{name}={shlex.quote(value)}" for name, value in house.items())
    return (
        ("Zed", "settings.json", _dumped({"agent_servers": {"Frontdesk": {"type": "custom", **start}}})),
        ("JetBrains IDEs", "~/.jetbrains/acp.json", _dumped({"agent_servers": {"Frontdesk": start}})),
        ("VS Code with ACP Client", "settings.json", _dumped({"acp.agents": {"Frontdesk": start}})),
        ("Toad", "a terminal", f"{set_here} toad acp {shlex.quote(typed)}"),
    )


def _house(settings: Settings) -> dict[str, str]:
    """What leads another process to the same agents and records; a secret is left for whoever knows it."""
    wanted = {
        "FRONTDESK_DATA": str(settings.data),
        "FRONTDESK_DATABASE_URL": LEFT_OUT if settings.database_url else None,
        "LETTA_BASE_URL": settings.letta_base_url,
        "LETTA_API_KEY": LEFT_OUT if settings.letta_api_key else None,
        "LETTA_SERVER_PASSWORD": LEFT_OUT if settings.letta_server_password else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _dumped(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
