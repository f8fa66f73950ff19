"""The token that a server of Agent 365 has while an agent is being developed: what a variable holds."""

from collections.abc import Mapping

from frontdesk.loop.mcp.model import bare_token

# The first that says anything counts; where none does, this is development.
ENVIRONMENTS = ("PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT")
VARIABLE = "BEARER_TOKEN"


def development_token(server: str, environ: Mapping[str, str]) -> str | None:
    """`BEARER_TOKEN_<NAME>`, else `BEARER_TOKEN`, without a word before it; none in production."""
    said = next((environ[name] for name in ENVIRONMENTS if environ.get(name)), "development")
    if said.lower() != "development":
        return None
    return bare_token(environ.get(f"{VARIABLE}_{server.upper()}") or environ.get(VARIABLE))
