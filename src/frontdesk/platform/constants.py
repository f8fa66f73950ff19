"""The names that requests to the platform use; as its SDK has them, so that code that names them finds them here."""


class Constants:
    """As the SDK groups them."""

    class Headers:
        """Names of headers, and the word before a token."""

        AUTHORIZATION = "Authorization"
        BEARER_PREFIX = "Bearer"
        USER_AGENT = "User-Agent"
        AGENT_ID = "x-ms-agentid"
        CHANNEL_ID = "x-ms-channel-id"
        SUBCHANNEL_ID = "x-ms-subchannel-id"
        CORRELATION_ID = "x-ms-correlation-id"


HEADER_AGENT_ID = Constants.Headers.AGENT_ID
HEADER_CHANNEL_ID = Constants.Headers.CHANNEL_ID

# The application that the servers of the first kind share; its tokens are good for discovery too.
SHARED_APP_ID = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1"
SHARED_APP_URI = f"api://{SHARED_APP_ID}"
MANIFEST_NAME = "ToolingManifest.json"
