"""The client's names, and what is loaded for them."""

import json
import subprocess
import sys

import pytest

import frontdesk.agent365

SECONDS = 60
HEAVY = {
    "acp",
    "agent_framework",
    "agents",
    "aiohttp",
    "alembic",
    "fastapi",
    "letta_client",
    "mcp",
    "mcp_types",
    "microsoft_agents_a365",
    "numpy",
    "onnxruntime",
    "openai",
    "pydantic_ai",
    "sqlalchemy",
    "starlette",
    "uvicorn",
}


def loaded(code: str) -> set[str]:
    """The packages that are there after some code ran in a process of its own."""
    told = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=SECONDS, check=True)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize("name", frontdesk.agent365.__all__)
def test_each_name_that_is_offered_is_there(name: str) -> None:
    found = getattr(frontdesk.agent365, name)
    assert found is not None
    assert name in dir(frontdesk.agent365)
    # Functions and classes are called what they are offered as.
    assert getattr(found, "__name__", name) == name


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = frontdesk.agent365.nothing


def test_the_names_alone_load_nothing_that_is_slow() -> None:
    assert loaded("import frontdesk.agent365").isdisjoint({*HEAVY, "pydantic", "httpx2", "anyio"})


def test_the_client_loads_no_server_no_database_and_no_framework() -> None:
    code = "from frontdesk.agent365 import *\nMcpToolServerConfigurationService()"
    assert loaded(code).isdisjoint(HEAVY)
