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
    "SETTINGS-DOC": "Every setting is documented.",
    "DOCTOR": "The doctor says what is set, from where, and what is wrong.",
    "DOCS-RUN": "The commands in the documentation work.",
    "FLOORS": "Imports point down and siblings do not meet.",
}


def shows(requirement: str) -> pytest.MarkDecorator:
    """Marks a test as showing a requirement."""
    return pytest.mark.requirement(REQUIREMENTS[requirement])
