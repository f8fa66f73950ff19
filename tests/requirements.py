"""What Frontdesk must do, each with an id; a test that shows one names it, and a test checks that both ways."""

import pytest

REQUIREMENTS = {
    "ID-ORDER": "The agent id comes from credential, header, parameter, metadata, environment, single agent, in order.",
    "ID-MATCH": "Header and parameter given together must match.",
    "ID-FORMAT": "An agent id is [A-Za-z0-9_-]+, at most 128 characters.",
    "ID-ERRORS": "Missing, mismatched and malformed ids are JSON-RPC -32602 with exact messages, in both eras.",
    "ID-RESULT": "Schedule tools tell a missing id as an {error} result.",
    "ID-SWITCHES": "The four switches do what they say.",
    "ID-EXPOSED": "Beyond loopback an agent id needs a credential that covers it.",
    "ID-START": "Beyond loopback the server refuses to start without a key or an issuer.",
    "ID-ISOLATION": "No answer ever belongs to another caller.",
    "ID-OUTBOUND": "Outbound requests name the agent by blueprint, token claim or application name.",
    "KEY-LIFE": "Keys are shown once, hashed at rest, rotated with overlap, revoked, and their use noted.",
    "TOKEN-CHECKS": "Tokens are checked for signature, algorithm, issuer, audience and time.",
    "RIGHTS": "A credential with scopes may do what they say and nothing else.",
    "RATE": "Rates per agent and user are held, shared among replicas, and answered with a time to wait.",
    "DB-SCHEMA": "The migrations make exactly the schema, on SQLite and on PostgreSQL.",
    "MCP-CONFORMANCE": "The protocol's conformance suite passes in both eras.",
    "MCP-REFEREES": "Other people's authorization and protocol scanners find no MUST failure but TLS on loopback.",
    "MCP-STDIO": "Over stdio nothing but protocol goes to standard output.",
    "HTTP-GATE": "Host and Origin are checked on every request.",
    "FUZZ": "No input leads to a 500 or puts a secret into the log.",
    "JOURNAL-KILL": "kill -9 loses at most the unwritten batch, and a reader sees whole rows.",
    "METRICS": "Metrics tell header from parameter, and count mismatches and invalid ids.",
    "HOST": "Every agent host behaves alike: create, send, stream, cancel, approve, remember, replay, queue, fail.",
    "LOOP": "A turn streams, calls tools in parallel, feeds failures back, and stops at its limit, on both model APIs.",
    "TURN-KILL": "kill -9 in a turn leaves the conversation whole, the turn marked interrupted, and nothing repeated.",
    "CHAT-STREAM": "A reply is told in order to every stream, early, late or resumed, and never twice.",
    "CHAT-CANCEL": "A cancel stops the work, running or waiting, and the conversation says so.",
    "CHAT-OWN": "The person comes from the credential, and nobody reaches a session of somebody else.",
    "CHAT-APPROVE": "A tool call that needs approval waits for the person's word, and goes on with it.",
    "CHAT-TOKEN": "A person's token reaches tool servers set up for it, and is neither stored nor logged.",
    "CHAT-ERRORS": "The chat API tells mistakes and failures in the shapes of the contract.",
    "CHAT-REPLICAS": "Message, stream and cancel may each reach another replica.",
    "CLI-AGENTS": "Agents are made, shown, equipped and deleted from the command line, by id or unique name.",
    "CLI-CHAT": "A terminal chat streams turns, shows tools and memory diffs, and Ctrl-C stops the turn, not the chat.",
    "CLI-APPROVE": "What waits for approval is offered with its full arguments, also after a restart.",
    "CLI-SAFE": "Nothing that an agent or tool says reaches the terminal as a control character.",
    "LETTA-PROOF": "A Letta agent is known by its header, and proven once it is connected with a key of its own.",
    "MCP-CLIENT": "No answer of an MCP server reaches another user, whatever the server keeps in its session.",
    "SETTINGS-DOC": "Every setting is documented.",
    "DOCTOR": "The doctor says what is set, from where, and what is wrong.",
    "DOCS-RUN": "The commands in the documentation work.",
    "FLOORS": "Imports point down and siblings do not meet.",
}


def shows(requirement: str) -> pytest.MarkDecorator:
    """Marks a test as showing a requirement."""
    return pytest.mark.requirement(REQUIREMENTS[requirement])
