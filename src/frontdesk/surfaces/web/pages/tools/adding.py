"""A tool server as a form tells of it; pure."""

import shlex
from collections.abc import Mapping

from frontdesk.errors import Denied, Invalid
from frontdesk.identity.model import Caller
from frontdesk.tools.catalogue.servers import REFERENCE, ServerSpec, Transport

COMMAND = "command"
KINDS = (("http", "An address (HTTP)"), ("sse", "An address (the old HTTP+SSE)"), (COMMAND, "A command"))
NOT_FROM_AFAR = (
    "A command runs on the machine of the server, and ${…} is read from its environment; so both are taken only from "
    "whoever sits at that machine: frontdesk tools add NAME -- COMMAND"
)


def spec_of(form: Mapping[str, str], caller: Caller) -> ServerSpec:
    """The server that was filled in; what would run or read something here is taken from this machine alone."""
    kind = form.get("kind", "http")
    words = _words(form.get("where", "")) if kind == COMMAND else []
    spec = ServerSpec(
        form.get("name", "").strip(),
        Transport.STDIO if kind == COMMAND else Transport.SSE if kind == "sse" else Transport.HTTP,
        "" if kind == COMMAND else form.get("where", "").strip(),
        words[0] if words else "",
        tuple(words[1:]),
        dict(_pairs(form.get("env", ""), "=", "NAME=value")) if kind == COMMAND else {},
        {} if kind == COMMAND else dict(_pairs(form.get("headers", ""), ":", "Name: value")),
        user_token=form.get("user_token") == "on",
        description=form.get("description", "").strip(),
        hold_changes=True if form.get("hold_changes") == "on" else None,
    )
    if not caller.local and (kind == COMMAND or _refers(spec)):
        raise Denied(NOT_FROM_AFAR)
    return spec


def _refers(spec: ServerSpec) -> bool:
    return any(REFERENCE.search(text) for text in (spec.url, *spec.headers.values()))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Invalid("The command cannot be read: a quote in it is not closed") from error


def _pairs(text: str, separator: str, form: str) -> list[tuple[str, str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line.partition(separator) for line in lines]
    for number, (name, between, _) in enumerate(found, 1):
        if not between or not name.strip():
            # Not the line itself: what it holds may be a secret.
            raise Invalid(f"Line {number} is not of the form {form}")
    return [(name.strip(), value.strip()) for name, _, value in found]
