"""Where the built-in agents take their turns: the models, and what was said."""

from collections.abc import Sequence

from pydantic_ai.models import known_model_names

from frontdesk.agents.embedded.choices import choices
from frontdesk.agents.embedded.making_room import MakingRoom
from frontdesk.agents.embedded.performance import Hold, Performance
from frontdesk.agents.embedded.store import AgentStore
from frontdesk.agents.embedded.talk.model import Scene
from frontdesk.agents.embedded.talk.recall import recalled
from frontdesk.agents.embedded.talk.store import TalkStore
from frontdesk.agents.embedded.talk.threads.store import ThreadStore
from frontdesk.agents.embedded.toolbox import Toolbox
from frontdesk.agents.host import ModelChoice, Prompt, Said
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import Work
from frontdesk.db.engine import Database
from frontdesk.loop.access import ModelAccess
from frontdesk.loop.models import Models, profile_of
from frontdesk.loop.tools import OwnTools


class Stage:
    """Everything of the built-in host that needs the model library."""

    def __init__(
        self,
        database: Database,
        agents: AgentStore,
        access: ModelAccess,
        toolbox: Toolbox,
        own_tools: OwnTools,
    ) -> None:
        self.talk = TalkStore(database)
        self.threads = ThreadStore(database)
        self.models = Models(access)
        self._access = access
        self._agents = agents
        self._toolbox = toolbox
        self._own_tools = own_tools

    def work(self, prompt: Prompt, new: NewTurn, hold: Hold) -> Work[Scene]:
        performance = Performance(
            prompt, new, self._agents, self.talk, self.models, self._toolbox, self._own_tools, hold
        )
        return Work(performance.begin, performance.run, performance.end, performance.spent)

    def making_room(self, new: NewTurn, *, everyone: bool) -> Work[Scene]:
        """A turn in which nothing is said: what was said before is summed up."""
        room = MakingRoom(new, self.talk, self.models, everyone)
        return Work(room.begin, room.run, spent=room.usage)

    def choices(self) -> Sequence[ModelChoice]:
        """The models that a turn may be taken with."""
        return choices(self._access, known_model_names(), profile_of)

    async def recall(self, conversation_id: str, limit: int) -> Sequence[Said]:
        """The newest of what was said, in the words of a turn."""
        return recalled(*await self.talk.newest(conversation_id, limit))

    async def retell(self, conversation_id: str, turn_id: str) -> Sequence[Said]:
        """What was said in one turn, in its words."""
        told = recalled(*await self.talk.around(conversation_id, turn_id))
        return [one for one in told if one.turn_id == turn_id]
