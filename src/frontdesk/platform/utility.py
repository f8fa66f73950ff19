"""The SDK's own grouping of functions, for code that finds them there."""

from frontdesk.platform import application, user_agent, who


class Utility:
    """As the SDK's runtime has them."""

    get_agent_id_from_token = staticmethod(who.get_agent_id_from_token)
    get_app_id_from_token = staticmethod(who.get_app_id_from_token)
    resolve_agent_identity = staticmethod(who.resolve_agent_identity)
    get_user_agent_header = staticmethod(user_agent.get_user_agent_header)
    get_application_name = staticmethod(application.get_application_name)
    reset_application_name_cache = staticmethod(application.reset_application_name_cache)
