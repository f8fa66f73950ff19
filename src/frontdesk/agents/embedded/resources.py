"""Holds the parts of the built-in host that need the model library, and lists the models to choose from."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic_ai.models import known_model_names

from frontdesk.agents.embedded.compaction import CompactionRunner
from frontdesk.agents.embedded.conversation import TurnState, build_history
from frontdesk.agents.embedded.conversation_store import ConversationMaintenance, ConversationStore
from frontdesk.agents.embedded.store import AgentStore
from frontdesk.agents.embedded.tools import ToolBinder
from frontdesk.agents.embedded.turn import RequireOwnership, TurnRunner
from frontdesk.agents.host import HistoryItem, ModelChoice, Prompt
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import TurnWork
from frontdesk.db.engine import Database
from frontdesk.llm.access import ModelAccess, accepted_media, split_model_name
from frontdesk.llm.models import ModelPool, model_profile
from frontdesk.llm.tools import ToolProvider

MAX_MODELS = 40
EFFORTS = ("low", "medium", "high")
VERSION = re.compile(r"(?:(?<=[-o])|^)(\d{1,2})(?:[.-](\d{1,2}))?(?![\d])")
DATED_NAME = re.compile(r"-(?:\d{4}|\d{8}|\d{4}-\d{2}-\d{2})$")
# Aliases, models for a single purpose, and models that were replaced by newer ones.
LEFT_OUT = re.compile(
    r"latest|preview|search|research|computer-use|realtime|image|embedding|transcribe|tts|gpt-3|gpt-4(?![.o])"
)

ModelProfile = Callable[[str], Mapping[str, Any]]


def list_model_choices(access: ModelAccess, known: Sequence[str], profile: ModelProfile) -> Sequence[ModelChoice]:
    """The models to choose from, the default first; `profile` gives the library's description of a model."""
    providers = _providers(access)
    others = [name for provider in providers for name in newest_models(known, provider)[: MAX_MODELS // len(providers)]]
    names = list(dict.fromkeys([access.default_model, *others]))
    return [_model_choice(name, profile(name), access.image_models) for name in names[:MAX_MODELS]]


def newest_models(known: Sequence[str], provider: str) -> Sequence[str]:
    """A provider's models for conversations, the newest first."""
    named = {name: model for name in known for owner, model in [split_model_name(name)] if owner == provider}
    talking = [name for name, model in named.items() if not DATED_NAME.search(model) and not LEFT_OUT.search(model)]
    return sorted(talking, key=lambda name: (-_version(name)[0], -_version(name)[1], name))


def _providers(access: ModelAccess) -> Sequence[str]:
    # Another address may serve other models.
    openai = ["openai"] if access.openai_key and not access.openai_url else []
    anthropic = ["anthropic"] if access.anthropic_key else []
    found = [*anthropic, *openai]
    return sorted(found, key=lambda provider: provider != split_model_name(access.default_model)[0])


def _version(name: str) -> tuple[int, int]:
    found = VERSION.search(split_model_name(name)[1])
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _model_choice(name: str, profile: Mapping[str, Any], image_models: Sequence[str]) -> ModelChoice:
    images, sounds = accepted_media(name, image_models)
    return ModelChoice(
        name,
        split_model_name(name)[1] or name,
        EFFORTS if profile.get("supports_thinking") else (),
        images and bool(profile.get("supports_image_input", True)),
        sounds,
    )


class HostResources:
    """The parts of the built-in host that need the model library, which takes a second to import."""

    def __init__(
        self,
        database: Database,
        agents: AgentStore,
        access: ModelAccess,
        tool_binder: ToolBinder,
        own_tools: ToolProvider,
    ) -> None:
        self.conversations = ConversationStore(database)
        self.maintenance = ConversationMaintenance(database)
        self.models = ModelPool(access)
        self._access = access
        self._agents = agents
        self._tool_binder = tool_binder
        self._own_tools = own_tools

    def turn_work(self, prompt: Prompt, new: NewTurn, hold: RequireOwnership) -> TurnWork[TurnState]:
        runner = TurnRunner(
            prompt, new, self._agents, self.conversations, self.models, self._tool_binder, self._own_tools, hold
        )
        return TurnWork(runner.begin, runner.run, runner.end, runner.usage)

    def compaction_work(self, new: NewTurn, *, everyone: bool) -> TurnWork[TurnState]:
        """A turn that only sums up the conversation."""
        runner = CompactionRunner(new, self.conversations, self.models, everyone)
        return TurnWork(runner.begin, runner.run, spent=runner.usage)

    def model_choices(self) -> Sequence[ModelChoice]:
        """The models that a turn may use."""
        return list_model_choices(self._access, known_model_names(), model_profile)

    async def recent_history(self, conversation_id: str, limit: int) -> Sequence[HistoryItem]:
        """The newest messages, as events."""
        return build_history(*await self.conversations.newest(conversation_id, limit))

    async def turn_history(self, conversation_id: str, turn_id: str) -> Sequence[HistoryItem]:
        """The messages of one turn, as events."""
        history = build_history(*await self.conversations.messages_of_turn(conversation_id, turn_id))
        return [item for item in history if item.turn_id == turn_id]
