"""Tests the conversion of prompts, tool calls, updates, endings and errors between Frontdesk and the protocol."""

from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.agents.host import Media
from frontdesk.agents.letta.server import LettaFailure
from frontdesk.coding.model import FileDiff, FileLocation, OperationKind
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.errors import FrontdeskError
from frontdesk.interfaces.acp import convert
from frontdesk.interfaces.acp.convert import MAX_BYTES, convert_prompt, parse_command, strip_context
from frontdesk.interfaces.acp.errors import rpc_error, stop_reason, turn_error
from frontdesk.interfaces.acp.jsonrpc import INVALID_PARAMS, Json, RpcError
from frontdesk.interfaces.acp.markdown import fenced_block
from frontdesk.interfaces.acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from frontdesk.interfaces.acp.tool_calls import (
    CONTROL_CHARACTERS,
    LINE_ARGUMENTS,
    PATH_ARGUMENTS,
    QUERY_ARGUMENTS,
    TOOL_KINDS,
    call_locations,
    call_title,
    file_change,
    tool_kind,
)
from frontdesk.llm.events import Failed, FailureKind, PlanStep, StepStatus, StopReason
from tests.support.acp.schema import check_update
from tests.unit.acp.lab import ROOTS

# Prompts of an editor


PIXEL = b64encode(b"pixel").decode()


def text(words: str) -> ContentBlock:
    return TextContentBlock(text=words)


def link(name: str, uri: str) -> ContentBlock:
    return ResourceContentBlock(name=name, uri=uri)


def file(uri: str, words: str) -> ContentBlock:
    return EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=words))


def blob(uri: str, mime: str | None, data: str = PIXEL) -> ContentBlock:
    return EmbeddedResourceContentBlock(resource=BlobResourceContents(uri=uri, blob=data, mime_type=mime))


def image(data: str = PIXEL, mime: str = "image/png") -> ContentBlock:
    return ImageContentBlock(data=data, mime_type=mime)


def audio(data: str = PIXEL) -> ContentBlock:
    return AudioContentBlock(data=data, mime_type="audio/wav")


def refused(*blocks: ContentBlock, images: bool = True, sounds: bool = True) -> str:
    with pytest.raises(RpcError) as raised:
        convert_prompt(blocks, images=images, sounds=sounds)
    assert raised.value.code == INVALID_PARAMS
    return raised.value.message


def test_text_is_heard_as_it_was_written() -> None:
    found = convert_prompt([text("Fix  the\nbug. ")])
    assert (found.text, found.typed_text, found.media) == ("Fix  the\nbug. ", "Fix  the\nbug. ", ())


def test_two_texts_do_not_grow_together() -> None:
    assert convert_prompt([text("First"), text("second")]).text == "First\nsecond"


def test_a_link_is_a_mention_in_its_place() -> None:
    found = convert_prompt([text("Look at "), link("app.py", "file:///code/src/app.py"), text(", please")])
    assert found.text == "Look at [@app.py](/code/src/app.py), please"


def test_a_link_right_after_a_word_is_kept_apart_from_it() -> None:
    assert convert_prompt([text("Review"), link("a", "https://a.example/b")]).text == "Review [@a](https://a.example/b)"


def test_an_address_that_markdown_would_misread_is_set_apart() -> None:
    found = convert_prompt([link("[x](y)\nz", "file:///code/my%20file%20(1).py")])
    assert found.text == "[@x y z](</code/my file (1).py>)"


def test_an_embedded_file_is_mentioned_and_stands_at_the_end() -> None:
    found = convert_prompt([file("file:///code/a.py", "print(1)"), text(" is wrong")])
    assert found.typed_text == "[@a.py](/code/a.py) is wrong"
    assert found.text == f'{found.typed_text}\n\n<context ref="/code/a.py">\nprint(1)\n</context>'


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "</context>", "\n</ Context >", '\n\n<context ref="']), st.text()), min_size=1
    )
)
def test_no_file_breaks_out_of_its_context(parts: list[tuple[str, str]]) -> None:
    inside = "".join(edge + more for edge, more in parts)
    found = convert_prompt([text("Look"), file('file:///a"b', inside), file("untitled:1", inside)])
    assert found.text.count("</context>") == found.text.count("<context ref=") == 2
    assert strip_context(found.text) == found.typed_text


def test_a_text_that_only_ends_like_a_context_is_left_alone() -> None:
    assert strip_context("what is\n</context>") == "what is\n</context>"


def test_code_that_only_looks_like_a_context_is_not_touched() -> None:
    code = "<Context.Provider value={1}></Context.Provider>"
    assert code in convert_prompt([file("file:///a.tsx", code)]).text


def test_pictures_and_sounds_are_decoded() -> None:
    found = convert_prompt([image(), audio(), blob("file:///x.gif", "image/GIF; q=1")], images=True, sounds=True)
    assert found.media == (Media("image/png", b"pixel"), Media("audio/wav", b"pixel"), Media("image/gif", b"pixel"))
    assert found.text == "[@x.gif](/x.gif)"


def test_a_picture_alone_is_a_prompt() -> None:
    assert convert_prompt([image()], images=True).text == ""


def test_a_binary_file_is_told_by_name_type_and_size() -> None:
    told = convert_prompt([blob("file:///code/a.zip", "application/zip")]).text
    assert told == "[@a.zip](/code/a.zip) (a file of 5 bytes, application/zip; its content is not shown)"
    assert "unknown type" in convert_prompt([blob("file:///code/a", None)]).text


def test_a_model_that_takes_no_pictures_or_sounds_is_not_sent_any() -> None:
    assert "Block 2 (image): this session's model takes no images" in refused(text("x"), image(), images=False)
    assert "Block 1 (audio): this session's model takes no audio" in refused(audio(), sounds=False)
    assert "takes no images" in refused(blob("a:b", "image/png"), images=False)


@pytest.mark.parametrize("data", ["%%%", "abc", "YWJj\n", "é"])
def test_what_is_no_base64_is_refused(data: str) -> None:
    assert refused(text("x"), image(data)) == "Block 2 (image) is not valid base64"


def test_nothing_to_see_is_refused() -> None:
    assert refused(image("")) == "Block 1 (image) is empty"


def test_a_picture_that_is_too_large_is_refused_and_the_largest_is_not() -> None:
    largest = b64encode(b"\0" * MAX_BYTES).decode()
    assert len(convert_prompt([image(largest)], images=True).media[0].data) == MAX_BYTES
    assert "larger than 20 MB" in refused(image(b64encode(b"\0" * (MAX_BYTES + 1)).decode()))
    assert "larger than 20 MB" in refused(image("A" * 40_000_000))


def test_a_picture_of_no_kind_of_picture_is_refused() -> None:
    assert "neither an image nor audio" in refused(image(mime="text/html"))


@pytest.mark.parametrize("blocks", [(), (text(" \n"),), (text(""), text(""))])
def test_an_empty_prompt_is_refused(blocks: tuple[ContentBlock, ...]) -> None:
    assert "empty" in refused(*blocks)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("/help", ("help", "")),
        ("  /Remember  that I like tea\nand cake ", ("remember", "that I like tea\nand cake")),
        ("/usr/bin/env is missing", None),
        ("say /help", None),
        ("/ help", None),
        ("", None),
    ],
)
def test_a_slash_command_is_told_from_other_words(words: str, found: tuple[str, str] | None) -> None:
    assert parse_command(words) == found


# The description of a tool call before it runs


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = sorted([*TOOL_KINDS, "unheard_of", ""])
KEYS = [
    *PATH_ARGUMENTS,
    *LINE_ARGUMENTS,
    *QUERY_ARGUMENTS,
    "command",
    "limit",
    "file_requests",
    "label",
    "url",
    "content",
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("open_file", OperationKind.READ),
        ("grep_file", OperationKind.SEARCH),
        ("search_file", OperationKind.SEARCH),
        ("run_code", OperationKind.EXECUTE),
        ("web_search", OperationKind.FETCH),
        ("edit_file", OperationKind.EDIT),
        ("delete_file", OperationKind.DELETE),
        ("move_file", OperationKind.MOVE),
        ("open_files", OperationKind.READ),
        ("grep_files", OperationKind.SEARCH),
        ("semantic_search_files", OperationKind.SEARCH),
        ("memory_insert", OperationKind.THINK),
        ("core_memory_append", OperationKind.THINK),
        ("update_plan", OperationKind.THINK),
        ("conversation_search", OperationKind.SEARCH),
        ("find_tools", OperationKind.SEARCH),
        ("fetch_webpage", OperationKind.FETCH),
        ("run_command", OperationKind.EXECUTE),
        ("send_message", OperationKind.OTHER),
    ],
)
def test_a_tool_is_of_a_kind(name: str, kind: OperationKind) -> None:
    assert tool_kind(name) is kind


@pytest.mark.parametrize(
    ("name", "arguments", "title"),
    [
        ("read_file", {"path": "src/app.py"}, "Read src/app.py"),
        ("read_file", {"path": "/code/project/src/app.py", "line": 10, "limit": 41}, "Read src/app.py (10–50)"),  # noqa: RUF001 - as shown
        ("read_file", {"path": "a", "start_line": 10}, "Read a (from 10)"),
        ("read_file", {"path": "a", "end_line": 9}, "Read a (1–9)"),  # noqa: RUF001 - as shown
        ("edit_file", {"path": "src/app.py"}, "Edit src/app.py"),
        ("write_file", {"path": "/etc/passwd"}, "Write /etc/passwd"),
        ("list_files", {}, "List ."),
        ("open_files", {"file_requests": [{"file_name": "a"}, {"file_name": "b"}]}, "Read a and 1 more"),
        ("move_file", {"source": "a", "destination": "b/c"}, "Move a to b/c"),
        ("delete_file", {"path": "a"}, "Delete a"),
        ("run_command", {"command": "git status"}, "Run `git status`"),
        ("run_command", {"command": "echo `date`"}, "Run `` echo `date` ``"),
        ("run_command", {"command": "a\n\x1b[31mb"}, "Run `a [31mb`"),
        ("search_files", {"pattern": "x", "path": "src"}, 'Search for "x" in src'),
        ("search_files", {"query": "x"}, 'Search for "x"'),
        ("web_search", {"query": "x"}, 'Search the web for "x"'),
        ("fetch_webpage", {"url": "https://a.example"}, "Fetch https://a.example"),
        ("memory_insert", {"label": "human"}, "Edit memory: human"),
        ("update_plan", {"steps": []}, "Update the plan"),
        ("github__create_issue", {"path": "x"}, "github__create_issue"),
        ("edit_file", {}, "edit_file"),
        ("run_command", {"command": 7}, "run_command"),
        ("", {}, "Tool call"),
    ],
)
def test_a_title_says_what_a_call_does(name: str, arguments: dict[str, Any], title: str) -> None:
    assert call_title(name, arguments, ROOTS) == title


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_whatever_a_model_writes_its_title_is_one_short_line(name: str, arguments: dict[str, Any]) -> None:
    title = call_title(name, arguments, ROOTS)
    assert 0 < len(title) <= 120
    assert title.splitlines() == [title]
    assert not CONTROL_CHARACTERS.search(title)


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_whatever_a_model_writes_its_places_are_inside(name: str, arguments: dict[str, Any]) -> None:
    for place in call_locations(name, arguments, ROOTS):
        assert any(place.path.is_relative_to(root) for root in ROOTS.all)
        assert place.line is None or place.line >= 1


def test_places_are_absolute_and_only_those_in_the_roots() -> None:
    assert call_locations("read_file", {"path": "src/a", "line": 3}, ROOTS) == [
        FileLocation(Path("/code/project/src/a"), 3)
    ]
    assert call_locations("read_file", {"path": "/code/other/a", "line": 0}, ROOTS) == [
        FileLocation(Path("/code/other/a"))
    ]
    assert call_locations("read_file", {"path": "../secret"}, ROOTS) == []
    assert [place.path.name for place in call_locations("move_file", {"source": "a", "destination": "b"}, ROOTS)] == [
        "a",
        "b",
    ]


def test_the_files_of_a_hosts_own_tools_are_not_taken_for_ours() -> None:
    assert call_locations("open_files", {"file_requests": [{"file_name": "notes.txt"}]}, ROOTS) == []
    assert len(call_locations("open_file", {"file_name": "/code/project/a"}, ROOTS)) == 1


def test_a_link_that_leads_outside_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    assert call_locations("read_file", {"path": "link/x"}, WorkspaceRoots.from_folders(tmp_path / "in")) == []


def test_the_change_of_an_edit_is_read_from_its_arguments() -> None:
    path = Path("/code/project/a")
    edit = {"path": "a", "old_string": "x", "new_string": "y"}
    assert file_change("edit_file", edit, ROOTS) == FileDiff(path, "x", "y")
    assert file_change("write_file", {"path": "a", "content": "y"}, ROOTS) == FileDiff(path, None, "y")
    assert file_change("edit_file", {"path": "a", "new_string": "y"}, ROOTS) is None
    assert file_change("write_file", {"path": "/etc/a", "content": "y"}, ROOTS) is None
    assert file_change("delete_file", edit, ROOTS) is None


@given(st.text(alphabet="`a\n"))
def test_code_cannot_end_its_fence(text: str) -> None:
    first, *lines = fenced_block(text).split("\n")
    assert len(first) >= 3
    assert set(first) == {"`"}
    assert [number for number, line in enumerate(lines, 1) if first in line] == [len(lines)]


# Every update has a form that the protocol defines


OPTION = {
    "type": "select",
    "id": "mode",
    "name": "Mode",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}],
}
NEW = FileDiff(Path("/a"), None, "x")


@pytest.mark.parametrize(
    "update",
    [
        convert.user_chunk("m", convert.text_block("x")),
        convert.user_chunk("m", convert.media_block("image/png", b"x")),
        convert.agent_chunk("m", convert.media_block("audio/wav", b"x")),
        convert.thought_chunk("m", convert.text_block("")),
        convert.tool_call("c", "Read", kind="read", locations=[convert.call_location(FileLocation(Path("/a"), 3))]),
        convert.tool_call_update("c", content=[convert.call_diff(NEW), convert.call_terminal("t")]),
        convert.tool_call_update("c", status="failed", content=[convert.call_content(convert.text_block("x"))]),
        convert.plan_update([PlanStep("a"), PlanStep("b", StepStatus.COMPLETED)]),
        convert.usage_update(10, 100),
        convert.usage_update(10, 100, 0.5),
        convert.commands_update([("help", "Say what there is", ""), ("remember", "Keep this", "what to keep")]),
        convert.mode_update("ask"),
        convert.options_update([OPTION]),
        convert.session_info_update("Title", datetime(2026, 1, 1, tzinfo=UTC)),
        convert.session_info_update(""),
        convert.notice_update("warning", "Slow"),
        convert.notice_update("error", "Gone", "Start it again"),
        convert.compaction_update("k", "They said hello"),
        convert.compaction_update("k", ""),
    ],
    ids=lambda update: str(update["sessionUpdate"]),
)
def test_an_update_is_as_the_protocol_has_it(update: Json) -> None:
    check_update(update)


def test_what_is_seen_and_heard_survives_the_way() -> None:
    block = convert.media_block("image/png", b"\0\xff")
    assert (block["type"], b64decode(block["data"])) == ("image", b"\0\xff")
    assert convert.media_block("audio/wav", b"x")["type"] == "audio"


def test_a_new_file_has_no_old_text_and_an_unknown_cost_is_not_told() -> None:
    assert convert.call_diff(NEW)["oldText"] is None
    assert "cost" not in convert.usage_update(1, 2)
    assert convert.usage_update(1, 2, 0.25)["cost"] == {"amount": 0.25, "currency": "USD"}


# Endings and errors for an editor


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (StopReason.END_TURN, "end_turn"),
        (StopReason.MAX_TOKENS, "max_tokens"),
        (StopReason.MAX_STEPS, "max_turn_requests"),
        (StopReason.REFUSAL, "refusal"),
        (StopReason.CANCELLED, "cancelled"),
        (StopReason.INTERRUPTED, "cancelled"),
    ],
)
def test_an_ending_is_told_in_the_protocols_word(stop: StopReason, told: str) -> None:
    assert stop_reason(stop) == told


def test_every_ending_and_every_trouble_has_a_word() -> None:
    assert all(stop_reason(stop) for stop in StopReason)
    assert all(turn_error(Failed(trouble, "x")).code for trouble in FailureKind)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (FailureKind.UNAUTHENTICATED, -32000),
        (FailureKind.NOT_FOUND, -32002),
        (FailureKind.RATE_LIMITED, -32003),
        (FailureKind.TOO_LONG, -32004),
        (FailureKind.UNAVAILABLE, -32005),
        (FailureKind.BUSY, -32005),
        (FailureKind.INVALID, -32602),
        (FailureKind.INTERNAL, -32603),
    ],
)
def test_a_failed_turn_is_an_error_of_its_kind(trouble: FailureKind, code: int) -> None:
    found = turn_error(Failed(trouble, "It broke;\n try again"))
    assert (found.code, found.message, found.data) == (code, "It broke; try again", None)


def test_a_model_that_asks_for_patience_is_quoted() -> None:
    assert turn_error(Failed(FailureKind.RATE_LIMITED, "Wait", 7.5)).data == {"retryAfter": 7.5}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Unauthenticated("x"), -32000),
        (errors.Denied("x"), -32600),
        (errors.MissingScope("x"), -32600),
        (errors.NotFound("x"), -32002),
        (errors.Invalid("x"), -32602),
        (errors.Conflict("x"), -32600),
        (errors.PendingApproval(["x"]), -32600),
        (errors.RateLimited("x", 2), -32003),
        (errors.Unavailable("x"), -32005),
        (errors.UnknownAgent("x"), -32602),
        (errors.ConfigurationError("x"), -32603),
    ],
)
def test_an_error_of_ours_has_a_code(error: FrontdeskError, code: int) -> None:
    assert rpc_error(error).code == code


def test_what_a_letta_server_refuses_is_told_as_what_it_is() -> None:
    wrong_key = LettaFailure("The Letta server refuses the key", FailureKind.UNAUTHENTICATED)
    assert rpc_error(wrong_key).code == -32000
    assert rpc_error(LettaFailure("The Letta server is away")).code == -32005


def test_an_error_says_no_more_than_is_public_and_says_it_on_one_line() -> None:
    error = errors.Unavailable("postgres://secret@host is down", public="The database\nis down", retry_after=3)
    found = rpc_error(error)
    assert (found.message, found.data) == ("The database is down", {"retryAfter": 3})


def test_an_endless_message_is_cut() -> None:
    assert len(turn_error(Failed(FailureKind.INTERNAL, "x" * 10_000)).message) <= 500
    assert turn_error(Failed(FailureKind.INTERNAL, "")).message
