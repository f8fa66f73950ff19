"""Which models a turn may be taken with: the default, then the newest of each provider that has a key here."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frontdesk.agents.host import ModelChoice
from frontdesk.loop.access import ModelAccess
from frontdesk.loop.senses import parted, senses

MOST = 40
EFFORTS = ("low", "medium", "high")
VERSION = re.compile(r"(?:(?<=[-o])|^)(\d{1,2})(?:[.-](\d{1,2}))?(?![\d])")
DATED = re.compile(r"-(?:\d{4}|\d{8}|\d{4}-\d{2}-\d{2})$")
# Aliases of others, models for one purpose, and those that others have long taken the place of.
LEFT_OUT = re.compile(
    r"latest|preview|search|research|computer-use|realtime|image|embedding|transcribe|tts|gpt-3|gpt-4(?![.o])"
)

Profile = Callable[[str], Mapping[str, Any]]


def choices(access: ModelAccess, known: Sequence[str], profile: Profile) -> Sequence[ModelChoice]:
    """The default first; `known` are names of models, and `profile` says what the library knows of one."""
    providers = _providers(access)
    others = [name for provider in providers for name in newest(known, provider)[: MOST // len(providers)]]
    names = list(dict.fromkeys([access.chosen, *others]))
    return [_choice(name, profile(name), access.image_models) for name in names[:MOST]]


def newest(known: Sequence[str], provider: str) -> Sequence[str]:
    """The models of a provider that one would talk with, the newest first."""
    named = {name: model for name in known for owner, model in [parted(name)] if owner == provider}
    talking = [name for name, model in named.items() if not DATED.search(model) and not LEFT_OUT.search(model)]
    return sorted(talking, key=lambda name: (-_version(name)[0], -_version(name)[1], name))


def _providers(access: ModelAccess) -> Sequence[str]:
    # Behind another address there is no telling which models are served.
    openai = ["openai"] if access.openai_key and not access.openai_url else []
    anthropic = ["anthropic"] if access.anthropic_key else []
    found = [*anthropic, *openai]
    return sorted(found, key=lambda provider: provider != parted(access.chosen)[0])


def _version(name: str) -> tuple[int, int]:
    found = VERSION.search(parted(name)[1])
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _choice(name: str, profile: Mapping[str, Any], image_models: Sequence[str]) -> ModelChoice:
    images, sounds = senses(name, image_models)
    return ModelChoice(
        name,
        parted(name)[1] or name,
        EFFORTS if profile.get("supports_thinking") else (),
        images and bool(profile.get("supports_image_input", True)),
        sounds,
    )
