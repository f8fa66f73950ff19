"""The line to a caller while its call runs: progress goes back along it, and the caller's own token came by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from frontdesk.surfaces.mcp.signals import Exchange, Progress, metadata_of


@dataclass(frozen=True, slots=True)
class Line:
    """`progress` is None where the client did not ask for it; `token` is None where it showed a key, or nothing.

    `version` is the revision of the protocol that the client speaks, `params` all that the call said.
    """

    version: str
    progress: Progress | None = None
    token: SecretStr | None = None
    params: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def metadata(self) -> Mapping[str, object]:
        return metadata_of(self.params)


def line_of(exchange: Exchange) -> Line:
    """The line of one `tools/call`."""
    return Line(exchange.version, exchange.progress, exchange.visit.token, exchange.params)
