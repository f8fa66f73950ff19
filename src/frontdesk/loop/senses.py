"""What a model can see and hear, told from its name alone, for those who must know before any library is loaded.

A model that nothing is known of takes text alone: whoever runs it names it in `FRONTDESK_IMAGE_MODELS` if it takes
pictures.
"""

import re
from collections.abc import Collection

from frontdesk.loop.access import OFFLINE

# What every API takes that takes any.
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
SOUNDS = frozenset({"audio/wav", "audio/mpeg"})
# Providers without one model that takes pictures, whatever the model is called elsewhere.
BLIND = frozenset({"cerebras", "cohere", "deepseek"})
# Families of models that take pictures, whoever serves them.
SEEING = re.compile(
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
# Of the same families, but made for sound or for one purpose.
NOT_SEEING = re.compile(r"audio|realtime|transcribe|tts|search|embedding|codex-mini")
HEARING = frozenset({"google", "google-cloud", "google-gla", "google-vertex"})
HEARING_FAMILY = "gemini"
HEARING_NAMES = "audio"


def senses(name: str, image_models: Collection[str] = ()) -> tuple[bool, bool]:
    """Whether a model takes pictures, and whether it takes sounds; of `image_models` somebody said that they do."""
    if name == OFFLINE:
        # It answers whatever it is sent.
        return True, True
    provider, model = parted(name)
    known = provider not in BLIND and bool(SEEING.search(model.lower())) and not NOT_SEEING.search(model.lower())
    images = known or (provider, model) in map(parted, image_models)
    hears = provider in HEARING and HEARING_FAMILY in model
    return images, hears or hears_by_chat(provider, model)


def hears_by_chat(provider: str, model: str) -> bool:
    """Whether this is a model of OpenAI's for sounds, which only the older of its two APIs takes."""
    return provider in ("openai", "openai-chat") and HEARING_NAMES in model


def parted(name: str) -> tuple[str, str]:
    """`PROVIDER:MODEL` or `PROVIDER/MODEL` in two; nothing for the model where the name is neither."""
    provider, _, model = name.partition(":") if ":" in name else name.partition("/")
    return provider, model
