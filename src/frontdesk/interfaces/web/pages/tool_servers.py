"""Lists, adds, removes and refreshes tool servers."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

import anyio

from frontdesk.errors import Conflict, Denied, Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.interfaces.web.model import PageContent, PageRedirect, PageRequest, server_path
from frontdesk.text import list_first
from frontdesk.tools.crawler import CrawlStage, CrawlStep
from frontdesk.tools.servers import VARIABLE_REFERENCE, ServerSpec, Transport
from frontdesk.tools.service import list_permitted_servers

# Option names, paths, scripts, and scoped packages. Keys and passwords look different.
HARMLESS_ARGUMENT = re.compile(
    r"-[A-Za-z]|--[a-z][a-z-]*|(\.{0,2}|~)/[\w./@ -]+|[\w-]+\.(py|js|mjs|cjs|ts|jar)|@[a-z\d-]+/[a-z\d.-]+(@[\w.]+)?"
)
# The word after these options is run. The word after any other option is its value and may be a password.
PACKAGE_OPTIONS = frozenset({"-m", "-y", "--yes", "--from", "--directory"})
# The package or module that is run: the first word that is neither an option nor a value. Later words may be secrets.
PACKAGE_NAME = re.compile(r"[a-z]+([-_.][a-z]+)*(@[\w.]+)?")
HIDDEN_ARGUMENT = "…"
LONGEST_ADDRESS = 120


def server_address(spec: ServerSpec) -> str:
    """The address without possible secrets, or the command with its harmless arguments."""
    if spec.transport is not Transport.STDIO:
        return spec.place
    return " ".join((spec.place, *_shown_arguments(spec.args)))


def _shown_arguments(arguments: Sequence[str]) -> Iterator[str]:
    first = True
    for before, word in zip(("", *arguments), arguments, strict=False):
        is_value = before.startswith("-") and before not in PACKAGE_OPTIONS and not word.startswith("-")
        known = HARMLESS_ARGUMENT.fullmatch(word) or (first and PACKAGE_NAME.fullmatch(word))
        yield word if known and len(word) <= LONGEST_ADDRESS and not is_value else HIDDEN_ARGUMENT
        first = first and word.startswith("-")


COMMAND_KIND = "command"
SERVER_KINDS = (("http", "An address (HTTP)"), ("sse", "An address (older HTTP+SSE)"), (COMMAND_KIND, "A command"))
ONLY_FROM_THIS_MACHINE = (
    "A command runs on the machine of the server, and ${…} is read from its environment, so both are accepted only "
    "from that machine: frontdesk tools add NAME -- COMMAND"
)


def parse_server(form: Mapping[str, str], caller: Caller) -> ServerSpec:
    """The server of the form. Commands and ${…} are accepted only from this machine."""
    kind = form.get("kind", "http")
    words = _split_command(form.get("where", "")) if kind == COMMAND_KIND else []
    spec = ServerSpec(
        form.get("name", "").strip(),
        Transport.STDIO if kind == COMMAND_KIND else Transport.SSE if kind == "sse" else Transport.HTTP,
        "" if kind == COMMAND_KIND else form.get("where", "").strip(),
        words[0] if words else "",
        tuple(words[1:]),
        dict(_parse_pairs(form.get("env", ""), "=", "NAME=value")) if kind == COMMAND_KIND else {},
        {} if kind == COMMAND_KIND else dict(_parse_pairs(form.get("headers", ""), ":", "Name: value")),
        user_token=form.get("user_token") == "on",
        description=form.get("description", "").strip(),
        hold_changes=True if form.get("hold_changes") == "on" else None,
    )
    if not caller.local and (kind == COMMAND_KIND or _has_references(spec)):
        raise Denied(ONLY_FROM_THIS_MACHINE)
    return spec


def _has_references(spec: ServerSpec) -> bool:
    return any(VARIABLE_REFERENCE.search(text) for text in (spec.url, *spec.headers.values()))


def _split_command(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Invalid("The command cannot be read: a quote in it is not closed") from error


def _parse_pairs(text: str, separator: str, form: str) -> list[tuple[str, str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line.partition(separator) for line in lines]
    for number, (name, between, _) in enumerate(found, 1):
        if not between or not name.strip():
            # The error does not quote the line, which may contain a secret.
            raise Invalid(f"Line {number} is not of the form {form}")
    return [(name.strip(), value.strip()) for name, _, value in found]


SERVERS_PER_PAGE = 50
# How long the page waits for servers before it reports the progress.
REFRESH_SECONDS = 20
MOST_NAMED = 5
# The fields that a refused form keeps. Headers and variables may be secrets.
FORM_FIELDS = ("name", "where", "kind", "description")


async def list_servers(request: PageRequest) -> PageContent:
    """The servers by name, page by page."""
    states = sorted(await list_permitted_servers(request.app.tools, request.caller), key=lambda state: state.name)
    after = request.query.get("after", "")
    left = [state for state in states if state.name > after]
    context = {
        "states": left[:SERVERS_PER_PAGE],
        "count": len(states),
        "after": after,
        "next": left[SERVERS_PER_PAGE - 1].name if len(left) > SERVERS_PER_PAGE else "",
        "progress": request.app.tools.catalogue.progress(),
        "server_at": server_path,
        "where": server_address,
    }
    return PageContent("tools/servers.html", "Tool servers", context)


async def show_server(request: PageRequest) -> PageContent:
    name = request.path_params["name"]
    state = next(
        (one for one in await list_permitted_servers(request.app.tools, request.caller) if one.name == name), None
    )
    if state is None:
        raise NotFound(f"There is no tool server '{name[:60]}'; the list shows all servers")
    return PageContent("tools/server.html", state.name, {"state": state, "where": server_address(state.spec)})


async def show_form(request: PageRequest) -> PageContent:
    return _form_page({**request.query}, "")


async def add_server(request: PageRequest) -> PageRedirect | PageContent:
    """Add a server and list its tools. A server that does not answer is removed again, unless the form keeps it."""
    try:
        spec = parse_server(request.form, request.caller)
        force = request.form.get("force") == "on"
        end = await request.app.tools.administration.add_server(request.caller, spec, force=force)
    except (Invalid, Conflict) as error:
        return _form_page(request.form, str(error), 400)
    return PageRedirect(server_path(spec.name), f"Added {spec.name}: {_describe_step(end)}.")


async def remove_server(request: PageRequest) -> PageRedirect:
    name = request.form.get("name", "")
    await request.app.tools.administration.remove_server(request.caller, name)
    return PageRedirect("/tools/servers", f"Removed {name} and its tools.")


async def refresh_servers(request: PageRequest) -> PageRedirect:
    """List the tools of one server or of all servers, within the time that the page waits."""
    name, ends = request.form.get("name", ""), list[CrawlStep]()

    def note(step: CrawlStep) -> None:
        if step.stage is not CrawlStage.STARTED:
            ends.append(step)

    with anyio.move_on_after(REFRESH_SECONDS) as limit:
        await request.app.tools.administration.refresh(request.caller, [name] if name else None, note)
    late = " The others did not answer in time; they are asked again automatically." if limit.cancelled_caught else ""
    return PageRedirect(server_path(name) if name else "/tools/servers", _refresh_summary(ends) + late)


def _form_page(form: Mapping[str, str], wrong: str, status: int = 200) -> PageContent:
    kept = {field: form.get(field, "") for field in FORM_FIELDS}
    return PageContent(
        "tools/add.html", "Add a tool server", {"form": kept, "kinds": SERVER_KINDS, "wrong": wrong}, status
    )


def _refresh_summary(ends: Sequence[CrawlStep]) -> str:
    if len(ends) == 1:
        return f"{ends[0].server}: {_describe_step(ends[0])}."
    failed = [step.server for step in ends if step.stage is CrawlStage.FAILED]
    words = f"{len(ends)} servers were asked: {len(ends) - len(failed)} answered"
    return f"{words}, {len(failed)} failed ({list_first(failed, MOST_NAMED)})." if failed else f"{words}."


def _describe_step(step: CrawlStep) -> str:
    if step.stage is CrawlStage.FAILED:
        return f"it failed: {step.message}"
    if step.stage is CrawlStage.LISTED:
        return f"{step.tools} tools" + (f"; {step.message}" if step.message else "")
    return step.message or "another process is asking it"
