"""What the built-in host loads for its turns, and where."""

import subprocess
import sys
from pathlib import Path

SECONDS = 60
# A process of its own: in this one the libraries are loaded long since.
PROGRAM = """
import sys, threading

import anyio

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings

LIBRARIES = ("pydantic_ai", "openai")
seen = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in LIBRARIES:
            seen[name] = threading.current_thread() is threading.main_thread()
        return None

async def talk():
    given = {"FRONTDESK_DATA": sys.argv[1], "FRONTDESK_MODEL": "openai:x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    async with open_app(Settings.model_validate(given)) as app:
        agent = await app.host.create(NewAgent("Ada"))
        conversation = await app.host.converse(agent.id)
        assert not any(seen.values()), seen
        async for _ in app.host.send(Prompt(agent.id, Caller("r"), "hello", conversation_id=conversation.id)):
            pass

assert not {*LIBRARIES, "aiohttp"} & set(sys.modules), "something loads them from the start"
sys.meta_path.insert(0, Watch())
anyio.run(talk)
print(sorted(seen.items()))
"""


def test_the_first_talk_loads_the_model_library_aside_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.stdout.strip() == "[('openai', False), ('pydantic_ai', False)]", ended.stderr
