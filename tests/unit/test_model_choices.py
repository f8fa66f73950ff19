"""Which models can be chosen, what each can see and hear, and what becomes of pictures and sounds it cannot take."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import known_model_names

from frontdesk.agents.embedded.resources import MAX_MODELS, list_model_choices, newest_models
from frontdesk.llm.access import (
    ANTHROPIC_DEFAULT,
    OFFLINE,
    OPENAI_DEFAULT,
    ModelAccess,
    accepted_media,
    split_model_name,
)
from frontdesk.llm.messages import (
    estimate_tokens,
    message_text,
    prompt_media,
    prompt_text,
    replace_unfit_media,
    user_message,
)
from frontdesk.llm.models import model_profile
from tests.requirements import shows

KEY = SecretStr("sk-1")
PICTURE = BinaryContent(b"png", media_type="image/png")
SOUND = BinaryContent(b"wav", media_type="audio/wav")


def named(access: ModelAccess) -> list[str]:
    return [one.name for one in list_model_choices(access, known_model_names(), model_profile)]


def prompts(messages: Sequence[ModelMessage]) -> list[UserPromptPart]:
    return [part for one in messages for part in one.parts if isinstance(part, UserPromptPart)]


@pytest.mark.parametrize(
    ("access", "first", "providers"),
    [
        (ModelAccess(), OFFLINE, {OFFLINE}),
        (ModelAccess(anthropic_key=KEY), ANTHROPIC_DEFAULT, {"anthropic"}),
        (ModelAccess(openai_key=KEY), OPENAI_DEFAULT, {"openai"}),
        (ModelAccess(openai_key=KEY, anthropic_key=KEY), ANTHROPIC_DEFAULT, {"openai", "anthropic"}),
        (ModelAccess("openai:gpt-6-sol", KEY, None, KEY), "openai:gpt-6-sol", {"openai", "anthropic"}),
        (ModelAccess("openai:mine", KEY, "http://127.0.0.1/v1"), "openai:mine", {"openai"}),
    ],
)
def test_the_default_is_first_and_only_providers_with_a_key_are_asked(
    access: ModelAccess, first: str, providers: set[str]
) -> None:
    names = named(access)
    assert names[0] == first
    assert {split_model_name(name)[0] for name in names} == providers
    assert len(names) == len(set(names)) <= MAX_MODELS


def test_behind_an_address_of_ones_own_only_the_model_that_is_set_is_known() -> None:
    assert named(ModelAccess("openai:mine", KEY, "http://127.0.0.1/v1")) == ["openai:mine"]


def test_the_newest_are_first_and_no_model_is_there_twice_or_for_another_purpose() -> None:
    known = ["p:a-4-5", "p:a-5-5-20260101", "p:a-5-5", "p:a-5", "p:a-10", "q:a-9", "p:a-realtime-11", "p:a-latest"]
    assert newest_models(known, "p") == ["p:a-10", "p:a-5-5", "p:a-5", "p:a-4-5"]
    every = named(ModelAccess(openai_key=KEY))
    assert not [name for name in every if any(word in name for word in ("2025", "2026", "realtime", "search"))]
    assert "openai:gpt-audio-mini" in every, "it talks, and takes sounds"


def test_a_choice_says_what_the_model_takes() -> None:
    def profile(name: str) -> Mapping[str, Any]:
        return {"supports_thinking": name == "openai:thinker", "supports_image_input": name != "openai:gpt-5-blind"}

    one, two, three = (
        list_model_choices(ModelAccess(name, openai_url="x"), (), profile)[0]
        for name in ("openai:thinker", "openai:gpt-5-blind", "google:gemini-seer")
    )
    assert (one.title, one.efforts, one.images, one.sounds) == ("thinker", ("low", "medium", "high"), False, False)
    assert (two.efforts, two.images, two.sounds) == ((), False, False)
    assert (three.images, three.sounds) == (True, True)


def test_a_default_whose_library_is_not_installed_is_listed_all_the_same() -> None:
    assert named(ModelAccess("google:gemini-3")) == ["google:gemini-3"]
    assert model_profile("openai/gpt-6-luna") == model_profile("openai:gpt-6-luna") != model_profile(OFFLINE)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (OFFLINE, (True, True)),
        ("anthropic:claude-sonnet-5-5", (True, False)),
        ("openai/gpt-6-luna", (True, False)),
        ("openai:gpt-3.5-turbo", (False, False)),
        ("openai:gpt-4", (False, False)),
        ("openai:gpt-4.1", (True, False)),
        ("openai:gpt-audio-mini", (False, True)),
        ("google:gemini-3", (True, True)),
        ("deepseek:deepseek-chat", (False, False)),
        ("openai:o3", (True, False)),
        ("openai:o3-mini", (False, False)),
        ("openrouter:openai/o3-pro", (True, False)),
        ("ollama:marco-o1", (False, False)),
        ("openai:gpt-4o", (True, False)),
        ("openai:gpt-oss-120b", (False, False)),
        ("openai:qwen3", (False, False)),
        ("openai:qwen3-vl:8b", (True, False)),
        ("openrouter:anthropic/claude-sonnet-5-5", (True, False)),
        ("anthropic:claude-2.1", (False, False)),
        ("google:gemma-2-9b", (False, False)),
        ("openai:vllm-served", (False, False)),
        ("nobody:knows", (False, False)),
        ("", (False, False)),
    ],
)
@shows("KEPT-11")
def test_what_a_model_sees_and_hears_is_told_by_its_name(name: str, expected: tuple[bool, bool]) -> None:
    assert accepted_media(name) == expected


@shows("KEPT-11")
@pytest.mark.parametrize("said", ["openai:mine", "openai/mine"])
def test_the_operator_says_of_a_model_that_it_takes_pictures(said: str) -> None:
    assert accepted_media("openai:mine", (said,)) == (True, False)
    assert accepted_media("openai:mine-too", (said,)) == (False, False)
    access = ModelAccess("openai:mine", KEY, "http://127.0.0.1/v1", image_models=(said,))
    assert list_model_choices(access, (), model_profile)[0].images


@given(st.text())
def test_any_name_is_told_from(name: str) -> None:
    assert all(isinstance(one, bool) for one in accepted_media(name))


def test_words_are_found_beside_a_picture_and_a_picture_takes_room() -> None:
    message = user_message("what is this?", [PICTURE])
    assert message_text(message) == "what is this?"
    assert estimate_tokens(message) > estimate_tokens(user_message("what is this?")) + 1000
    silent = prompts([user_message("  ", [PICTURE])])[0]
    assert (prompt_text(silent), prompt_media(silent)) == ("", [PICTURE])


def test_what_a_model_cannot_take_is_told_to_it_in_words() -> None:
    talk: list[ModelMessage] = [user_message("here", [PICTURE, SOUND]), ModelResponse(parts=[TextPart("ok")])]
    (part,) = prompts(replace_unfit_media(talk, images=True, sounds=False))
    assert list(prompt_media(part)) == [PICTURE]
    assert prompt_text(part) == "here\n[a sound was sent here, which you cannot take]"
    assert replace_unfit_media(talk, images=True, sounds=True) == talk
    assert not prompt_media(prompts(replace_unfit_media(talk, images=False, sounds=False))[0])


def test_what_came_with_words_that_were_never_answered_is_not_sent_again() -> None:
    lost, asked = user_message("look", [PICTURE]), user_message("and this?", [PICTURE])
    first, second = prompts(replace_unfit_media([lost, asked], images=True, sounds=True))
    assert not prompt_media(first)
    assert "never got" in prompt_text(first)
    assert list(prompt_media(second)) == [PICTURE]
    assert replace_unfit_media([lost, ModelRequest(parts=[])], images=True, sounds=True)[0] == lost
