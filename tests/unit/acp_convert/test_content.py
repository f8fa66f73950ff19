"""What an editor's prompt comes to."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.host import Media
from frontdesk.interfaces.acp.convert import MAX_BYTES, convert_prompt, parse_command, strip_context
from frontdesk.interfaces.acp.jsonrpc import INVALID_PARAMS, RpcError
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
