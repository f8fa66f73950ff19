"""What every adapter is made of: the platform as its framework asks it, and the connections that it keeps."""

import logging
import os
from collections.abc import Mapping
from types import TracebackType
from typing import ClassVar, Self

from frontdesk.platform.extensions.connections import Connections
from frontdesk.platform.extensions.tooling import Tooling
from frontdesk.platform.parsing import log
from frontdesk.platform.service import TIMEOUT_SECONDS


class Registration:
    """Keeps connections until the end of `async with`, or until it is told to clean up."""

    orchestrator: ClassVar[str]

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        connect_timeout: float = TIMEOUT_SECONDS,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._logger = logger or log
        self._tooling = Tooling(self.orchestrator, self._logger, environ)
        self._connections = Connections(self._logger, connect_timeout)
        self.config_service = self._tooling.service

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()
