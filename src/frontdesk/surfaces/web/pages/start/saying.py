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
            ("A model of your own choice", "FRONTDESK_MODEL=anthropic:claude-sonnet-5-5 frontdesk up"),
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
    """(editor, where it is written, what is written): this installation on this house's data, by whole paths."""
    start: Mapping[str, object] = {
        "command": sys.executable,
        "args": ["-m", "frontdesk", "acp"],
        "env": {"FRONTDESK_DATA": str(settings.data)},
    }
    return (
        ("Zed", "settings.json", _dumped({"agent_servers": {"Frontdesk": {"type": "custom", **start}}})),
        ("JetBrains IDEs", "~/.jetbrains/acp.json", _dumped({"agent_servers": {"Frontdesk": start}})),
        ("VS Code with ACP Client", "settings.json", _dumped({"acp.agents": {"Frontdesk": start}})),
        ("Toad", "a terminal", f'toad acp "{shlex.join((sys.executable, "-m", "frontdesk", "acp"))}"'),
    )


def _dumped(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
