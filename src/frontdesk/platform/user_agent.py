"""How requests to the platform call themselves, in the form that it knows."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from frontdesk.identity.outbound import header_value

RUNTIME = "microsoft-agents-a365-runtime"


def get_user_agent_header(orchestrator: str | None = None) -> str:
    """`Agent365SDK/2.0.0 (Linux; Python 3.12.1; OpenAI)`; the version is `unknown` where no SDK is installed."""
    # What begins or ends a comment would do so here.
    named = header_value((orchestrator or "").translate(str.maketrans("", "", "()\\")))
    return f"{_product()}{f'; {named}' if named else ''})"


@cache
def _product() -> str:
    try:
        found = version(RUNTIME)
    except PackageNotFoundError:
        found = "unknown"
    return f"Agent365SDK/{found} ({platform.system()}; Python {platform.python_version()}"
