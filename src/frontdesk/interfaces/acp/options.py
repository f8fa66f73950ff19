"""Defines what a person can set in a session: mode, model, effort, agent, and approval of memory edits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.agents.host import Agent, ModelChoice
from frontdesk.coding.model import CodingSession, CodingSessionChanges, PermissionMode
from frontdesk.errors import Invalid
from frontdesk.interfaces.acp.jsonrpc import Json

DEFAULT_EFFORT = "default"
MODES: Mapping[PermissionMode, tuple[str, str]] = {
    PermissionMode.ASK: ("Ask", "Reads by itself, and asks before it changes or runs anything"),
    PermissionMode.ACCEPT_EDITS: ("Accept edits", "Edits files by itself, and asks before it runs anything"),
    PermissionMode.AUTO: ("Auto", "Does everything by itself"),
    PermissionMode.PLAN: ("Plan", "Looks and plans, and changes nothing"),
}
MEMORY_OPTIONS = {"auto": "Edits its memory by itself", "ask": "Asks before it edits its memory"}


@dataclass(frozen=True, slots=True)
class SessionChoices:
    """What a person can choose in a session; `can_ask_memory` where the host can ask before a memory edit."""

    models: Sequence[ModelChoice]
    agents: Sequence[Agent]
    can_ask_memory: bool = False

    def model_of(self, session: CodingSession) -> ModelChoice:
        """The model of a session's turns."""
        own = next((agent.model for agent in self.agents if agent.id == session.agent_id), None)
        name = session.model or own or (self.models[0].name if self.models else "default")
        return next((model for model in self.models if model.name == name), ModelChoice(name))


def mode_state(session: CodingSession) -> Json:
    available = [{"id": mode.value, "name": name, "description": text} for mode, (name, text) in MODES.items()]
    return {"currentModeId": session.mode.value, "availableModes": available}


def option_list(session: CodingSession, choices: SessionChoices) -> Sequence[Json]:
    """All options with their current values."""
    model = choices.model_of(session)
    offered = {one.name: one.title or one.name for one in (*choices.models, model)}
    agents = {agent.id: agent.name for agent in choices.agents} or {session.agent_id: session.agent_id}
    efforts = {DEFAULT_EFFORT: "Default", **{effort: effort.capitalize() for effort in model.efforts}}
    effort = session.effort if session.effort in efforts else DEFAULT_EFFORT
    return [
        _select_option(
            "mode", "Mode", "mode", session.mode.value, {mode.value: name for mode, (name, _) in MODES.items()}
        ),
        _select_option("model", "Model", "model", model.name, offered),
        *([_select_option("effort", "Effort", "thought_level", effort, efforts)] if model.efforts else []),
        _select_option("agent", "Agent", None, session.agent_id, agents),
        *(
            [_select_option("memory", "Memory edits", None, _memory_option(session), MEMORY_OPTIONS)]
            if choices.can_ask_memory
            else []
        ),
    ]


def option_change(session: CodingSession, choices: SessionChoices, option: str, value: str) -> CodingSessionChanges:
    """The change of a session when an option is set."""
    allowed = next((one for one in option_list(session, choices) if one["id"] == option), None)
    if allowed is None:
        raise Invalid(f"There is no option '{option[:50]}' in this session")
    if value not in {one["value"] for one in allowed["options"]}:
        raise Invalid(f"'{value[:50]}' cannot be chosen for {option}; take one of those listed")
    match option:
        case "mode":
            return {"mode": PermissionMode(value)}
        case "model":
            return {"model": value}
        case "effort":
            return {"effort": None if value == DEFAULT_EFFORT else value}
        case "memory":
            return {"asks_memory": value == "ask"}
        case _:
            return {"agent_id": value}


def _memory_option(session: CodingSession) -> str:
    return "ask" if session.asks_memory else "auto"


def _select_option(option: str, name: str, category: str | None, value: str, offered: Mapping[str, str]) -> Json:
    return {
        "type": "select",
        "id": option,
        "name": name,
        **({"category": category} if category else {}),
        "currentValue": value,
        "options": [{"value": one, "name": title} for one, title in offered.items()],
    }
