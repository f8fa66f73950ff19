"""API keys as text, and what a stored one says."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.identity import keys
from frontdesk.identity.keys import ALPHABET, ApiKey

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def stored(secret: str, **values: object) -> ApiKey:
    return ApiKey("A" * 12, keys.hash_secret(secret), "n", "agent-1", None, None, NOW, **values)  # pyright: ignore[reportArgumentType] - the test names fields


@pytest.mark.parametrize("prefix", keys.KEY_PREFIXES)
def test_a_minted_key_reads_back(prefix: str) -> None:
    key_id, secret, text = keys.generate_key(prefix)
    assert text.startswith(f"{prefix}{key_id}_")
    assert keys.parse_key(text) == (key_id, secret)
    assert stored(secret).matches(secret)
    assert not stored(secret).matches(secret[:-1])


@given(st.integers(min_value=3), st.sampled_from(ALPHABET), st.sampled_from(keys.KEY_PREFIXES))
def test_a_mistyped_letter_is_caught(position: int, letter: str, prefix: str) -> None:
    text = keys.generate_key(prefix)[2]
    place = position % len(text)
    wrong = text[:place] + letter + text[place + 1 :]
    assert wrong == text or keys.parse_key(wrong) is None


@given(st.text(max_size=120))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert keys.parse_key(text) is None
    assert keys.parse_key(f"fd_{text}") is None
    assert keys.parse_key(f"zm_{text}") is None


def test_two_keys_are_never_alike() -> None:
    assert len({keys.generate_key()[2] for _ in range(100)}) == 100


def test_a_key_works_until_it_expires_or_is_revoked() -> None:
    assert stored("s").works_at(NOW)
    assert stored("s", expires_at=NOW + timedelta(1)).works_at(NOW)
    assert not stored("s", expires_at=NOW).works_at(NOW)
    assert not stored("s", revoked_at=NOW).works_at(NOW)
    assert not stored("s", is_active=False).works_at(NOW)


def test_a_key_from_elsewhere_is_known_by_its_hash() -> None:
    text = "zm_" + "0123456789abcdef" * 4
    digest = hashlib.sha256(text.encode()).digest()
    assert keys.parse_key(text) == (digest.hex()[:12], text)
    assert keys.hash_imported_key(text, hashed=False) == (digest, "zm_***abcdef")
    assert keys.hash_imported_key(digest.hex(), hashed=True) == (digest, "zm_***")
    assert ApiKey(digest.hex()[:12], digest, "n", None, "ann", None, NOW).matches(text)
    for wrong in (text.upper(), text[:-1], f"{text}0", text.replace("zm_", "fd_")):
        assert keys.parse_key(wrong) is None
        with pytest.raises(Invalid):
            keys.hash_imported_key(wrong, hashed=False)


@pytest.mark.parametrize("own", [False, True])
def test_a_successor_has_the_rights_and_the_lifetime_of_the_old_one(*, own: bool) -> None:
    old = stored("s", own=own, expires_at=NOW + timedelta(days=30), last_used_at=NOW)
    new, text = keys.rotated_key(old, NOW + timedelta(days=10))
    assert text.startswith("zm_" if own else "fd_")
    assert new.preview == f"{text[:3]}***{text[-6:]}"
    assert (new.expires_at, new.replaces, new.last_used_at) == (NOW + timedelta(days=40), old.id, None)
    parsed = keys.parse_key(text)
    assert parsed is not None
    assert (new.id, new.matches(parsed[1]), old.matches(parsed[1])) == (parsed[0], True, False)
