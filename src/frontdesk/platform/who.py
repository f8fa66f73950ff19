"""Who a token or a turn says is calling. Nothing of it is proven: it is for logs and addresses, never for rights."""

from uuid import UUID

from frontdesk.identity.outbound import agent_id_from_token
from frontdesk.platform.turns import blueprint_id, said

NOBODY = str(UUID(int=0))
APPLICATION = ("appid", "azp")

__all__ = ["blueprint_id", "get_agent_id_from_token", "get_app_id_from_token", "resolve_agent_identity"]


def get_agent_id_from_token(token: str | None) -> str:
    """The best agent id in a token's claims (`xms_par_app_azp`, `appid`, `azp`); empty when there is none."""
    return agent_id_from_token(token)


def get_app_id_from_token(token: str | None) -> str:
    """The application that a token was made for: a GUID of zeros without a token, empty where it names none."""
    if not token or not token.strip():
        return NOBODY
    return agent_id_from_token(token, APPLICATION)


def resolve_agent_identity(context: object, auth_token: str | None) -> str:
    """The agent whose servers are asked for: the turn's own instance, else the application of the token."""
    try:
        instance = _instance(said(context, "activity"))
    # The turn is somebody else's code, and what it raises does not change who holds the token.
    except Exception:  # noqa: BLE001
        instance = None
    return get_app_id_from_token(auth_token) if instance is None else instance


def _instance(activity: object) -> str | None:
    """The instance that an agentic turn is for, empty where it does not say; None of any other turn."""
    agentic = getattr(activity, "is_agentic_request", None)
    if not callable(agentic) or not agentic():
        return None
    instance = getattr(activity, "get_agentic_instance_id", None)
    if not callable(instance):
        return None
    found = instance()
    return found if isinstance(found, str) else ""
