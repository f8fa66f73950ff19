"""`frontdesk doctor`: what is set, from where, and what is wrong."""

import difflib
import os
import sys
from collections.abc import Iterator, Mapping

import anyio
from pydantic import SecretStr

from frontdesk.app import App, open_app
from frontdesk.bridges import platform_troubles
from frontdesk.embedding.choose import embedder_for
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.loop.access import OFFLINE, ModelAccess
from frontdesk.platform.constants import MANIFEST_NAME
from frontdesk.platform.environment import is_development_environment
from frontdesk.settings import (
    CONFIG_FILE_VARIABLE,
    NO_LONGER_NEEDED,
    Settings,
    file_keys,
    origin,
    variables,
)
from frontdesk.surfaces.cli.options import Json
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import quiet
from frontdesk.surfaces.cli.words import ABSENT, dumped, table
from frontdesk.surfaces.doorstep import EVERY_ADDRESS

OURS = "FRONTDESK_"
COLUMNS = ("setting", "value", "from")


def examine(*, as_json: Json = False) -> None:
    """Show every setting and where it comes from, then what is wrong.

    Parameters
    ----------
    as_json
        Print one JSON object.
    """
    settings = Settings.read()
    keys = file_keys()
    rows = [
        (variables(field)[0], _shown(getattr(settings, field)), origin(field, os.environ, keys))
        for field in Settings.model_fields
    ]
    notes = [*remarks(os.environ), *platform_remarks(settings, os.environ), *model_remarks(settings)]
    if not as_json:
        print(table(COLUMNS, [(name, ABSENT if value is None else value, source) for name, value, source in rows]))
        for note in notes:
            print(f"note: {line(note)}")
    wrong = [*misspelt(os.environ), *contradictions(settings), *anyio.run(problems, quiet(settings, "error"))]
    if as_json:
        told = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        print(dumped({"settings": told, "notes": notes, "wrong": wrong}))
    else:
        print("\n".join(f"wrong: {line(problem)}" for problem in wrong) or "All is well.")
    if wrong:
        sys.exit(1)


async def problems(settings: Settings) -> list[str]:
    """What would keep the server from starting or serving."""
    try:
        async with open_app(settings) as app:
            return await _ailments(app)
    except FrontdeskError as error:
        return [str(error)]


async def _ailments(app: App) -> list[str]:
    found = [f"{part}: {state}" for part, state in (await app.parts()).items() if state != "ok"]
    found += await platform_troubles(app.settings)
    found += await app.tools.catalogue.troubles()
    found += await embedding_troubles(app.settings)
    for check in (app.check_exposure, lambda: app.host.list(1), app.check_model):
        try:
            await check()
        except FrontdeskError as error:
            found.append(str(error))
    return found


async def embedding_troubles(settings: Settings) -> list[str]:
    """What is wrong with an embeddings API; the built-in model needs nobody."""
    if settings.embeddings in ("builtin", "off"):
        return []
    embedder = embedder_for(settings.embeddings, settings.embeddings_model, settings.embeddings_key)
    try:
        if embedder is not None:
            await embedder.embed(["a tool"])
    except Unavailable as error:
        return [str(error)]
    finally:
        if embedder is not None:
            await embedder.close()
    return []


def remarks(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables of other products that have no use here."""
    for name, why in NO_LONGER_NEEDED.items():
        if environ.get(name):
            yield f"{name} is set but not needed: {why}"


def platform_remarks(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """What is easily overlooked: without a word on it everything is development, and of two tokens one counts."""
    if settings.platform_token and settings.platform_oauth:
        yield (
            "FRONTDESK_PLATFORM_TOKEN and FRONTDESK_PLATFORM_OAUTH are both set: the token only asks Agent 365 which "
            "servers there are, and calls are made with tokens that are fetched"
        )
    if settings.platform_app_id and is_development_environment(environ):
        yield (
            f"Servers of Agent 365 come from {MANIFEST_NAME} in this folder or the one above: this is development. "
            "Set PYTHON_ENVIRONMENT=Production to ask the platform"
        )


def model_remarks(settings: Settings) -> Iterator[str]:
    """What is not looked at: an answer of a model costs."""
    model = ModelAccess.of(settings).chosen
    if settings.letta_base_url is None and model != OFFLINE:
        yield f"The model {model} was not asked, as an answer costs; `frontdesk chat` shows whether it gives one"


def contradictions(settings: Settings) -> Iterator[str]:
    """Settings that are each right and do not go together."""
    if settings.supabase_jwt_secret and not settings.supabase_url:
        yield "SUPABASE_JWT_SECRET is set without NEXT_PUBLIC_SUPABASE_URL, and so has no effect"
    if settings.openai_base_url and not settings.model:
        yield "OPENAI_BASE_URL is set without FRONTDESK_MODEL, and there is no telling which models it has; name one"
    if (settings.platform_token or settings.platform_oauth) and not settings.platform_app_id:
        yield "FRONTDESK_PLATFORM_TOKEN and FRONTDESK_PLATFORM_OAUTH have no effect without FRONTDESK_PLATFORM_APP_ID"
    issues = settings.trusted_issuers or settings.login_clients
    if settings.host in EVERY_ADDRESS and issues and not settings.public_url:
        yield f"FRONTDESK_HOST={settings.host} is no address that a token could be made for; set FRONTDESK_PUBLIC_URL"


def misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like ours and are not."""
    names = [CONFIG_FILE_VARIABLE, *(name for field in Settings.model_fields for name in variables(field))]
    # Without what they all begin with: by that alone, any two would be alike.
    known = [name.removeprefix(OURS) for name in names if name.startswith(OURS)]
    for name in environ:
        if name.startswith(OURS) and name not in names:
            near = difflib.get_close_matches(name.removeprefix(OURS), known, 1)
            yield f"{name} is not a setting" + (f"; did you mean {OURS}{near[0]}?" if near else "")


def _shown(value: object) -> str | None:
    if isinstance(value, SecretStr):
        return "(set, not shown)"
    if value is None or value == ():
        return None
    return str(value)
