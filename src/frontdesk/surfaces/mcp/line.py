"""The line to a caller while its call runs: progress goes back along it, and the caller's own token came by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from frontdesk.surfaces.mcp.signals import Exchange, Progress, metadata_of


@dataclass(frozen=True, slots=True)
class Line:
    """`progress` is None where the client did not ask for it; `token` is None where it showed a key, or nothing.

    `version` is the revision of the protocol that the client speaks, `params` all that the call said. `session_id` is
    the session in which it came, `proof` what proved the person or agent, `trusted` whether the client may name people,
    `only_for` the one person whom it may name although it is not, `carried` whether the person was proven by what came
    with this very call. `passed_over` says what was wrong with an agent id that was taken for none.
    """

    version: str
    progress: Progress | None = None
    token: SecretStr | None = None
    params: Mapping[str, object] = field(default_factory=dict[str, object])
    session_id: str | None = None
    proof: SecretStr | None = None
    trusted: bool = False
    only_for: str | None = None
    carried: bool = False
    passed_over: str | None = None

    @property
    def metadata(self) -> Mapping[str, object]:
        return metadata_of(self.params)


def line_of(exchange: Exchange) -> Line:
    """The line of one `tools/call`."""
    visit = exchange.visit
    return Line(
        exchange.version,
        exchange.progress,
        visit.token,
        exchange.params,
        visit.session_id,
        visit.proof,
        visit.trusted,
        visit.only_for,
        visit.carried,
    )
