"""The settings decide which embedder there is."""

from pydantic import SecretStr

from frontdesk.embedding.builtin import BuiltinEmbedder
from frontdesk.embedding.choose import embedder_for
from frontdesk.embedding.remote import RemoteEmbedder


def test_the_builtin_one_an_address_or_none_can_be_chosen() -> None:
    assert isinstance(embedder_for("builtin", None, None), BuiltinEmbedder)
    assert isinstance(embedder_for("http://127.0.0.1:11434", "some-model", SecretStr("key")), RemoteEmbedder)
    assert embedder_for("off", None, None) is None
