"""How an agent of Letta's proves who it is to Frontdesk: a header that Letta fills with the agent's own key."""

import re
from collections.abc import Mapping
from datetime import datetime

from frontdesk.identity import keys
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.store import KeyStore

SECRET = "FRONTDESK_KEY"  # noqa: S105 - the name of a secret, not one
# Letta lists our tools on nobody's behalf; what it says then may list them and do no more.
REGISTRAR = "letta-registration"
AUTHORIZATION = "Authorization"
TEMPLATE = re.compile(r"Bearer \{\{ FRONTDESK_KEY \| (?P<key>\S+) \}\}")


def headers_with(key: str) -> dict[str, str]:
    """Letta puts the agent's own secret into the header; the key stands in where it asks for no agent."""
    return {AUTHORIZATION: f"Bearer {{{{ {SECRET} | {key} }}}}"}


def key_in(headers: Mapping[str, str] | None) -> str | None:
    """The key that stands in, if these are headers of ours."""
    found = TEMPLATE.fullmatch((headers or {}).get(AUTHORIZATION, ""))
    return found["key"] if found else None


async def working(store: KeyStore, text: str | None, agent_id: str, now: datetime) -> ApiKey | None:
    """The key behind a text, if it is one of ours for this agent and works."""
    parsed = keys.parse(text or "")
    key = await store.get(parsed[0]) if parsed else None
    if parsed is None or key is None or key.agent_id != agent_id or not key.matches(parsed[1]):
        return None
    return key if key.works_at(now) else None
