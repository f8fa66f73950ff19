"""What a person can set in a session: mode, model, effort, agent, and whether memory edits are asked for first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.agents.host import Agent, ModelChoice
from frontdesk.errors import Invalid
from frontdesk.surfaces.acp.wire.model import Json
from frontdesk.workspace.permissions.model import Mode
from frontdesk.workspace.sessions.model import Changes, Session

DEFAULT_EFFORT = "default"
MODES: Mapping[Mode, tuple[str, str]] = {
    Mode.ASK: ("Ask", "Reads by itself, and asks before it changes or runs anything"),
    Mode.ACCEPT_EDITS: ("Accept edits", "Edits files by itself, and asks before it runs anything"),
    Mode.AUTO: ("Auto", "Does everything by itself"),
    Mode.PLAN: ("Plan", "Looks and plans, and changes nothing"),
}
MEMORY = {"auto": "Edits its memory by itself", "ask": "Asks before it edits its memory"}


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is to choose from; `holds_back` where the host can ask before a memory edit."""

    models: Sequence[ModelChoice]
    agents: Sequence[Agent]
    holds_back: bool = False

    def model_of(self, session: Session) -> ModelChoice:
        """The model that a session's turns are taken with."""
        own = next((agent.model for agent in self.agents if agent.id == session.agent_id), None)
        name = session.model or own or (self.models[0].name if self.models else "default")
        return next((model for model in self.models if model.name == name), ModelChoice(name))


def modes(session: Session) -> Json:
    available = [{"id": mode.value, "name": name, "description": text} for mode, (name, text) in MODES.items()]
    return {"currentModeId": session.mode.value, "availableModes": available}


def told(session: Session, choices: Choices) -> Sequence[Json]:
    """All options as they stand."""
    model = choices.model_of(session)
    offered = {one.name: one.title or one.name for one in (*choices.models, model)}
    agents = {agent.id: agent.name for agent in choices.agents} or {session.agent_id: session.agent_id}
    efforts = {DEFAULT_EFFORT: "Default", **{effort: effort.capitalize() for effort in model.efforts}}
    effort = session.effort if session.effort in efforts else DEFAULT_EFFORT
    return [
        _select("mode", "Mode", "mode", session.mode.value, {mode.value: name for mode, (name, _) in MODES.items()}),
        _select("model", "Model", "model", model.name, offered),
        *([_select("effort", "Effort", "thought_level", effort, efforts)] if model.efforts else []),
        _select("agent", "Agent", None, session.agent_id, agents),
        *([_select("memory", "Memory edits", None, _memory(session), MEMORY)] if choices.holds_back else []),
    ]


def changed(session: Session, choices: Choices, option: str, value: str) -> Changes:
    """What becomes of a session when an option is set."""
    allowed = next((one for one in told(session, choices) if one["id"] == option), None)
    if allowed is None:
        raise Invalid(f"There is no option '{option[:50]}' in this session")
    if value not in {one["value"] for one in allowed["options"]}:
        raise Invalid(f"'{value[:50]}' cannot be chosen for {option}; take one of those listed")
    match option:
        case "mode":
            return {"mode": Mode(value)}
        case "model":
            return {"model": value}
        case "effort":
            return {"effort": None if value == DEFAULT_EFFORT else value}
        case "memory":
            return {"asks_memory": value == "ask"}
        case _:
            return {"agent_id": value}


def _memory(session: Session) -> str:
    return "ask" if session.asks_memory else "auto"


def _select(option: str, name: str, category: str | None, value: str, offered: Mapping[str, str]) -> Json:
    return {
        "type": "select",
        "id": option,
        "name": name,
        **({"category": category} if category else {}),
        "currentValue": value,
        "options": [{"value": one, "name": title} for one, title in offered.items()],
    }
