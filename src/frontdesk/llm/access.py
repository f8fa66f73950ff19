"""Decides which models can be used, with which keys, and which of them accept images and audio.

An unknown model gets only text; `FRONTDESK_IMAGE_MODELS` names further models that accept images.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from pydantic import SecretStr

from frontdesk.settings import Settings

OFFLINE = "offline"
ANTHROPIC_DEFAULT = "anthropic:claude-sonnet-5-5"
OPENAI_DEFAULT = "openai:gpt-6-luna"


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The default model, and the keys and addresses of the two APIs that have settings of their own."""

    default: str | None = None
    openai_key: SecretStr | None = None
    openai_url: str | None = None
    anthropic_key: SecretStr | None = None
    anthropic_url: str | None = None
    image_models: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> "ModelAccess":
        return cls(
            settings.model,
            settings.openai_api_key,
            settings.openai_base_url,
            settings.anthropic_api_key,
            settings.anthropic_base_url,
            settings.image_models,
        )

    @property
    def libraries(self) -> tuple[str, ...]:
        """The modules to import for the providers that have a key here."""
        openai = self.openai_key or self.openai_url
        return (
            *(("pydantic_ai.models.openai",) if openai else ()),
            *(("pydantic_ai.models.anthropic",) if self.anthropic_key else ()),
        )

    @property
    def default_model(self) -> str:
        """The model of agents that have no model of their own."""
        if self.default:
            return self.default
        if self.anthropic_key:
            return ANTHROPIC_DEFAULT
        # Another address may serve other models.
        if self.openai_key and not self.openai_url:
            return OPENAI_DEFAULT
        return OFFLINE


# The types that every API with images or audio accepts.
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO_TYPES = frozenset({"audio/wav", "audio/mpeg"})
# Providers without any model that accepts images, whatever the model's name.
PROVIDERS_WITHOUT_IMAGES = frozenset({"cerebras", "cohere", "deepseek"})
# Families of models that accept images, with any provider.
IMAGE_MODELS = re.compile(
    r"""
    claude-(?!2|instant|v) | gemini-(?!embedding|1\.0)
    | gpt-(?:4o|4\.[1-9]|4-turbo|4-vision|[5-9]|\d\d) | chatgpt-4o
    | (?:^|/)(?:(?:o1|o3)(?!-mini|-preview|\d)|o4-mini)
    | grok-(?:[4-9]|.*vision) | pixtral | llama-?4 | llama-?3\.2-(?:11|90)b | gemma-?3-?:?(?:4|12|27)b
    | llava | moondream | minicpm-v | internvl | nova-(?:lite|pro|premier)
    | (?<![a-z])(?:vision|multimodal|vl)(?![a-z])
    """,
    re.VERBOSE,
)
# Models of the same families that are made for audio or for a single purpose.
NOT_IMAGE_MODELS = re.compile(r"audio|realtime|transcribe|tts|search|embedding|codex-mini")
AUDIO_PROVIDERS = frozenset({"google", "google-cloud", "google-gla", "google-vertex"})
AUDIO_FAMILY = "gemini"
AUDIO_NAME = "audio"


def accepted_media(name: str, image_models: Collection[str] = ()) -> tuple[bool, bool]:
    """Whether a model accepts images, and whether it accepts audio; `image_models` are known to accept images."""
    if name == OFFLINE:
        # The offline model answers anything.
        return True, True
    provider, model = split_model_name(name)
    known = (
        provider not in PROVIDERS_WITHOUT_IMAGES
        and bool(IMAGE_MODELS.search(model.lower()))
        and not NOT_IMAGE_MODELS.search(model.lower())
    )
    images = known or (provider, model) in map(split_model_name, image_models)
    hears = provider in AUDIO_PROVIDERS and AUDIO_FAMILY in model
    return images, hears or takes_audio_by_chat(provider, model)


def takes_audio_by_chat(provider: str, model: str) -> bool:
    """Whether this is an audio model of OpenAI, which only the older of its two APIs serves."""
    return provider in ("openai", "openai-chat") and AUDIO_NAME in model


def split_model_name(name: str) -> tuple[str, str]:
    """Split `PROVIDER:MODEL` or `PROVIDER/MODEL`; the model is empty if the name has neither form."""
    provider, _, model = name.partition(":") if ":" in name else name.partition("/")
    return provider, model
