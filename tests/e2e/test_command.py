"""Tests the frontdesk command: each subcommand once as a program, the others in process."""

import json
import os
import re
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx2
import pytest

from frontdesk.app import open_app, running
from frontdesk.errors import ConfigurationError
from frontdesk.interfaces.cli.main import COMMANDS
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.uvicorn_server import open_listener
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import frontdesk, frontdesk_here, open_desk
from tests.support.wire import MODERN, Answer, call, curl, send


def served(data: Path, *callers: Mapping[str, str]) -> list[Answer]:
    """The answer to each caller's whoami, from a server that opens on this folder and closes again."""

    async def ask() -> list[Answer]:
        said, body = call(MODERN)
        async with open_app(settings_with(FRONTDESK_DATA=data)) as app, running(app):
            asgi = build_application(app)
            return [await send(asgi, {**said, **caller}, body) for caller in callers]

    return anyio.run(ask)


def test_doctor_says_what_is_set_from_where_and_that_all_is_well(tmp_path: Path) -> None:
    done = frontdesk("doctor", data=tmp_path / "data", FRONTDESK_PORT="4000", LETTA_API_KEY="hunter2")
    assert done.returncode == 0, done.stderr
    assert "All is well." in done.stdout
    assert "FRONTDESK_PORT" in done.stdout
    assert "4000" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@shows("DOCTOR")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FRONTDESK_HOST": "0.0.0.0"}, "keys create"),
        ({"FRONTDESK_PROT": "1"}, "did you mean FRONTDESK_PORT"),
        ({"FRONTDESK_FOO": "1"}, "FRONTDESK_FOO is not a setting\n"),
        ({"SUPABASE_JWT_SECRET": "s"}, "has no effect"),
        ({"FRONTDESK_HOST": "0.0.0.0", "FRONTDESK_ISSUERS": '[{"issuer": "i"}]'}, "set FRONTDESK_PUBLIC_URL"),
        ({"LETTA_BASE_URL": "http://127.0.0.1:1"}, "check that it runs, and LETTA_BASE_URL"),
        ({"FRONTDESK_DATABASE_URL": "postgresql://127.0.0.1:1/d?password=hunter2"}, "Check FRONTDESK_DATABASE_URL"),
    ],
)
def test_doctor_says_what_is_wrong_and_fails(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    done = frontdesk_here("doctor", data=tmp_path / "data", **settings)
    assert done.returncode == 1
    assert said in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@shows("DOCTOR")
def test_doctor_tells_a_script_the_same_and_no_secret(tmp_path: Path) -> None:
    given = {"FRONTDESK_PORT": "4000", "LETTA_API_KEY": "hunter2", "ZMEMORY_API_URL": "https://memory.example"}
    done = frontdesk_here("doctor", "--json", data=tmp_path / "data", **given)
    assert (done.returncode, "hunter2" in done.stdout) == (0, False)
    told = json.loads(done.stdout)
    settings = {one["setting"]: (one["value"], one["from"]) for one in told["settings"]}
    assert settings["FRONTDESK_PORT"] == ("4000", "FRONTDESK_PORT")
    assert settings["LETTA_BASE_URL"] == (None, "default")
    assert [note.split()[0] for note in told["notes"]] == ["ZMEMORY_API_URL"]
    assert told["wrong"] == []
    done = frontdesk_here("doctor", "--json", data=tmp_path / "data", FRONTDESK_FOO="1")
    assert (done.returncode, json.loads(done.stdout)["wrong"]) == (1, ["FRONTDESK_FOO is not a setting"])


def test_doctor_points_out_what_has_no_use_here(tmp_path: Path) -> None:
    done = frontdesk_here("doctor", data=tmp_path / "data", ZMEMORY_API_URL="https://memory.example")
    assert done.returncode == 0
    assert "note: ZMEMORY_API_URL" in done.stdout


def test_a_wrong_setting_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    done = frontdesk_here("up", data=tmp_path / "data", FRONTDESK_PORT="many")
    assert done.returncode == 2
    assert done.stderr.startswith("frontdesk: Some settings are wrong: FRONTDESK_PORT")
    assert done.stderr.count("\n") == 1


@shows("ID-START")
def test_beyond_loopback_nobody_starts_without_a_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    refused = frontdesk("up", data=data, FRONTDESK_HOST="0.0.0.0", FRONTDESK_PORT="0")
    assert refused.returncode == 2
    assert "keys create" in refused.stderr
    key = frontdesk_here("keys", "create", "--agent", "agent-1", data=data).stdout.strip()
    with open_desk(data, FRONTDESK_HOST="0.0.0.0") as desk:
        url = desk.mcp.replace("0.0.0.0", "127.0.0.1")
        said, body = call(MODERN)
        assert curl(url, said | {"x-agent-id": "agent-1"}, body).status == 401
        assert curl(url, said | {"authorization": f"Bearer {key}"}, body).structured["verified"] is True


def test_a_taken_port_is_said_in_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = frontdesk("up", "--port", str(port), data=tmp_path / "data")
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr


def test_a_port_that_cannot_be_is_said_in_words() -> None:
    with pytest.raises(ConfigurationError, match=r"port must be 0-65535\); choose another"):
        open_listener(settings_with().with_values(port=70_000))


@shows("KEY-LIFE")
def test_a_key_is_shown_once_rotated_with_overlap_and_revoked(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = frontdesk("keys", "create", "--agent", "agent-1", "--scope", "identity:read", "--expires", "90d", data=data)
    text = made.stdout.strip()
    key_id = text.split("_")[1]
    assert frontdesk_here("keys", "list", data=data).stdout.count(key_id) == 1
    assert text.split("_")[2].encode() not in data.joinpath("frontdesk.db").read_bytes()
    rotated = frontdesk_here("keys", "rotate", key_id, "--overlap", "1h", data=data).stdout.strip()
    assert rotated != text
    again = frontdesk_here("keys", "rotate", key_id, data=data)
    assert again.returncode == 2
    assert "rotate that one" in again.stderr
    for answer in served(data, {"x-api-key": text}, {"x-api-key": rotated}):
        assert answer.structured["agent_id"] == "agent-1"
        assert answer.structured["scopes"] == ["identity:read"]
    assert frontdesk_here("keys", "revoke", key_id, data=data).returncode == 0
    again = frontdesk_here("keys", "revoke", key_id, data=data)
    assert again.returncode == 1
    assert "no working key" in again.stderr
    assert [answer.status for answer in served(data, {"x-api-key": text}, {"x-api-key": rotated})] == [401, 200]
    assert "UTC" in frontdesk_here("keys", "list", data=data).stdout, "last use is noted"


@shows("KEY-LIFE")
def test_keys_are_listed_for_a_script_without_their_secrets(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert frontdesk_here("keys", "list", "--json", data=data).stdout == ""
    bound = ("--agent", "agent-1", "--user", "ann", "--name", "desk")
    text = frontdesk_here("keys", "create", *bound, "--scope", "tools:call", "--expires", "90d", data=data).stdout
    first = text.split("_")[1]
    second = frontdesk_here("keys", "rotate", first, data=data).stdout.split("_")[1]
    frontdesk_here("keys", "revoke", first, data=data)
    listed = frontdesk_here("keys", "list", "--json", data=data).stdout
    assert text.strip().split("_")[2] not in listed
    told = {one["id"]: one for one in map(json.loads, listed.splitlines())}
    assert {key: one["state"] for key, one in told.items()} == {first: "revoked", second: "works"}
    named = {name: told[second][name] for name in ("name", "agent_id", "user_id", "scopes", "replaces", "revoked_at")}
    assert named == {
        "name": "desk",
        "agent_id": "agent-1",
        "user_id": "ann",
        "scopes": ["tools:call"],
        "replaces": first,
        "revoked_at": None,
    }
    assert datetime.fromisoformat(told[second]["expires_at"]) > datetime.now(UTC)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("keys", "create"), 2, "give an agent, a user, or both"),
        (("keys", "create", "--agent", "a b"), 2, "Invalid agent ID format"),
        (("keys", "create", "--agent", "a", "--scope", "everything"), 2, "There is no scope 'everything'"),
        (("keys", "create", "--agent", "a", "--expires", "soon"), 2, "write 45s, 30m, 12h or 90d"),
        (("keys", "rotate", "nope"), 1, "no working key"),
        (("journal", "--since", "999999d"), 2, "write 45s, 30m, 12h or 90d"),
    ],
)
def test_a_mistake_says_what_to_do(tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = frontdesk_here(*arguments, data=tmp_path / "data")
    assert done.returncode == code
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("worker", "--concurrency", "0"), 'Invalid value "0" for --concurrency. Must be >= 1.'),
        (("up", "--port", "99999"), 'Invalid value "99999" for --port. Must be <= 65535.'),
        (("journal", "--limit", "-3"), 'Invalid value "-3" for --limit. Must be >= 1.'),
        (("tools", "list", "--limit", "0"), 'Invalid value "0" for --limit. Must be >= 1.'),
        (("tools", "usage", "--limit", "-1"), 'Invalid value "-1" for --limit. Must be >= 1.'),
        (("tools", "search"), "parameter QUERY requires an argument"),
        (("schedule", "add"), "parameter AGENT requires an argument"),
    ],
)
def test_a_number_that_cannot_be_or_a_missing_argument_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = frontdesk_here(*arguments, data=tmp_path / "data")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not tmp_path.joinpath("data").exists(), "nothing was opened"


def test_help_and_version_wait_for_nothing_to_be_imported() -> None:
    heavy = "[name for name in ('frontdesk.app', 'sqlalchemy', 'pydantic', 'numpy') if name in sys.modules]"
    for option in ("--help", "--version"):
        asked = f"""
import atexit, sys
atexit.register(lambda: print({heavy}, file=sys.stderr))
sys.argv = ["frontdesk", "{option}"]
from frontdesk.interfaces.cli.main import main
main()
"""
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "[]\n")


def test_every_command_is_where_the_help_says(tmp_path: Path) -> None:
    for name, _, words in COMMANDS:
        done = frontdesk_here(name, "--help", data=tmp_path / "data")
        assert done.returncode == 0, done.stderr
        assert words.split()[0] in done.stdout
        assert "[ARGS]" not in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_completes_every_command(tmp_path: Path, shell: str) -> None:
    done = frontdesk_here("completion", shell, data=tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert {name for name, _, _ in COMMANDS if not re.search(rf"\b{name}\b", done.stdout)} == set()
    assert not tmp_path.joinpath("data").exists(), "nothing was opened"


# Completes the last of the words after the script's path, as bash does when somebody presses Tab.
PRESS_TAB = r"""
source "$1"
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
[[ $(complete -p frontdesk) =~ -F\ ([^ ]+) ]]
"${BASH_REMATCH[1]}" frontdesk "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sched", {"schedule"}),
        ("tasks a", {"add", "approve", "assign"}),
        ("schedule add --ev", {"--every"}),
    ],
)
def test_bash_offers_what_can_follow(tmp_path: Path, words: str, offered: set[str]) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(frontdesk_here("completion", "bash", data=tmp_path / "data").stdout)
    for options in (["-n", str(script)], ["-c", PRESS_TAB, "bash", str(script), "frontdesk", *words.split()]):
        done = subprocess.run(["bash", "--norc", *options], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == offered


def test_what_somebody_named_a_key_cannot_drive_the_terminal(tmp_path: Path) -> None:
    data = tmp_path / "data"
    frontdesk_here("keys", "create", "--agent", "a", "--name", "nice\x1b[2J\nname", data=data)
    listed = frontdesk_here("keys", "list", data=data).stdout
    assert "nice name" in listed
    assert "\x1b" not in listed
    refused = frontdesk_here("keys", "revoke", "no\x1b[2Jpe", data=data)
    assert (refused.returncode, "\x1b" in refused.stderr) == (1, False)


def test_the_journal_is_read_by_agent_and_as_json(tmp_path: Path) -> None:
    data = tmp_path / "data"
    served(data, *({"x-agent-id": agent} for agent in ("agent-1", "agent-2", "bad id")))
    lines = frontdesk("journal", "--json", data=data).stdout.splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["ok", "ok", "refused"]
    shown = frontdesk_here("journal", "--agent", "agent-2", data=data).stdout
    assert shown.count("\n") == 1
    assert "whoami" in shown
    assert "agent-2 (header, asserted)" in shown
    assert frontdesk_here("journal", "--as-json", data=data).stdout.splitlines() == lines, "as it was called before"


def test_the_data_folder_is_private_and_the_database_waits_for_no_one(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    data.parent.mkdir()
    assert frontdesk_here("keys", "list", data=data).returncode == 0
    assert data.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(data / "frontdesk.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@shows("KEPT-07")
def test_the_database_is_its_owners_alone_whatever_the_folder_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    old = [data / name for name in ("frontdesk.db.bak", "frontdesk.db-2025", "frontdesk.db-wal")]
    for path in old:
        path.touch(mode=0o644)
    other = data / "notes.txt"
    other.touch(mode=0o644)
    mask = os.umask(0o022)
    try:
        modes = anyio.run(modes_while_open, data)
        (data / "frontdesk.db").chmod(0o664)
        assert frontdesk_here("keys", "list", data=data).returncode == 0
    finally:
        os.umask(mask)
    assert {"frontdesk.db", "frontdesk.db-wal", "frontdesk.db-shm", "frontdesk.db.bak"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((data / "frontdesk.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(other.stat().st_mode) == 0o644, "what is not ours is left as it was"


@shows("KEPT-07")
@pytest.mark.parametrize("query", ["", "?uri=true"])
def test_a_database_that_is_named_by_its_address_is_its_owners_alone_too(tmp_path: Path, query: str) -> None:
    data, link = tmp_path / "data", tmp_path / "frontdesk.db"
    data.mkdir()
    data.chmod(0o777)
    link.symlink_to(data / "frontdesk.db")
    mask = os.umask(0)
    try:
        modes = anyio.run(modes_while_open, data, f"sqlite:///{'file:' if query else ''}{link}{query}")
    finally:
        os.umask(mask)
    assert modes == dict.fromkeys(("frontdesk.db", "frontdesk.db-wal", "frontdesk.db-shm"), 0o600)


def modes_of(data: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.glob("frontdesk.db*")}


async def modes_while_open(data: Path, url: str | None = None) -> dict[str, int]:
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_DATABASE_URL=url)):
        return modes_of(data)


@shows("KEPT-07")
def test_a_second_server_on_the_same_folder_says_so_until_the_first_is_gone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_desk(data) as first, socket.create_server(("127.0.0.1", 0)) as taken:
        again = ("up", "--port", str(taken.getsockname()[1]))
        second = frontdesk_here(*again, data=data)
        assert second.returncode == 1
        assert f"process {first.process.pid}" in second.stderr
        assert str(data / "frontdesk.db") in second.stderr
        link = tmp_path / "link.db"
        link.symlink_to(data / "frontdesk.db")
        for url in (f"sqlite:///{link}", f"sqlite:///file:{link}?uri=true"):
            second = frontdesk_here(*again, data=tmp_path / "else", FRONTDESK_DATABASE_URL=url)
            assert f"process {first.process.pid}" in second.stderr, "whatever leads there"
        assert frontdesk_here("keys", "list", data=data).returncode == 0, "commands may run beside it"
        assert httpx2.get(f"{first.url}/api/health").status_code == 200, "and the first one serves on"
        first.kill()
        assert "Cannot listen" in frontdesk_here(*again, data=data).stderr, "nothing is left of one that was killed"
