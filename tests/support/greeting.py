"""A made-up operation: one declaration and one function, offered by every interface."""

from pydantic import BaseModel, Field

from frontdesk.app import App
from frontdesk.identity.rights import IDENTITY_READ
from frontdesk.operations import (
    Answer,
    BuiltinAgentTool,
    Call,
    CommandLine,
    McpTool,
    Operation,
    OperationRequest,
    RestRoute,
)


class Greeting(OperationRequest):
    """Whom to greet."""

    name: str = Field(description="The name of whoever is greeted.")
    times: int = Field(1, ge=1, le=3, description="How often.")


class Greeted(BaseModel):
    """What was said."""

    words: str


async def greet(_app: App, call: Call, request: Greeting) -> Answer:
    words = " ".join([f"Hello {request.name}!"] * request.times)
    return Answer(f"{words} (to {call.caller.user_id})", Greeted(words=words))


GREET = Operation(
    name="greet",
    summary="Greet somebody",
    request=Greeting,
    run=greet,
    scopes=(IDENTITY_READ,),
    mcp=McpTool(title="Greet", description="Say hello.", response=Greeted),
    rest=RestRoute(method="POST", path="/greetings/{name}", response=Greeted),
    command=CommandLine(words="people greet", positional=("name",)),
    agents=BuiltinAgentTool(description="Say hello."),
)
