"""One turn of a built-in agent in which nothing is said: all before the newest turn is summed up."""

from dataclasses import dataclass, field, replace

from frontdesk.agents.embedded.compaction import before_newest, sum_up
from frontdesk.agents.embedded.talk.model import Scene, Speaker
from frontdesk.agents.embedded.talk.store import TalkStore
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import Emit
from frontdesk.db.engine import Transaction
from frontdesk.loop.events import Compacted, Ending, Failed, StopReason, Usage
from frontdesk.loop.models import Models
from frontdesk.loop.usage import Spent


@dataclass(slots=True)
class MakingRoom:
    """Begins and runs like any turn, so that no other is under way meanwhile, and what it takes is on record.

    `everyone`: whoever asked for it runs the installation, and may ask for it in anybody's conversation.
    """

    new: NewTurn
    talk: TalkStore
    models: Models
    everyone: bool = False
    _spent: Spent = field(default_factory=Spent)

    async def begin(self, connection: Transaction) -> Scene:
        new, speaker = self.new, Speaker(self.new.user_id, runs=self.everyone)
        return await self.talk.set_scene(connection, new.agent_id, new.conversation_id, new.id, speaker)

    async def run(self, scene: Scene, emit: Emit) -> Ending:
        model = await self.models.open(scene.agent.model)
        summed = await sum_up(model, scene.summary, scene.past, before_newest(scene.past), self._spent)
        if isinstance(summed, Failed):
            # Nothing has to give way yet, so that all that was said stays as it is.
            await emit(replace(summed, message=f"Nothing was summed up, and nothing has changed. {summed.message}"))
            return Ending(StopReason.ERROR, usage=self.usage(), failure=summed.trouble)
        if summed is not None:
            await self.talk.summarise(scene.conversation_id, summed.summary, summed.until)
            await emit(Compacted(summed.summary, by_model=summed.by_model))
        return Ending(StopReason.END_TURN, usage=self.usage())

    def usage(self) -> Usage:
        return self._spent.total
