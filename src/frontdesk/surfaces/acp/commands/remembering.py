"""`/memory`, `/remember` and `/forget`: what the agent knows, and what the person has it know."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.agents.host import Block
from frontdesk.errors import FrontdeskError, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.loop.events import MemoryEdit
from frontdesk.surfaces.acp.commands.markdown import code, fenced, words
from frontdesk.surfaces.acp.commands.model import Desk, Reply

USUAL = "human"
MOST_FORGOTTEN = 5
LABELLED = re.compile(r"([^:\n]+):\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cut:
    """A block, and the lines that are to go from it."""

    block: Block
    gone: Sequence[str]
    left: str


async def memory(desk: Desk, said: str) -> Reply:
    blocks = await _blocks(desk)
    label = said.strip()
    wanted = [_named(blocks, label)] if label else list(blocks.values())
    return Reply("\n\n".join(_told(desk, block) for block in wanted) or "It has no memory blocks.")


async def remember(desk: Desk, said: str) -> Reply:
    rights.require(desk.caller, rights.AGENTS_CHAT)
    blocks = await _blocks(desk)
    label, text = _addressed(blocks, said)
    if not text:
        raise Invalid("Say what to remember: /remember I work in Berlin")
    block = _named(blocks, label or USUAL)
    value = f"{block.value.rstrip()}\n{text}" if block.value.strip() else text
    edit = await _write(desk, block, value)
    return Reply(f"Remembered in {code(block.label)}: {words(text)}", (edit,))


async def forget(desk: Desk, said: str) -> Reply:
    rights.require(desk.caller, rights.AGENTS_CHAT)
    blocks = await _blocks(desk)
    label, text = _addressed(blocks, said)
    if not text:
        raise Invalid("Say what to forget, in words that stand in it: /forget Berlin")
    chosen = [_named(blocks, label)] if label else list(blocks.values())
    cuts = [cut for block in chosen if not block.read_only and (cut := _cut(block, text)).gone]
    if not cuts:
        return Reply(f"No line that can be changed holds the words {code(text)}. `/memory` shows all of them.")
    number = sum(len(cut.gone) for cut in cuts)
    if number > MOST_FORGOTTEN:
        raise Invalid(f"{number} lines hold these words; say more exactly which, at most {MOST_FORGOTTEN} go at once")
    return await _forgotten(desk, cuts)


async def _forgotten(desk: Desk, cuts: Sequence[Cut]) -> Reply:
    """Cut one block after the other; what has gone is told also where the next cannot be written."""
    told: list[str] = []
    edits: list[MemoryEdit] = []
    for cut in cuts:
        try:
            edits.append(await _write(desk, cut.block, cut.left))
        except FrontdeskError as error:
            told.append(words(error.public))
            break
        told.append("\n".join([f"Forgotten from {code(cut.block.label)}:", "", fenced("\n".join(cut.gone))]))
    return Reply("\n\n".join(told), edits)


async def _blocks(desk: Desk) -> Mapping[str, Block]:
    kept, runs = desk.session, rights.runs_installation(desk.caller)
    found = await desk.app.host.blocks(kept.agent_id, kept.user_id, runs=runs)
    return {block.label: block for block in found}


async def _write(desk: Desk, block: Block, value: str) -> MemoryEdit:
    kept, runs = desk.session, rights.runs_installation(desk.caller)
    written = await desk.app.host.write_block(kept.agent_id, block.label, value, user_id=kept.user_id, runs=runs)
    return MemoryEdit(block.label, block.value, written.value)


def _named(blocks: Mapping[str, Block], label: str) -> Block:
    if label not in blocks:
        raise NotFound(f"There is no memory block '{label[:100]}'; there are: {', '.join(blocks) or 'none'}")
    return blocks[label]


def _addressed(blocks: Mapping[str, Block], said: str) -> tuple[str | None, str]:
    """The block that is named first, if one is, and the rest."""
    found = LABELLED.fullmatch(said.strip())
    if found is not None and found[1].strip() in blocks:
        return found[1].strip(), found[2].strip()
    return None, said.strip()


def _cut(block: Block, text: str) -> Cut:
    """Lines go that hold each of the words, as a word of its own."""
    wanted = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in text.casefold().split()]
    lines = block.value.split("\n")
    gone = [line for line in lines if all(word.search(line.casefold()) for word in wanted)]
    return Cut(block, gone, "\n".join(line for line in lines if line not in gone))


def _told(desk: Desk, block: Block) -> str:
    only = ", read-only" if block.read_only else ""
    size = f"{len(block.value):,} of {block.limit:,} characters{only}"
    path = desk.app.workspace.mirror.path_of(desk.session.agent_id, block.label, desk.session.user_id)
    return f"**{words(block.label)}** ({size}), in {code(str(path), len(str(path)))}\n\n{fenced(block.value)}"
