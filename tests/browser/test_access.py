"""Tests Access in a browser: a key is made, used to sign in, rotated and revoked; other people's pages stay closed."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Installation
from tests.requirements import shows
from tests.support.browsers import window
from tests.support.desk import open_desk
from tests.support.issuer import Issuer, open_issuer
from tests.support.serving import address_of, listen

LINES = """cell => {
    const all = document.createRange();
    all.selectNodeContents(cell);
    return all.getClientRects().length;
}"""
KEY = re.compile(r"fd_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}")


@pytest.fixture
def guarded(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The same installation at other addresses, where everybody has to sign in."""
    demanding = {**installation.settings, "FRONTDESK_REQUIRE_AUTH": "true"}
    with ExitStack() as stack:
        if installation.settings:
            folder = tmp_path_factory.mktemp("guarded")
            desks = tuple(stack.enter_context(open_desk(folder / name, **demanding)) for name in ("one", "two"))
            yield Installation(desks, folder / "cli", demanding)
        else:
            data = tmp_path_factory.mktemp("guarded") / "data"
            yield Installation((stack.enter_context(open_desk(data, **demanding)),), data, demanding)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """A page that the browser treats as another site: it has a name, and the installation an IP address."""
    with open_issuer(("house:admin",), host="localhost") as opened:
        yield opened


def make(page: Page, name: str, *scopes: str) -> str:
    """Fill in the form as a person would; gives the key's text."""
    page.goto("/access")
    form = page.locator("#make")
    if form.get_attribute("open") is None:
        form.get_by_text("Make a key").click()
    page.get_by_label("Name", exact=False).first.fill(name)
    page.get_by_label("Person", exact=False).first.fill("ann")
    for scope in scopes:
        page.locator(f'input[name="scope:{scope}"]').check()
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_role("heading", name="A new key")).to_be_visible()
    return page.locator("#key").inner_text()


@shows("WEB-ACCESS")
def test_a_key_is_made_shown_once_rotated_and_revoked(page: Page) -> None:
    text = make(page, "ann's laptop", "tools:read", "tools:call")
    assert KEY.fullmatch(text)
    page.get_by_role("link", name="back to Access").click()
    row = page.get_by_role("row").filter(has_text="ann's laptop")
    expect(row).to_contain_text("tools:call, tools:read")
    assert text.split("_")[2] not in page.content()
    row.get_by_text("Rotate").click()
    row.get_by_label("The old one works").select_option("another hour")
    row.get_by_role("button", name="Make its successor").click()
    expect(page.locator("#key")).not_to_have_text(text)
    expect(page.get_by_text("which works until")).to_be_visible()
    page.goto("/access")
    rows = page.get_by_role("row").filter(has_text="ann's laptop")
    expect(rows).to_have_count(2)
    first = rows.first
    first.get_by_text("Revoke", exact=True).click()
    first.get_by_role("button", name="Yes, revoke").click()
    expect(page.get_by_role("status")).to_contain_text("no longer works")
    expect(rows).to_have_count(1)


@pytest.mark.parametrize("width", [1280, 400])
def test_words_in_tables_stay_whole(page: Page, installation: Installation, width: int) -> None:
    installation.run("keys", "create", "--agent", "whole", "--name", f"kept whole at {width}", "--scope", "tasks.read")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/access")
    for words in ("tasks.read", "whole"):
        cell = page.get_by_role("row").filter(has_text=f"kept whole at {width}").get_by_text(words, exact=True)
        assert cell.evaluate(LINES) == 1, words


@shows("WEB-SAFE")
def test_somebody_signs_in_with_a_key_and_is_out_once_it_is_revoked(chromium: Browser, guarded: Installation) -> None:
    text = guarded.run("keys", "create", "--user", "ann", "--name", "mine", "--scope", "house:admin").strip()
    with window(chromium, guarded.url) as context:
        page = context.new_page()
        page.goto("/access?keys=all")
        expect(page).to_have_title("Sign in · Frontdesk")
        page.get_by_label("Your key or token").fill("nonsense")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("not valid here")
        page.get_by_label("Your key or token").fill(text)
        page.keyboard.press("Enter")
        page.wait_for_url("**/access?keys=all")
        row = page.get_by_role("row").filter(has_text="you are signed in with this one")
        expect(row).to_have_count(1)
        page.goto(f"{guarded.other}/access")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        row.get_by_text("Revoke", exact=True).click()
        row.get_by_role("button", name="Yes, revoke").click()
        expect(page).to_have_title("Sign in · Frontdesk")


@shows("WEB-SAFE")
def test_somebody_signs_out_also_without_scripts(chromium: Browser, guarded: Installation) -> None:
    text = guarded.run("keys", "create", "--user", "ann", "--scope", "house:admin").strip()
    with window(chromium, guarded.url, scripts=False) as context:
        page = context.new_page()
        page.goto("/")
        page.get_by_label("Your key or token").fill(text)
        page.get_by_role("button", name="Sign in").click()
        page.goto("/access")
        expect(page.get_by_role("heading", name="Access", exact=True)).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_title("Sign in · Frontdesk")
        page.goto("/access")
        expect(page).to_have_title("Sign in · Frontdesk")


@shows("WEB-SAFE")
def test_a_page_of_another_port_on_this_machine_cannot_do_anything(
    chromium: Browser, installation: Installation
) -> None:
    """Cookies do not distinguish ports: such a page can set the CSRF token, and send it too."""
    made = installation.run("keys", "create", "--agent", "prey").strip().split("_")[1]
    forged = (
        "<!doctype html><title>Evil</title><script>document.cookie = 'frontdesk_form=chosen; path=/'</script>"
        f'<form method="post" action="{installation.url}/access/keys/{made}/revoke">'
        '<input name="form_token" value="chosen"><button>Win a prize</button></form>'
    )
    with window(chromium, installation.url) as context:
        page = context.new_page()
        page.route("http://127.0.0.1:9/**", lambda route: route.fulfill(body=forged, content_type="text/html"))
        page.goto("http://127.0.0.1:9/")
        with page.expect_response("**/revoke") as answered:
            page.get_by_role("button").click()
        assert answered.value.status == 403
        page.goto("/access?keys=all")
        expect(page.get_by_role("row").filter(has_text=made)).to_contain_text("works")


def test_all_of_it_is_read_without_scripts(chromium: Browser, installation: Installation) -> None:
    installation.run("keys", "create", "--agent", "reader", "--name", "to be read", "--scope", "tools:read")
    with window(chromium, installation.url, scripts=False) as context:
        page = context.new_page()
        page.goto("/access")
        row = page.get_by_role("row").filter(has_text="to be read")
        expect(row).to_contain_text("tools:read")
        for heading in ("Keys", "Denied calls", "Agents that send their id as a parameter", "Trusted issuers"):
            expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        row.get_by_text("Revoke", exact=True).click()
        row.get_by_role("button", name="Yes, revoke").click()
        expect(page.get_by_role("status")).to_contain_text("no longer works")


@shows("WEB-SAFE")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_somebody_signs_in_at_an_issuer_on_another_site(
    chromium: Browser, tmp_path: Path, issuer: Issuer, scripts: bool
) -> None:
    """The browser does not send strict same-site cookies when another site leads it back."""
    with listen() as free:
        address = address_of(free)
    issuer.clients["pages"] = [f"{address}/sign-in/back"]
    known = [{"issuer": issuer.url, "sign_in": {"client_id": "pages", "name": "Corp"}}]
    settings = {
        "FRONTDESK_PORT": address.rpartition(":")[2],
        "FRONTDESK_REQUIRE_AUTH": "true",
        "FRONTDESK_ISSUERS": json.dumps(known),
    }
    with open_desk(tmp_path / "data", **settings) as desk, window(chromium, desk.url, scripts=scripts) as context:
        page = context.new_page()
        page.goto("/access?keys=all")
        page.get_by_role("link", name="Sign in with Corp").click()
        page.wait_for_url("**/access?keys=all")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_title("Sign in · Frontdesk")
