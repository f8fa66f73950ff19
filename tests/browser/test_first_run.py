"""Tests a person's first run: from an empty server to an agent that answers and uses a tool that it found."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Installation, replicas
from tests.requirements import shows
from tests.support.browsers import MILLISECONDS
from tests.support.desk import ROOT, open_desk
from tests.support.tool_servers import open_tool_server, tool

SCRIPT = (
    '@@[{"tool": "find_tools", "args": {"query": "stock level of an article in the warehouse"}}, '
    '{"tool": "call_tool", "args": {"name": "warehouse::stock_level", "arguments": {"text": "bolts"}}}, '
    '{"text": "The warehouse has bolts."}]@@'
)


@pytest.fixture(scope="module", params=["checkout", pytest.param("replicas", marks=pytest.mark.slow)])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    """An empty installation: started with `./dev up`, as a newcomer does, or two replicas on PostgreSQL."""
    folder = tmp_path_factory.mktemp("first")
    if request.param == "replicas":
        with replicas(folder, request.getfixturevalue("postgres")) as opened:
            yield opened
        return
    with open_desk(folder / "data", command=(str(ROOT / "dev"), "up")) as desk:
        yield Installation((desk,), desk.data, {})


@shows("WEB-START")
def test_the_first_run_leads_to_an_agent_that_answers_a_scheduled_prompt_with_a_found_tool(
    page: Page, installation: Installation
) -> None:
    page.goto("/")
    page.get_by_role("link", name="Set it up, step by step").click()
    expect(page.get_by_text("0 of 5 steps are done")).to_be_visible()
    agent = page.get_by_role("form", name="Make an agent")
    agent.get_by_label("Name").fill("Ada")
    agent.get_by_role("button", name="Make the agent").click()
    expect(page.get_by_text("1 of 5 steps are done")).to_be_visible()
    with open_tool_server("warehouse", [tool("stock_level", "Tell the stock level of an article.")]) as warehouse:
        server = page.get_by_role("form", name="Add a tool server")
        server.get_by_label("Name").fill("warehouse")
        server.get_by_label("Address").fill(warehouse.url)
        server.get_by_role("button", name="Add the server").click()
        expect(page.get_by_text("warehouse answered, and has 1 tools")).to_be_visible()
        prompt = page.get_by_role("form", name="Schedule a prompt")
        prompt.get_by_label("When").fill("in 2 seconds")
        prompt.get_by_label("Prompt").fill(f"Do we have bolts? {SCRIPT}")
        prompt.get_by_role("button", name="Schedule the prompt").click()
        expect(page.get_by_text("Scheduled with number 1")).to_be_visible()
        answer = page.locator("#answer")
        # The first turn of a process loads the model clients.
        expect(answer.get_by_text("delivered")).to_be_visible(timeout=MILLISECONDS)
        expect(answer.get_by_text("The warehouse has bolts.")).to_be_visible()
        assert warehouse.called == ["stock_level"]
    expect(page.get_by_text("3 of 5 steps are done")).to_be_visible()
    assert "warehouse::stock_level" in installation.run("tools", "usage")
