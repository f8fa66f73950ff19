"""`frontdesk tools rights`: who may use which tools; and `frontdesk tools forget`."""

import sys
from fnmatch import fnmatchcase

from cyclopts import App as Command

from frontdesk.app import App
from frontdesk.errors import ConfigurationError, NotFound
from frontdesk.identity.model import Caller
from frontdesk.surfaces.cli.chat.plain import line
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.cli.tools.opening import Flag, with_servers
from frontdesk.surfaces.cli.words import table
from frontdesk.tools.learning.model import LOCAL, tenant_of
from frontdesk.tools.model import SEPARATOR
from frontdesk.tools.rights.model import Effect, Rule

command = Command(name="rights", help="Who may use which tools. Without any rule, everybody may use everything.")


@command.default
def show() -> None:
    """List the rules."""
    rules = with_app(lambda app: app.tools.allowed.rules())
    if not rules:
        print("No rules: everybody may use every tool. Add one: frontdesk tools rights deny SUBJECT PATTERN")
        return
    rows = [(rule.id, line(rule.subject), rule.effect, line(rule.pattern)) for rule in rules]
    print(table(("id", "who", "rule", "tools"), rows))


@command.command
def allow(subject: str, pattern: str) -> None:
    """Let somebody use these tools, and no others but those that other rules allow.

    Parameters
    ----------
    subject
        agent:ID, user:ID, or '*' for everybody.
    pattern
        server::tool, where * stands for anything; a server's name alone means all of its tools.
    """
    _add(subject, Effect.ALLOW, pattern)


@command.command
def deny(subject: str, pattern: str) -> None:
    """Keep somebody from these tools, whatever other rules say.

    Parameters
    ----------
    subject
        agent:ID, user:ID, or '*' for everybody.
    pattern
        server::tool, where * stands for anything; a server's name alone means all of its tools.
    """
    _add(subject, Effect.DENY, pattern)


@command.command
def remove(rule_id: str) -> None:
    """Take a rule away, by the id that the list shows."""
    with_app(lambda app: app.tools.allowed.remove(rule_id))
    print(f"Rule {line(rule_id)} is gone.")


def forget(*, agent: str | None = None, user: str | None = None, local: Flag = False) -> None:
    """Forget which tools were of use, for one agent, one person, or calls from this machine in nobody's name.

    Parameters
    ----------
    agent
        What this agent used when it worked for nobody in particular.
    user
        What was used for this person.
    local
        What was used in nobody's name.
    """
    if (agent is not None) + (user is not None) + local != 1:
        raise ConfigurationError("Say whose: --agent AGENT, --user USER or --local")
    tenant = LOCAL if local else tenant_of(Caller("command", agent, user))

    async def clear(app: App) -> None:
        await app.tools.learning.forget(tenant)

    with_app(clear)
    print(f"Forgotten: which tools were of use to {line(tenant)}.")


def _add(subject: str, effect: Effect, pattern: str) -> None:
    async def write(app: App) -> Rule:
        _check(app, pattern.strip())
        return await app.tools.allowed.add(subject, effect, pattern)

    rule = with_servers(write)
    may = "may use" if rule.effect is Effect.ALLOW else "may not use"
    print(f"Rule {rule.id}: {line(rule.subject)} {may} {line(rule.pattern)}")


def _check(app: App, pattern: str) -> None:
    """A rule that keeps nobody from anything is worse than none: a tool's bare name would be taken for a server's."""
    server, separator, _ = pattern.partition(SEPARATOR)
    if any(fnmatchcase(state.name, server) for state in app.tools.catalogue.servers()) or not server or "*" in server:
        return
    if not separator:
        raise NotFound(f"There is no tool server '{server}'; a rule names tools as server::tool")
    print(f"There is no tool server '{line(server)}' yet; the rule waits for it.", file=sys.stderr)
