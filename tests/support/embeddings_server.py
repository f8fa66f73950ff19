"""Runs a server on a free loopback port that embeds like OpenAI's API and Ollama, and fails as tests configure."""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.serving import serve

WIDTH = 6

Spoil = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class EmbeddingCall:
    """One received request."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(slots=True)
class EmbeddingsServer:
    """`statuses` are the first answers, one a request. `key` is the only accepted one; `spoil` changes an answer."""

    url: str = ""
    key: str | None = None
    statuses: list[int] = field(default_factory=list[int])
    spoil: Spoil | None = None
    asked: list[EmbeddingCall] = field(default_factory=list[EmbeddingCall])

    async def openai(self, request: Request) -> Response:
        texts, refused = await self._heard(request)
        # In reverse: the API does not promise the order of the answer.
        data = [{"object": "embedding", "index": row, "embedding": vector(texts[row])} for row in range(len(texts))][
            ::-1
        ]
        return refused or self._told({"object": "list", "data": data, "model": "any"})

    async def ollama(self, request: Request) -> Response:
        texts, refused = await self._heard(request)
        return refused or self._told({"model": "any", "embeddings": [vector(text) for text in texts]})

    async def _heard(self, request: Request) -> tuple[list[str], Response | None]:
        body = await request.json()
        self.asked.append(EmbeddingCall(request.url.path, dict(request.headers), body))
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            # Like the real one, which repeats its input.
            message = f"Incorrect API key provided: {request.headers.get('authorization')}"
            return [], JSONResponse({"error": {"message": message}}, 401)
        if self.statuses:
            return [], Response("not now", self.statuses.pop(0))
        return body["input"], None

    def _told(self, answer: dict[str, Any]) -> Response:
        told = self.spoil(answer) if self.spoil else answer
        return told if isinstance(told, Response) else Response(json.dumps(told), media_type="application/json")


def vector(text: str) -> list[float]:
    """The server's vector for a text: any direction, always the same, and not of length one."""
    seed = int.from_bytes(sha256(text.encode()).digest()[:4], "big")
    return [float(number) for number in 3 * np.random.default_rng(seed).normal(size=WIDTH)]


@contextmanager
def open_embeddings_server(key: str | None = None) -> Generator[EmbeddingsServer]:
    """Run it until the end of the block."""
    server = EmbeddingsServer(key=key)
    routes = [
        Route("/v1/embeddings", server.openai, methods=["POST"]),
        Route("/api/embed", server.ollama, methods=["POST"]),
    ]
    with serve(Starlette(routes=routes)) as address:
        server.url = address
        yield server
