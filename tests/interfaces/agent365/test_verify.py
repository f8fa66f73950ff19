"""Tests `frontdesk platform lint` and `verify` beside a manifest."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import shows
from tests.support.agent365 import APP, local_platform
from tests.support.desk import frontdesk_here
from tests.support.serving import address_of, listen
from tests.support.tool_servers import SCHEMA, open_tool_server, tool

Done = subprocess.CompletedProcess[str]
# Nothing listens there; a token must not leave this machine either.
NOWHERE = {"MCP_PLATFORM_ENDPOINT": "http://127.0.0.1:9"}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "ToolingManifest.json"


def run(manifest: Path, *arguments: str, servers: list[dict[str, Any]] | None = None, **environment: str) -> Done:
    """Run a command of `frontdesk platform` in the manifest's folder."""
    if servers is not None:
        manifest.write_text(json.dumps({"mcpServers": servers}))
    done = frontdesk_here("platform", *arguments, data=manifest.parent / "data", **(NOWHERE | environment))
    assert not (manifest.parent / "data").exists(), "nothing may open the house's database"
    return done


def described(name: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", **said}


@shows("A365-LINT")
def test_lint_says_that_all_is_well(manifest: Path) -> None:
    done = run(manifest, "lint", servers=[{"mcpServerName": "mail", "tools": ["send", "read"]}])
    assert (done.returncode, done.stdout) == (0, "All is well: 1 server and 2 tools.\n")


@shows("A365-LINT")
def test_lint_prints_a_line_for_each_problem_and_fails_for_errors(manifest: Path) -> None:
    done = run(manifest, "lint", servers=[{"mcpServerName": "mail", "scoop": 1}, {"url": "x\x1b[31m"}])
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "warning: mcpServers[0].scoop: is not read by anybody; did you mean 'scope'?",
        "error: mcpServers[1].mcpServerName: is missing, and the server is left out; name the server",
        "1 server and 0 tools; 1 error, 1 warning.",
    ]


@shows("A365-LINT")
def test_lint_fails_for_warnings_when_it_is_strict(manifest: Path) -> None:
    servers = [{"mcpServerName": "mail", "scoop": 1}]
    assert run(manifest, "lint", servers=servers).returncode == 0
    assert run(manifest, "lint", "--strict").returncode == 1


@shows("A365-LINT")
def test_lint_prints_json(manifest: Path) -> None:
    told = json.loads(run(manifest, "lint", "--json", servers=[{"mcpServerName": "mail", "scoop": 1}]).stdout)
    [problem] = told.pop("problems")
    assert (problem["level"], problem["where"]) == ("warning", "mcpServers[0].scoop")
    assert told == {"manifest": str(manifest), "ok": True, "servers": 1, "tools": 0, "errors": 0, "warnings": 1}


@shows("A365-LINT")
@pytest.mark.parametrize("command", ["lint", "verify"])
def test_a_manifest_that_cannot_be_used_is_something_to_write_differently(manifest: Path, command: str) -> None:
    none = run(manifest, command)
    assert (none.returncode, none.stdout) == (2, "")
    assert "no ToolingManifest.json in this folder or the one above" in none.stderr
    manifest.write_text("{")
    assert run(manifest, command).returncode == 2
    elsewhere = run(manifest, command, "other.json")
    assert elsewhere.returncode == 2
    assert "other.json: there is no such file" in elsewhere.stderr


def test_the_manifest_of_the_folder_above_is_found(manifest: Path) -> None:
    inner = manifest.parent / "inner" / "ToolingManifest.json"
    inner.parent.mkdir()
    manifest.write_text('{"mcpServers": []}')
    assert run(inner, "lint").stdout == "All is well: 0 servers and 0 tools.\n"


@shows("A365-VERIFY")
def test_each_declared_tool_is_looked_for_on_the_live_server(manifest: Path) -> None:
    with open_tool_server("mail", [tool("send"), tool("readMail"), tool("drop")]) as mail:
        listed = [described("send", inputSchema=SCHEMA), "read_mail", described("drop", inputSchema={"properties": {}})]
        done = run(manifest, "verify", servers=[{"mcpServerName": "mail", "url": mail.url, "tools": listed}])
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"mail at {mail.url}: 2 of 3 declared tools found",
        "  drifted: drop: the server requires 'text', which is not declared",
        "  missing: read_mail: the server has 'readMail'",
        "  not declared: readMail",
        "1 server, 0 without an answer; tools: 1 found, 1 missing, 1 drifted.",
    ]


@shows("A365-VERIFY")
def test_all_is_well_when_every_tool_is_there_and_servers_without_declared_tools_answer(manifest: Path) -> None:
    with open_tool_server("mail", [tool("send")]) as mail, open_tool_server("files", [tool("open")]) as files:
        servers = [
            {"mcpServerName": "mail", "url": mail.url, "tools": ["send"]},
            {"mcpServerName": "files", "url": files.url},
        ]
        done = run(manifest, "verify", servers=servers)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"mail at {mail.url}: 1 of 1 declared tools found",
        f"files at {files.url}: answers",
        "2 servers, 0 without an answer; tools: 1 found, 0 missing, 0 drifted.",
    ]


@shows("A365-VERIFY")
def test_a_server_that_does_not_answer_in_time_is_told(manifest: Path) -> None:
    listener = listen()
    with listener, open_tool_server("slow") as slow:
        slow.hangs = True
        servers = [{"mcpServerName": "slow", "url": slow.url}, {"mcpServerName": "mute", "url": address_of(listener)}]
        told = json.loads(run(manifest, "verify", "--json", "--timeout", "0.3", servers=servers).stdout)
    assert [(one["server"], one["ok"]) for one in told["servers"]] == [("slow", False), ("mute", False)]
    assert all("takes longer than 0.3 s" in one["failure"] for one in told["servers"])
    assert (told["ok"], told["manifest_sound"]) == (False, True)


@shows("A365-VERIFY")
def test_a_server_that_is_away_keeps_no_other_from_being_asked(manifest: Path) -> None:
    closed = listen()
    gone = address_of(closed)
    closed.close()
    with open_tool_server("mail", [tool("send")]) as mail:
        servers = [
            *({"mcpServerName": f"gone{number}", "url": gone, "tools": ["x"]} for number in range(20)),
            {"mcpServerName": "mail", "url": mail.url, "tools": ["send"]},
        ]
        done = run(manifest, "verify", servers=servers)
    *_, away, found, summary = done.stdout.splitlines()
    assert done.returncode == 1
    assert away.startswith("gone19: MCP server 'gone19'")
    assert "does not answer" in away
    assert found == f"mail at {mail.url}: 1 of 1 declared tools found"
    assert summary == "21 servers, 20 without an answer; tools: 1 found, 0 missing, 0 drifted."


def test_one_server_may_be_asked_alone(manifest: Path) -> None:
    with open_tool_server("mail", [tool("send")]) as mail:
        servers = [{"mcpServerName": "mail", "url": mail.url, "tools": ["send"]}, {"mcpServerName": "gone"}, {}]
        alone = run(manifest, "verify", "--server", "mail", servers=servers)
        assert alone.returncode == 0
        assert "gone" not in alone.stdout
        unknown = run(manifest, "verify", "--server", "mial")
    assert unknown.returncode == 2
    assert "declares no server 'mial'; did you mean 'mail'?" in unknown.stderr


def test_a_manifest_with_errors_is_not_verified_whatever_its_servers_say(manifest: Path) -> None:
    done = run(manifest, "verify", servers=[{}])
    assert (done.returncode, done.stdout) == (1, "The manifest declares no server.\n")
    assert "run frontdesk platform lint" in done.stderr


@shows("A365-VERIFY")
def test_servers_at_the_platform_get_the_token_of_development_and_hear_which_agent_asks(manifest: Path) -> None:
    servers = [{"mcpServerName": "mail", "tools": ["send"]}, {"mcpServerName": "files", "tools": ["open"]}]
    with local_platform({"mcpServers": servers}) as platform:
        environment = {"MCP_PLATFORM_ENDPOINT": platform.url, "BEARER_TOKEN": f"Bearer {platform.token()}"}
        done = run(manifest, "verify", servers=servers, **environment)
        seen = platform.requests()
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 found" in done.stdout
    assert {(request["server"], request["agentId"]) for request in seen if request["server"]} == {
        ("mail", APP),
        ("files", APP),
    }


@shows("A365-VERIFY")
def test_a_token_that_is_refused_or_missing_is_told_with_the_variable_to_set(manifest: Path) -> None:
    audience = "api://05879165-0320-489e-b644-f72b33f3edf0"
    servers = [{"mcpServerName": "mail", "audience": audience, "scope": "Mail.All", "tools": ["send"]}]
    with local_platform({"mcpServers": servers}) as platform:
        at, token, own = platform.url, platform.token(), platform.token(audience)
        missing = run(manifest, "verify", servers=servers, MCP_PLATFORM_ENDPOINT=at)
        refused = run(manifest, "verify", MCP_PLATFORM_ENDPOINT=at, BEARER_TOKEN=token)
        taken = run(manifest, "verify", MCP_PLATFORM_ENDPOINT=at, BEARER_TOKEN=token, BEARER_TOKEN_MAIL=own)
    assert f"no token was sent: set BEARER_TOKEN_MAIL or BEARER_TOKEN to one for {audience}/Mail.All" in missing.stdout
    assert f"the token of BEARER_TOKEN was sent: set BEARER_TOKEN_MAIL to one for {audience}/Mail.All" in refused.stdout
    assert (missing.returncode, refused.returncode, taken.returncode) == (1, 1, 0)
    assert token not in refused.stdout + refused.stderr


@shows("A365-HOSTILE")
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(manifest: Path) -> None:
    servers = [{"mcpServerName": "mail", "tools": ["send"]}]
    done = run(manifest, "verify", servers=servers, BEARER_TOKEN="s3cret\r\nX-Evil: 1")
    assert done.returncode == 1
    assert "holds characters that no header can" in done.stdout
    assert "s3cret" not in done.stdout + done.stderr


def test_a_server_that_says_the_token_back_does_not_get_it_printed(manifest: Path) -> None:
    with open_tool_server("mail") as mail:
        mail.refuses = "I do not like s3cret-token"
        servers = [{"mcpServerName": "mail", "url": mail.url}]
        done = run(manifest, "verify", servers=servers, BEARER_TOKEN="s3cret-token")
    assert "I do not like [token]" in done.stdout
    assert "s3cret" not in done.stdout + done.stderr
