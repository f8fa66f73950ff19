"""What a command finds in its environment: ours, without what is secret and without what would wait for a key."""

from collections.abc import Mapping

from frontdesk.settings import Settings, variables

OURS = ("FRONTDESK_", "LETTA_")
# OAUTH_CLIENTS is a list with secrets in it. The other one is of a product that Frontdesk replaces.
HOLDS_SECRETS = frozenset({"OAUTH_CLIENTS", "SUPABASE_SERVICE_ROLE_KEY"})
PROVIDERS = frozenset(
    {
        "ANTHROPIC",
        "AZURE_OPENAI",
        "CEREBRAS",
        "COHERE",
        "CO",
        "DEEPSEEK",
        "FIREWORKS",
        "GEMINI",
        "GOOGLE",
        "GROQ",
        "MISTRAL",
        "OPENAI",
        "OPENROUTER",
        "TOGETHER",
        "XAI",
    }
)
PLAIN = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}


def for_command(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command, by that of this process."""
    return {name: value for name, value in ours.items() if not is_secret(name)} | PLAIN


def is_secret(name: str) -> bool:
    """Whether a variable is none of a command's business; settings are read in either case."""
    upper = name.upper()
    return (
        upper.startswith(OURS)
        or upper in SECRETS
        or (upper.endswith("_API_KEY") and upper.removesuffix("_API_KEY") in PROVIDERS)
    )


def _secret_settings() -> frozenset[str]:
    fields = Settings.model_fields.items()
    secret = (name for name, field in fields if "SecretStr" in str(field.annotation))
    return frozenset(variable.upper() for name in secret for variable in variables(name))


SECRETS = HOLDS_SECRETS | _secret_settings()
