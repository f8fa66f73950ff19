"""Which model an agent's model string names, opened with the keys that are set."""

import re
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import anyio
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, infer_model_profile
from pydantic_ai.providers import Provider, infer_provider

from frontdesk.errors import Invalid
from frontdesk.loop.access import OFFLINE, WHEN_ANTHROPIC, ModelAccess
from frontdesk.loop.offline import offline_model
from frontdesk.loop.rehearsed import Lines, RehearsedModel
from frontdesk.loop.senses import hears_by_chat, parted, senses

FALLBACK_WINDOW = 100_000
VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]+)`")


class Models:
    """Opened models by name: one connection pool each, shared by all turns, since the keys are the house's own."""

    def __init__(self, access: ModelAccess) -> None:
        self._access = access
        self._opened: dict[str, Model] = {}
        self._clients = AsyncExitStack()
        self._opening = anyio.Lock()
        self._rehearsed: RehearsedModel | None = None

    @property
    def default(self) -> str:
        return self._access.chosen

    def senses(self, name: str) -> tuple[bool, bool]:
        """Whether a model takes pictures, and whether it takes sounds."""
        return senses(name, self._access.image_models)

    async def open(self, name: str | None) -> Model:
        """The model of a string like `anthropic:claude-sonnet-5-5`, `openai/gpt-6-luna` or `offline`."""
        if self._rehearsed is not None:
            return self._rehearsed
        wanted = name or self.default
        if wanted not in self._opened:
            async with self._opening:
                await self._add(wanted)
        return self._opened[wanted]

    @contextmanager
    def rehearsing(self, lines: Lines) -> Generator[None]:
        """Within it no provider is asked, whichever model is named: turns are acted out from these lines."""
        self._rehearsed = RehearsedModel(lines)
        try:
            yield
        finally:
            self._rehearsed = None

    async def close(self) -> None:
        await self._clients.aclose()

    async def _add(self, name: str) -> None:
        if name not in self._opened:
            # Aside: a provider's library is slow to import.
            model = await anyio.to_thread.run_sync(self._open, name)
            await self._clients.enter_async_context(model)
            self._opened[name] = model

    def _open(self, name: str) -> Model:
        if name == OFFLINE:
            return offline_model()
        provider, model = parted(name)
        if not model:
            raise Invalid(f"'{name}' is not a model; write PROVIDER:MODEL, e.g. {WHEN_ANTHROPIC}, or {OFFLINE}")
        if provider == "openai" and (self._access.openai_url or hears_by_chat(provider, model)):
            provider = "openai-chat"
        try:
            return infer_model(f"{provider}:{model}", self._provider)
        except (UserError, ValueError) as error:
            raise Invalid(f"The model '{name}' cannot be used: {_reason(error)}") from error
        except ImportError as error:
            raise Invalid(f"The model '{name}' needs a package that is not installed: {error}") from error

    def _provider(self, name: str) -> Provider[Any]:
        access = self._access
        if name in ("openai", "openai-chat", "openai-responses") and (access.openai_key or access.openai_url):
            # The client is slow to import, and only turns on this API need it.
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

            # An endpoint of one's own may need no key; the client insists on one.
            key = access.openai_key.get_secret_value() if access.openai_key else "none"
            return OpenAIProvider(api_key=key, base_url=access.openai_url)
        if name == "anthropic" and access.anthropic_key:
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            return AnthropicProvider(api_key=access.anthropic_key.get_secret_value(), base_url=access.anthropic_url)
        return infer_provider(name)


def _reason(error: Exception) -> str:
    """What to do about it; the library would speak of its own code."""
    missing = VARIABLE.findall(str(error))
    return f"set {' or '.join(dict.fromkeys(missing))}" if missing else str(error).partition(". ")[0]


def window_of(model: Model) -> int:
    """How many tokens a model takes in."""
    return model.context_window or FALLBACK_WINDOW


def profile_of(name: str) -> Mapping[str, Any]:
    """What is known of a model by its name; nothing where its provider's library is not installed."""
    try:
        return infer_model_profile(":".join(parted(name)))
    except ImportError:
        return {}
