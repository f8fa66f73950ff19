"""API keys as text, and what a stored one says."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.identity import keys
from frontdesk.identity.keys import ALPHABET, ApiKey

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def stored(secret: str, **values: object) -> ApiKey:
    return ApiKey("A" * 12, keys.hash_secret(secret), "n", "agent-1", None, None, NOW, **values)  # pyright: ignore[reportArgumentType] - the test names fields


def test_a_minted_key_reads_back() -> None:
    key_id, secret, text = keys.mint()
    assert text.startswith(f"fd_{key_id}_")
    assert keys.parse(text) == (key_id, secret)
    assert stored(secret).matches(secret)
    assert not stored(secret).matches(secret[:-1])


@given(st.integers(min_value=3), st.sampled_from(ALPHABET))
def test_a_mistyped_letter_is_caught(position: int, letter: str) -> None:
    text = keys.mint()[2]
    place = position % len(text)
    wrong = text[:place] + letter + text[place + 1 :]
    assert wrong == text or keys.parse(wrong) is None


@given(st.text(max_size=120))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert keys.parse(text) is None
    assert keys.parse(f"fd_{text}") is None


def test_two_keys_are_never_alike() -> None:
    assert len({keys.mint()[2] for _ in range(100)}) == 100


def test_a_key_works_until_it_expires_or_is_revoked() -> None:
    assert stored("s").works_at(NOW)
    assert stored("s", expires_at=NOW + timedelta(1)).works_at(NOW)
    assert not stored("s", expires_at=NOW).works_at(NOW)
    assert not stored("s", revoked_at=NOW).works_at(NOW)
