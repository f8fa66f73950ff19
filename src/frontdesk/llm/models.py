"""Opens the model that an agent's model string names, with the keys of the settings."""

import re
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import anyio
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, infer_model_profile
from pydantic_ai.providers import Provider, infer_provider

from frontdesk.errors import Invalid
from frontdesk.llm.access import (
    ANTHROPIC_DEFAULT,
    OFFLINE,
    ModelAccess,
    accepted_media,
    split_model_name,
    takes_audio_by_chat,
)
from frontdesk.llm.scripted_models import CannedModel, CannedReplies, offline_model

FALLBACK_WINDOW = 100_000
ENVIRONMENT_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]+)`")


class ModelPool:
    """The opened models by name. Each has one connection pool for all turns, since the keys belong to Frontdesk."""

    def __init__(self, access: ModelAccess) -> None:
        self._access = access
        self._opened: dict[str, Model] = {}
        self._clients = AsyncExitStack()
        self._opening = anyio.Lock()
        self._canned: CannedModel | None = None

    @property
    def default(self) -> str:
        return self._access.default_model

    def accepted_media(self, name: str) -> tuple[bool, bool]:
        """Whether a model accepts images, and whether it accepts audio."""
        return accepted_media(name, self._access.image_models)

    async def open(self, name: str | None) -> Model:
        """The model of a string like `anthropic:claude-sonnet-5-5`, `openai/gpt-6-luna` or `offline`."""
        if self._canned is not None:
            return self._canned
        wanted = name or self.default
        if wanted not in self._opened:
            async with self._opening:
                await self._add(wanted)
        return self._opened[wanted]

    @contextmanager
    def use_canned_replies(self, lines: CannedReplies) -> Generator[None]:
        """Within this context, every model answers with these replies, and no provider is called."""
        self._canned = CannedModel(lines)
        try:
            yield
        finally:
            self._canned = None

    async def close(self) -> None:
        await self._clients.aclose()

    async def _add(self, name: str) -> None:
        if name not in self._opened:
            # In a thread, because a provider's library is slow to import.
            model = await anyio.to_thread.run_sync(self._open, name)
            await self._clients.enter_async_context(model)
            self._opened[name] = model

    def _open(self, name: str) -> Model:
        if name == OFFLINE:
            return offline_model()
        provider, model = split_model_name(name)
        if not model:
            raise Invalid(f"'{name}' is not a model; write PROVIDER:MODEL, e.g. {ANTHROPIC_DEFAULT}, or {OFFLINE}")
        if provider == "openai" and (self._access.openai_url or takes_audio_by_chat(provider, model)):
            provider = "openai-chat"
        try:
            return infer_model(f"{provider}:{model}", self._provider)
        except (UserError, ValueError) as error:
            raise Invalid(f"The model '{name}' cannot be used: {_unusable_reason(error)}") from error
        except ImportError as error:
            raise Invalid(f"The model '{name}' needs a package that is not installed: {error}") from error

    def _provider(self, name: str) -> Provider[Any]:
        access = self._access
        if name in ("openai", "openai-chat", "openai-responses") and (access.openai_key or access.openai_url):
            # The client is slow to import, and only turns on this API need it.
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

            # A private endpoint may need no key, but the client requires one.
            key = access.openai_key.get_secret_value() if access.openai_key else "none"
            return OpenAIProvider(api_key=key, base_url=access.openai_url)
        if name == "anthropic" and access.anthropic_key:
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            return AnthropicProvider(api_key=access.anthropic_key.get_secret_value(), base_url=access.anthropic_url)
        return infer_provider(name)


def _unusable_reason(error: Exception) -> str:
    """What to do about the error; the library's own message is about its code."""
    missing = ENVIRONMENT_VARIABLE.findall(str(error))
    return f"set {' or '.join(dict.fromkeys(missing))}" if missing else str(error).partition(". ")[0]


def context_window(model: Model) -> int:
    """The context window of a model in tokens."""
    return model.context_window or FALLBACK_WINDOW


def model_profile(name: str) -> Mapping[str, Any]:
    """The library's profile of a model; empty where the provider's library is not installed."""
    try:
        return infer_model_profile(":".join(split_model_name(name)))
    except ImportError:
        return {}
