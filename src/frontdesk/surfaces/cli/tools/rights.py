"""`frontdesk tools rights`: who may use which tools; and `frontdesk tools forget`."""

import sys
from fnmatch import fnmatchcase

from cyclopts import App as Command

from frontdesk.app import App
from frontdesk.errors import Invalid, NotFound
from frontdesk.journal.record import Record
from frontdesk.surfaces.cli.options import Flag
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import operator, with_app, with_change
from frontdesk.surfaces.cli.tools.opening import with_servers
from frontdesk.surfaces.cli.words import table
from frontdesk.tools.learning.model import tenant_of
from frontdesk.tools.model import SEPARATOR
from frontdesk.tools.rights.model import Effect, Rule

command = Command(
    name="rights",
    help="Who may use which tools. Without any rule, everybody may use everything. Without a command, the rules are "
    "listed.",
)


@command.default
def show() -> None:
    """List the rules."""
    rules = with_app(lambda app: app.tools.house.rules(operator()))
    if not rules:
        print("No rules: everybody may use every tool. Add one: frontdesk tools rights deny SUBJECT PATTERN")
        return
    rows = [(rule.id, rule.subject, rule.effect, rule.pattern) for rule in rules]
    print(table(("id", "who", "rule", "tools"), rows))


@command.command
def allow(subject: str, pattern: str, /) -> None:
    """Let somebody use these tools. Whoever has an allow rule may use only what such rules name.

    Parameters
    ----------
    subject
        agent:ID, user:ID, or '*' for everybody.
    pattern
        server::tool, where * stands for anything; a server's name alone means all of its tools.
    """
    _add(subject, Effect.ALLOW, pattern)


@command.command
def deny(subject: str, pattern: str, /) -> None:
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
def remove(rule_id: str, /) -> None:
    """Take a rule away.

    Parameters
    ----------
    rule_id
        The rule's id, as `tools rights` lists it.
    """
    with_change(f"tools rights remove {rule_id}", lambda app, _: app.tools.house.remove_rule(operator(), rule_id))
    print(f"Rule {line(rule_id)} is gone.")


def forget(*, agent: str | None = None, user: str | None = None, local: Flag = False) -> None:
    """Forget which tools were useful to an agent, to a person, or to calls from this machine without a name.

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
        raise Invalid("Say whose uses to forget: --agent AGENT, --user USER or --local")
    whose = operator(agent=agent, user=user)

    async def clear(app: App, record: Record) -> None:
        record.caller = whose
        await app.tools.house.forget(whose)

    with_change("tools forget", clear)
    print(f"Forgotten: which tools were of use to {line(tenant_of(whose))}.")


def _add(subject: str, effect: Effect, pattern: str) -> None:
    async def write(app: App, _record: Record) -> Rule:
        _check(app, pattern.strip())
        return await app.tools.house.add_rule(operator(), subject, effect, pattern)

    rule = with_change(f"tools rights {effect} {subject} {pattern}", write, with_servers)
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
