"""The embedder that the settings ask for."""

from pydantic import SecretStr

from frontdesk.embedding.port import Embedder


def embedder_for(source: str, model: str | None, key: SecretStr | None) -> Embedder | None:
    """`builtin`, `off`, or the address of an embeddings API; what is not asked for is not imported."""
    if source == "off":
        return None
    if source == "builtin":
        from frontdesk.embedding.builtin import BuiltinEmbedder  # noqa: PLC0415

        return BuiltinEmbedder()
    from frontdesk.embedding.remote import RemoteEmbedder  # noqa: PLC0415

    return RemoteEmbedder(source, model, key)
