"""What the protocol's registry takes in: a manifest of the release at hand, and an icon in the colour of the text."""

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

from frontdesk import __version__
from tests.support.desk import ROOT

ENTRY = ROOT / "docs/registry/frontdesk"
SVG = "{http://www.w3.org/2000/svg}"


def manifest() -> dict[str, Any]:
    return json.loads(ENTRY.joinpath("agent.json").read_text())


def test_the_manifest_names_the_folder_and_this_release() -> None:
    entry = manifest()
    assert entry["id"] == ENTRY.name
    assert entry["version"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert entry["name"]
    assert entry["description"]


def test_the_manifest_starts_what_an_editor_speaks_to() -> None:
    started = manifest()["distribution"]["uvx"]
    assert started == {"package": f"frontdesk@{__version__}", "args": ["acp"]}


def test_the_icon_is_small_and_has_no_colour_of_its_own() -> None:
    text = ENTRY.joinpath("icon.svg").read_text()
    icon = ET.fromstring(text)
    assert icon.tag == f"{SVG}svg"
    assert (icon.get("width"), icon.get("height"), icon.get("viewBox")) == ("16", "16", "0 0 16 16")
    colours = {value for node in icon.iter() for key in ("fill", "stroke") if (value := node.get(key)) is not None}
    assert colours == {"none", "currentColor"}
