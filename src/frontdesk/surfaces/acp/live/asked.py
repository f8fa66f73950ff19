"""Requests that the protocol's SDK has no words for."""

from pydantic import BaseModel, Field

from frontdesk.surfaces.acp.wire.words import ContentBlock


class SetTitle(BaseModel):
    """`session/set_title`."""

    session_id: str = Field(alias="sessionId")
    title: str


class Steering(BaseModel):
    """`_session/steering`, as other agents take it."""

    session_id: str = Field(alias="sessionId")
    prompt: list[ContentBlock]
