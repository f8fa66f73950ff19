"""The line to a caller while its call runs: progress goes back along it, and the caller's own token came by it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import SecretStr

from frontdesk.identity.keys import PREFIX
from frontdesk.surfaces.gate import presented
from frontdesk.surfaces.mcp.signals import Context
from frontdesk.surfaces.visit import Visit


@dataclass(frozen=True, slots=True)
class Line:
    """`progress` is None where the client did not ask for it; `token` is None where it showed a key, or nothing.

    `version` is the revision of the protocol that the client speaks.
    """

    version: str
    progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None
    token: SecretStr | None = None


def line_of(ctx: Context, visit: Visit) -> Line:
    """The line of one `tools/call`."""
    wanted = ctx.meta is not None and ctx.meta.get("progress_token") is not None
    return Line(ctx.protocol_version, ctx.session.report_progress if wanted else None, _token(visit))


def _token(visit: Visit) -> SecretStr | None:
    """The person's token, which the gate has checked; a key of ours is good nowhere else."""
    text = presented(visit.said)
    return SecretStr(text) if text and not text.startswith(PREFIX) else None
