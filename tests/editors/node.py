"""Where the published clients are, fetched on first use."""

from pathlib import Path

from tests.support.environments import Packages

PACKAGES = Packages(Path(__file__).parent)


def schema() -> Path:
    """The protocol's first version as its SDK ships it: the unstable one, which has all of the stable."""
    return PACKAGES.install() / "@agentclientprotocol" / "sdk" / "schema" / "v1" / "schema.unstable.json"


def acpx() -> Path:
    return PACKAGES.install() / "acpx" / "dist" / "cli.js"


def example_client() -> Path:
    """The SDK's own example, in the last line of releases that publish it."""
    return PACKAGES.install() / "acp-examples" / "dist" / "examples" / "client.js"
