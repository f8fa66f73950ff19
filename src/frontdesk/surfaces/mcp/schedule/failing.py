"""How a schedule tool tells that something it depends on is down: in its own words, as a result."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec

from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.surfaces.mcp.tool import Result

P = ParamSpec("P")


def saying(failure: str, run: Callable[P, Awaitable[Result]]) -> Callable[P, Awaitable[Result]]:
    """The same work; what is not there just now is told as `<failure>: <why>`, or without a failure as why alone."""

    async def told(*given: P.args, **named: P.kwargs) -> Result:
        try:
            return await run(*given, **named)
        except Unavailable as error:
            raise FrontdeskError(f"{failure}: {error.public}" if failure else error.public) from error

    return told
