"""Embeds texts with an OpenAI-compatible API or an Ollama server."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
import numpy as np
from pydantic import BaseModel, SecretStr, ValidationError

from frontdesk.embedding import Vectors
from frontdesk.errors import ConfigurationError, Unavailable

BATCH_SIZE = 64
CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
# Embedding a text again gives the same result, so a retry is safe. There is one try more than there are delays.
RETRY_DELAYS = (0.3, 1.0)
RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
# Three times the size of 64 vectors of 4,096 numbers.
MAX_RESPONSE_BYTES = 16_000_000
# More than the longest text of a tool, and less than the limit of any model.
MAX_TEXT_LENGTH = 8000


class _IndexedEmbedding(BaseModel):
    index: int
    embedding: list[float]


class _OpenAiResponse(BaseModel):
    data: list[_IndexedEmbedding]

    def rows(self) -> list[list[float]]:
        ordered = sorted(self.data, key=lambda one: one.index)
        if [one.index for one in ordered] != list(range(len(ordered))):
            raise ValueError("the numbers of the vectors do not count up")
        return [one.embedding for one in ordered]


class _OllamaResponse(BaseModel):
    embeddings: list[list[float]]

    def rows(self) -> list[list[float]]:
        return self.embeddings


class _RetryLater(Exception):
    """An error after which a retry may succeed."""


class RemoteEmbedder:
    """Embeds texts over HTTP: an address with a path (`http://host/v1`) is an OpenAI-compatible API, others Ollama."""

    def __init__(
        self, address: str, model: str | None, key: SecretStr | None = None, *, pauses: Sequence[float] = RETRY_DELAYS
    ) -> None:
        if not model:
            raise ConfigurationError(
                "FRONTDESK_EMBEDDINGS names an API, so FRONTDESK_EMBEDDINGS_MODEL must name a model"
            )
        address = address.rstrip("/")
        ollama = not urlsplit(address).path
        self.name = f"{model} at {address}"
        self._model = model
        self._host = urlsplit(address).netloc
        self._url = f"{address}/api/embed" if ollama else f"{address}/embeddings"
        self._answer: type[_OllamaResponse | _OpenAiResponse] = _OllamaResponse if ollama else _OpenAiResponse
        self._extra = {} if ollama else {"encoding_format": "float"}
        self._pauses = pauses
        self._width: int | None = None
        timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        self._client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False, headers=_auth_headers(key))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        batches = [texts[start : start + BATCH_SIZE] for start in range(0, len(texts), BATCH_SIZE)]
        rows = [await self._embed_batch(batch) for batch in batches]
        return np.concatenate(rows) if rows else np.empty((0, self._width or 0), dtype=np.float32)

    async def close(self) -> None:
        await self._client.aclose()

    async def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        for pause in self._pauses:
            try:
                return await self._ask(texts)
            except _RetryLater:
                await anyio.sleep(pause)
        try:
            return await self._ask(texts)
        except _RetryLater as error:
            raise Unavailable(f"The embeddings API at {self._host} {error}; try again shortly") from error

    async def _ask(self, texts: Sequence[str]) -> Vectors:
        # Some APIs refuse an empty text, and a blank means as little.
        body = {"model": self._model, "input": [text[:MAX_TEXT_LENGTH].strip() or " " for text in texts], **self._extra}
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                async with self._client.stream("POST", self._url, json=body) as response:
                    self._check(response.status_code)
                    content = await self._read(response)
        except (httpx2.HTTPError, TimeoutError) as error:
            raise _RetryLater(f"does not answer ({type(error).__name__})") from error
        return await anyio.to_thread.run_sync(self._vectors, content, len(texts))

    def _check(self, status: int) -> None:
        """Raise an error for a bad status. The response's text is left out, because it may repeat the key."""
        if status == 200:
            return
        if status in RETRY_STATUSES:
            raise _RetryLater(f"answers with status {status}")
        advice = {
            401: "check FRONTDESK_EMBEDDINGS_KEY",
            403: "check FRONTDESK_EMBEDDINGS_KEY",
            404: "check FRONTDESK_EMBEDDINGS and FRONTDESK_EMBEDDINGS_MODEL",
        }.get(status, "check FRONTDESK_EMBEDDINGS_MODEL")
        raise Unavailable(f"The embeddings API at {self._host} answers with status {status}; {advice}")

    async def _read(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            if len(content) > MAX_RESPONSE_BYTES:
                raise self._bad_response("an answer that does not end")
        return bytes(content)

    def _vectors(self, content: bytes, wanted: int) -> Vectors:
        try:
            found = np.array(self._answer.model_validate_json(content).rows(), dtype=np.float64)
        except (ValidationError, ValueError, OverflowError) as error:
            raise self._bad_response("something else") from error
        if found.ndim != 2 or len(found) != wanted:
            raise self._bad_response(f"{len(found)} for {wanted} texts")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._bad_response("vectors that are all zeros")
        if self._width not in (None, found.shape[1]):
            raise self._bad_response(f"{found.shape[1]} numbers each, and {self._width} before")
        self._width = found.shape[1]
        return (found / lengths).astype(np.float32)

    def _bad_response(self, instead: str) -> Unavailable:
        return Unavailable(
            f"The embeddings API at {self._host} was asked for vectors and gave {instead}; "
            "check FRONTDESK_EMBEDDINGS and FRONTDESK_EMBEDDINGS_MODEL"
        )


def _auth_headers(key: SecretStr | None) -> dict[str, str]:
    if key is None:
        return {}
    secret = key.get_secret_value().strip()
    # The HTTP library would show the whole header in its error message.
    if not secret.isascii() or not secret.isprintable():
        raise ConfigurationError("FRONTDESK_EMBEDDINGS_KEY holds characters that no key has; set it again")
    return {"authorization": f"Bearer {secret}"} if secret else {}
