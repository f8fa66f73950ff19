"""Adds a server of tools, and takes it off again when it does not answer."""

from frontdesk.errors import Conflict, Invalid
from frontdesk.tools.catalogue.crawl import Stage, Step, Told, silent
from frontdesk.tools.catalogue.servers import Origin, ServerSpec
from frontdesk.tools.catalogue.service import Catalogue


async def enrol(catalogue: Catalogue, spec: ServerSpec, told: Told = silent, *, force: bool = False) -> Step:
    """Add the server and ask it for its tools.

    One that does not answer stays only with `force`, and only with that does it take the place of another.
    """
    before = next((state.spec for state in catalogue.servers() if state.name == spec.name), None)
    if not force and before is not None and before.origin is Origin.ADDED and not _same(before, spec):
        raise Conflict(f"The tool server '{spec.name}' is already at {before.place}; add it with force to replace it")
    end = await catalogue.add(spec, told)
    if end.stage is not Stage.FAILED or force:
        return end
    if before is not None and before.origin is Origin.ADDED:
        await catalogue.add(before)
    else:
        await catalogue.remove(spec.name)
    raise Invalid(f"The tool server '{spec.name}' was not added: {end.told}")


def _same(one: ServerSpec, other: ServerSpec) -> bool:
    """Whether both are one server; new headers and the like for it are fine."""
    return (one.url, one.command, one.args) == (other.url, other.command, other.args)
