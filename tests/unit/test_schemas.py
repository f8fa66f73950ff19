"""JSON schemas written out: what a model is shown holds no reference that it would have to follow."""

import json
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from frontdesk.llm.tools import ToolInput, ToolOutcome, inline_definitions, typed_tool


class Colour(StrEnum):
    """How it looks."""

    RED = "red"
    BLUE = "blue"


class Wheel(BaseModel):
    title: str
    colour: Colour = Field(Colour.RED, description="Of the wheel.")


class Cart(ToolInput):
    wheels: list[Wheel]
    spare: Wheel | None = None
    colours: dict[str, Colour] = Field(default_factory=dict[str, Colour])


class Branch(BaseModel):
    name: str
    branches: list["Branch"] = Field(default_factory=list["Branch"])


def test_a_definition_stands_where_it_is_referred_to_with_what_was_said_beside_it() -> None:
    told = inline_definitions(Cart.model_json_schema())
    colour = {"default": "red", "description": "Of the wheel.", "enum": ["red", "blue"], "type": "string"}
    wheel = {"properties": {"title": {"type": "string"}, "colour": colour}, "required": ["title"], "type": "object"}
    assert told["properties"]["wheels"] == {"items": wheel, "type": "array"}
    assert told["properties"]["spare"] == {"anyOf": [wheel, {"type": "null"}], "default": None}
    assert told["properties"]["colours"]["additionalProperties"]["enum"] == ["red", "blue"]
    assert "$" not in json.dumps(told)


def test_what_holds_itself_takes_anything_inside() -> None:
    branches = inline_definitions(Branch.model_json_schema())["properties"]["branches"]
    assert branches == {"type": "array", "items": {}}


def test_data_in_a_schema_is_left_as_it_is() -> None:
    data: dict[str, Any] = {"title": "kept", "$ref": "#/$defs/none"}
    schema = {"title": "dropped", "default": data, "examples": [data], "const": data, "enum": [data]}
    assert inline_definitions(schema) == {key: schema[key] for key in ("default", "examples", "const", "enum")}


def test_a_tool_of_ours_shows_its_arguments_whole() -> None:
    async def run(_given: Cart) -> ToolOutcome:
        return ToolOutcome("")

    shown = typed_tool("cart", "Makes a cart.", Cart, run).parameters
    assert "$" not in json.dumps(shown)
    assert set(shown["properties"]) == {"wheels", "spare", "colours"}
