"""What a model can see and hear, told from its name alone, for those who must know before any library is loaded."""

from frontdesk.loop.access import OFFLINE

# What every API takes that takes any.
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
SOUNDS = frozenset({"audio/wav", "audio/mpeg"})
# Providers without one model that takes pictures.
BLIND = frozenset({"cerebras", "cohere", "deepseek"})
BLIND_MODELS = ("gpt-3.5", "o1-mini", "o3-mini", "davinci", "babbage")
# The one of its line that came before pictures.
BLIND_NAMES = frozenset({"gpt-4", "gpt-4-0314", "gpt-4-0613"})
HEARING = frozenset({"google", "google-cloud", "google-gla", "google-vertex"})
HEARING_NAMES = "audio"


def senses(name: str) -> tuple[bool, bool]:
    """Whether a model takes pictures, and whether it takes sounds."""
    if name == OFFLINE:
        # It answers whatever it is sent.
        return True, True
    provider, model = parted(name)
    images = provider not in BLIND and model not in BLIND_NAMES and not model.startswith(BLIND_MODELS)
    return images, provider in HEARING or hears_by_chat(provider, model)


def hears_by_chat(provider: str, model: str) -> bool:
    """Whether this is a model of OpenAI's for sounds, which only the older of its two APIs takes."""
    return provider in ("openai", "openai-chat") and HEARING_NAMES in model


def parted(name: str) -> tuple[str, str]:
    """`PROVIDER:MODEL` or `PROVIDER/MODEL` in two; nothing for the model where the name is neither."""
    provider, _, model = name.partition(":") if ":" in name else name.partition("/")
    return provider, model
