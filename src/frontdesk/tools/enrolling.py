"""Adds a server of tools, and takes it off again when it does not answer."""

from frontdesk.errors import Invalid
from frontdesk.tools.catalogue.crawl import Stage, Step, Told, silent
from frontdesk.tools.catalogue.servers import Origin, ServerSpec
from frontdesk.tools.catalogue.service import Catalogue


async def enrol(catalogue: Catalogue, spec: ServerSpec, told: Told = silent, *, force: bool = False) -> Step:
    """Add the server and ask it for its tools; one that does not answer stays only with `force`."""
    before = next((state.spec for state in catalogue.servers() if state.name == spec.name), None)
    end = await catalogue.add(spec, told)
    if end.stage is not Stage.FAILED or force:
        return end
    if before is not None and before.origin is Origin.ADDED:
        await catalogue.add(before)
    else:
        await catalogue.remove(spec.name)
    raise Invalid(f"The tool server '{spec.name}' was not added: {end.told}")
