"""A question that the agent asks the person in a form of the editor's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from frontdesk.loop.schemas import inlined
from frontdesk.loop.tools import Given, Tool, ToolOutcome, problems_of
from frontdesk.surfaces.acp.editor.asking import PERSON_SECONDS
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.wire.model import Gone, RpcError
from frontdesk.surfaces.acp.wire.words import AcceptElicitationResponse, elicited

NAME = "ask_person"
DESCRIPTION = (
    "Ask the person one question and wait for the answer, where going on without it would be a guess. "
    "Give options where there are a few good answers."
)
UNANSWERED = ToolOutcome("The person did not answer; go on with what you know, or say what you need.", ok=False)


class Question(Given):
    """What to ask."""

    question: str = Field(min_length=1, max_length=2000, description="The question, understandable by itself")
    options: list[str] = Field(default_factory=list, max_length=20, description="Answers to choose from, if any")


@dataclass(frozen=True, slots=True)
class Questions:
    """`sent_id` is under which id the editor knows a call."""

    editor: Editor
    session_id: str
    sent_id: Callable[[str], str]

    def tool(self) -> Tool:
        schema = inlined(Question.model_json_schema())
        parameters = {key: schema[key] for key in schema if key != "description"}
        return Tool(NAME, DESCRIPTION, parameters, self._unnamed, run_call=self._ask, seconds=PERSON_SECONDS)

    async def _unnamed(self, given: Mapping[str, Any]) -> ToolOutcome:
        return await self._ask("", given)

    async def _ask(self, call_id: str, given: Mapping[str, Any]) -> ToolOutcome:
        try:
            question = Question.model_validate(given)
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {problems_of(error)}", ok=False)
        answer: Mapping[str, Any] = {"type": "string", "title": "Answer"}
        if question.options:
            answer = {**answer, "enum": question.options}
        asked = {
            "mode": "form",
            "toolCallId": self.sent_id(call_id),
            "message": question.question,
            "requestedSchema": {"type": "object", "properties": {"answer": answer}, "required": ["answer"]},
        }
        try:
            said = await self.editor.ask("elicitation/create", self.session_id, asked, PERSON_SECONDS)
        except (RpcError, TimeoutError, Gone):
            return UNANSWERED
        match elicited(said):
            case AcceptElicitationResponse(content={"answer": str(text)}) if text:
                return ToolOutcome(text)
            case _:
                return UNANSWERED
