"""Chat messages as the platform looks at them: what is wrong with one is said, and the last ones can be read."""

from pydantic import ValidationError
from starlette.responses import JSONResponse

from frontdesk.platform.local.standin import StandIn
from frontdesk.platform.model import ChatMessageRequest
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.platform.asked import Asked, problem, unfit


async def take(standin: StandIn, asked: Asked) -> ASGIApp:
    """`POST /agents/real-time-threat-protection/chat-message`."""
    if not asked.visit.said.get("content-type", "").lower().startswith("application/json"):
        return problem(415, "unsupported_media_type", "The Content-Type must be application/json")
    try:
        said = ChatMessageRequest.model_validate_json(asked.body, by_alias=True, by_name=False)
    except ValidationError as error:
        return unfit("The chat message is not as it should be", error)
    kept = said.model_dump(mode="json", by_alias=True)
    standin.chats.append({**kept, "agentId": asked.visit.said.get("x-ms-agentid")})
    return JSONResponse({})
