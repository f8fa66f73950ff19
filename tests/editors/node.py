"""Locates the published clients, and fetches them on first use."""

from pathlib import Path

from tests.support.environments import Packages

PACKAGES = Packages(Path(__file__).parent)


def schema() -> Path:
    """The schema of the protocol's first version from its SDK: the unstable one, which includes all of the stable."""
    return PACKAGES.install() / "@agentclientprotocol" / "sdk" / "schema" / "v1" / "schema.unstable.json"


def acpx() -> Path:
    return PACKAGES.install() / "acpx" / "dist" / "cli.js"


def example_client() -> Path:
    """The SDK's own example, from the last release line that publishes it."""
    return PACKAGES.install() / "acp-examples" / "dist" / "examples" / "client.js"
