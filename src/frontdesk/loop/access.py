"""Which models may be used: the default, and the keys and addresses that are set."""

from dataclasses import dataclass

from pydantic import SecretStr

from frontdesk.settings import Settings

OFFLINE = "offline"
WHEN_ANTHROPIC = "anthropic:claude-sonnet-5-5"
WHEN_OPENAI = "openai:gpt-6-luna"


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
    def of(cls, settings: Settings) -> "ModelAccess":
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
        """What has to be imported to reach the providers that have a key here."""
        openai = self.openai_key or self.openai_url
        return (
            *(("pydantic_ai.models.openai",) if openai else ()),
            *(("pydantic_ai.models.anthropic",) if self.anthropic_key else ()),
        )

    @property
    def chosen(self) -> str:
        """The model of an agent that names none."""
        if self.default:
            return self.default
        if self.anthropic_key:
            return WHEN_ANTHROPIC
        # Behind another address there is no telling which models are served.
        if self.openai_key and not self.openai_url:
            return WHEN_OPENAI
        return OFFLINE
