"""Faults on the wire: how they are written, and what a request meets where there is one."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from frontdesk.platform.local.answering import MOST_MS, delay_seconds
from frontdesk.platform.local.faults import Fault
from frontdesk.platform.local.standin import StandIn
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.platform.hanging import hang_up

MOST_BODY = 1024 * 1024
MOST_TIMES = 1_000_000
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4000}")
# How long the answer is, is the server's to say.
FRAMING = frozenset({"content-length", "transfer-encoding", "connection"})
BODILESS = frozenset({204, 205, 304})


class FaultAsked(BaseModel):
    """A fault as it is written in a request."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    status: Annotated[int, Field(ge=200, le=599)] = 503
    body: Annotated[str, Field(max_length=MOST_BODY)] = ""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    delay_ms: Annotated[int, Field(ge=0, le=MOST_MS)] = 0
    times: Annotated[int, Field(ge=1, le=MOST_TIMES)] | None = None
    close: bool = False

    @field_validator("headers", mode="after")
    @classmethod
    def _sendable(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(text) or name.lower() in FRAMING:
                raise ValueError(f"the header {name!r} cannot be sent so")
        return value

    def fault(self) -> Fault:
        return Fault(self.status, self.body, self.headers, self.delay_ms, self.times, self.close)


FAULTS: TypeAdapter[dict[str, FaultAsked | None]] = TypeAdapter(dict[str, FaultAsked | None])


def told(faults: Mapping[str, Fault]) -> dict[str, dict[str, object]]:
    """Faults as they were written."""
    return {part: FaultAsked.model_validate(_fields(fault)).model_dump(by_alias=True) for part, fault in faults.items()}


async def met(standin: StandIn, part: str) -> ASGIApp | None:
    """What a request to this part meets instead of an answer, once its delay is over; None where all is well."""
    fault = standin.faults.take(part)
    if fault is None:
        return None
    if fault.delay_ms:
        await standin.sleep(delay_seconds(fault.delay_ms))
    if fault.close:
        return hang_up
    # A type that was asked for is sent; otherwise it is what it looks like.
    typed = any(name.lower() == "content-type" for name in fault.headers)
    body = "" if fault.status in BODILESS else fault.body
    return Response(body, fault.status, dict(fault.headers), media_type=None if typed else "text/plain")


def _fields(fault: Fault) -> dict[str, object]:
    return {
        "status": fault.status,
        "body": fault.body,
        "headers": dict(fault.headers),
        "delayMs": fault.delay_ms,
        "times": fault.times,
        "close": fault.close,
    }
