"""Whatever is changed on the command line can be read in the journal afterwards, and no secret with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.desk import frontdesk_here

NOWHERE = "http://127.0.0.1:1/mcp"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def rows(data: Path) -> list[dict[str, Any]]:
    told = frontdesk_here("journal", "--json", data=data)
    return [json.loads(line) for line in told.stdout.splitlines()]


def told(data: Path) -> list[tuple[str, str, str | None, str | None]]:
    assert {row["surface"] for row in rows(data)} == {"cli"}
    return [(row["action"], row["outcome"], row["agent_id"], row["user_id"]) for row in rows(data)]


def test_every_change_of_a_key_is_in_the_journal_without_its_secret(data: Path) -> None:
    made = frontdesk_here("keys", "create", "--agent", "ada", "--user", "ann", data=data).stdout.strip()
    first = made.split("_")[1]
    rotated = frontdesk_here("keys", "rotate", first, data=data).stdout.strip()
    second = rotated.split("_")[1]
    frontdesk_here("keys", "revoke", first, data=data)
    frontdesk_here("keys", "revoke", rotated, data=data)
    frontdesk_here("keys", "list", data=data)
    assert told(data) == [
        (f"keys create {first}", "ok", "ada", "ann"),
        (f"keys rotate {first} {second}", "ok", "ada", "ann"),
        (f"keys revoke {first}", "ok", None, None),
        ("keys revoke", "refused", None, None),
    ]
    secrets = [text.rpartition("_")[2] for text in (made, rotated)]
    assert not any(secret in json.dumps(rows(data)) for secret in secrets)


def test_every_change_of_an_agent_is_in_the_journal(data: Path) -> None:
    agent = frontdesk_here("agents", "create", "Ada", data=data).stdout.strip()
    for arguments in (("block", "Ada", "human", "Likes tea"), ("block", "Ada", "human"), ("show", "Ada"), ("list",)):
        assert frontdesk_here("agents", *arguments, data=data).returncode == 0
    frontdesk_here("agents", "attach", "Ada", "shop", "send", data=data)
    frontdesk_here("agents", "detach", "Ada", "send", data=data)
    frontdesk_here("agents", "delete", "Ada", "--yes", data=data)
    assert told(data) == [
        ("agents create", "ok", agent, None),
        ("agents block human", "ok", agent, None),
        ("agents attach shop::send", "refused", agent, None),
        ("agents detach send", "refused", agent, None),
        ("agents delete", "ok", agent, None),
    ]
    assert "tea" not in json.dumps(rows(data))


def test_every_change_of_tools_and_rights_is_in_the_journal(data: Path) -> None:
    def tools(*arguments: str) -> None:
        frontdesk_here("tools", *arguments, data=data, FRONTDESK_EMBEDDINGS="off")

    tools("add", "shop", NOWHERE, "--force", "--header", "authorization: hush")
    tools("rights", "deny", "user:ann", "shop::*")
    tools("rights")
    tools("list")
    tools("forget", "--user", "ann")
    tools("refresh", "shop")
    tools("remove", "shop")
    tools("remove", "shop")
    assert told(data) == [
        ("tools add shop", "ok", None, None),
        ("tools rights deny user:ann shop::*", "ok", None, None),
        ("tools forget", "ok", None, "ann"),
        ("tools refresh shop", "ok", None, None),
        ("tools remove shop", "ok", None, None),
        ("tools remove shop", "refused", None, None),
    ]
    assert "hush" not in json.dumps(rows(data))


def test_an_attempt_to_connect_with_letta_is_in_the_journal(data: Path) -> None:
    refused = frontdesk_here("letta", "connect", "Ada", "--url", "https://user:hush@desk.example/mcp", data=data)
    assert (refused.returncode, "LETTA_BASE_URL" in refused.stderr) == (2, True)
    assert [(row["action"], row["reason"]) for row in rows(data)] == [("letta connect", "ConfigurationError")]
