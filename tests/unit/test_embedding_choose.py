"""The settings decide which embedder there is."""

from pydantic import SecretStr

from frontdesk.embedding.builtin import BuiltinEmbedder
from frontdesk.embedding.embedder import open_embedder
from frontdesk.embedding.remote import RemoteEmbedder


def test_the_builtin_one_an_address_or_none_can_be_chosen() -> None:
    assert isinstance(open_embedder("builtin", None, None), BuiltinEmbedder)
    assert isinstance(open_embedder("http://127.0.0.1:11434", "some-model", SecretStr("key")), RemoteEmbedder)
    assert open_embedder("off", None, None) is None
