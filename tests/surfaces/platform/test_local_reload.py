"""What is changed on disk is served with the next request; what cannot be read changes nothing."""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.requirements import shows
from tests.support.platform import local_platform


def manifest(*names: str) -> dict[str, object]:
    return {"mcpServers": [{"mcpServerName": name} for name in names]}


def tools(text: str) -> str:
    return json.dumps([{"name": "send", "description": "Sends.", "responseTemplate": text}])


@shows("A365-LOCAL")
def test_a_manifest_that_changes_is_served_as_it_is_now() -> None:
    with local_platform(manifest("Mail")) as platform:
        assert platform.rpc("Calendar", "tools/list").status_code == 404
        platform.write(manifest("Mail", "Calendar"))
        assert [entry["mcpServerName"] for entry in platform.discover().json()["mcpServers"]] == ["Mail", "Calendar"]
        assert platform.rpc("Calendar", "tools/list").status_code == 200


@pytest.mark.parametrize("broken", ["{", "", "[]", '{"mcpServers": 5}', None])
def test_a_manifest_that_became_unreadable_is_kept_as_it_was_and_said_once(broken: str | None) -> None:
    with capture_logs() as logged, local_platform(manifest("Mail")) as platform:
        if broken is None:
            platform.manifest.unlink()
        else:
            platform.manifest.write_text(broken)
        for _ in range(3):
            assert platform.discover().json()["mcpServers"] == [{"mcpServerName": "Mail"}]
        health = platform.ask("GET", "/health")
        assert health["status"] == "stale"
        assert "ToolingManifest.json" in health["problems"][0]
        platform.write(manifest("Mail", "New"))
        assert len(platform.discover().json()["mcpServers"]) == 2
        assert platform.ask("GET", "/health")["status"] == "ok"
    assert [entry["event"] for entry in logged] == ["platform_manifest_kept", "platform_manifest_read"]


def test_mocks_beside_a_manifest_are_followed_too(tmp_path: Path) -> None:
    path = tmp_path / "ToolingManifest.json"
    path.write_text(json.dumps(manifest("Mail")))
    mocks = tmp_path / "mocks"
    mocks.mkdir()
    with local_platform(path) as platform:
        assert platform.rpc("Mail", "tools/list").json()["result"]["tools"] == []
        mock = mocks / "Mail.json"
        mock.write_text(tools("one"))
        assert platform.call("Mail", "send")["content"][0]["text"] == "one"
        mock.write_text(tools("another"))
        assert platform.call("Mail", "send")["content"][0]["text"] == "another"
        mock.write_text("[{")
        assert platform.call("Mail", "send")["content"][0]["text"] == "another"
        assert "mocks/Mail.json" in platform.ask("GET", "/health")["problems"][0]
        mock.unlink()
        assert platform.rpc("Mail", "tools/list").json()["result"]["tools"] == []


def test_a_state_outlives_a_change_of_the_manifest() -> None:
    states = [{"in": "start", "next": "open", "responseTemplate": "1"}, {"in": "open", "responseTemplate": "2"}]
    tool = {"name": "door", "description": "Opens.", "states": states}
    servers = [{"mcpServerName": "House", "tools": [tool]}]
    with local_platform({"mcpServers": servers}) as platform:
        assert platform.call("House", "door")["content"][0]["text"] == "1"
        platform.write({"mcpServers": [*servers, {"mcpServerName": "Mail"}]})
        assert platform.call("House", "door")["content"][0]["text"] == "2"
