"""What axe-core finds on a page: the rules that people who cannot see or point rely on."""

from functools import cache
from pathlib import Path

from playwright.sync_api import Page

from tests.support.npm import Packages

PACKAGES = Packages(Path(__file__).parent)
GRAVE = ("serious", "critical")


@cache
def _program() -> str:
    return PACKAGES.install().joinpath("axe-core/axe.min.js").read_text()


def findings(page: Page) -> list[str]:
    """What is serious or worse, each with its rule and where."""
    # By the browser's own console: the page's policy lets no script in, which is as it should be.
    page.evaluate(_program())
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {node['html'][:200]}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]
