"""Implements `frontdesk doctor`: every setting with its source, and what is wrong."""

import difflib
import os
import sys
from collections.abc import Iterator, Mapping

import anyio
from pydantic import SecretStr

from frontdesk.agent365.environment import MANIFEST_NAME, is_development_environment
from frontdesk.app import App, open_app
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.interfaces.app_runner import configure_quiet_logs
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    JsonFlag,
    dump_json,
    format_table,
    printable_line,
)
from frontdesk.llm.access import OFFLINE, ModelAccess
from frontdesk.settings import ALL_ADDRESSES, CONFIG_FILE_VARIABLE, Settings
from frontdesk.settings.model import OBSOLETE_VARIABLES, config_file_keys, value_origin, variable_names

VARIABLE_PREFIX = "FRONTDESK_"
COLUMNS = ("setting", "value", "from")


def examine(*, as_json: JsonFlag = False) -> None:
    """Show every setting with its source, then every problem.

    Parameters
    ----------
    as_json
        Print one JSON object.
    """
    settings = Settings.read()
    keys = config_file_keys()
    rows = [
        (variable_names(field)[0], _display_value(getattr(settings, field)), value_origin(field, os.environ, keys))
        for field in Settings.model_fields
    ]
    notes = [*remark_on_variables(os.environ), *remark_on_platform(settings, os.environ), *remark_on_model(settings)]
    if not as_json:
        print(
            format_table(
                COLUMNS, [(name, EMPTY_CELL if value is None else value, source) for name, value, source in rows]
            )
        )
        for note in notes:
            print(f"note: {printable_line(note)}")
    wrong = [
        *find_misspelt_variables(os.environ),
        *find_contradictions(settings),
        *anyio.run(find_problems, configure_quiet_logs(settings, "error")),
    ]
    if as_json:
        told = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        print(dump_json({"settings": told, "notes": notes, "wrong": wrong}))
    else:
        print("\n".join(f"wrong: {printable_line(problem)}" for problem in wrong) or "All is well.")
    if wrong:
        sys.exit(1)


async def find_problems(settings: Settings) -> list[str]:
    """Problems that would prevent the server from starting or serving."""
    try:
        async with open_app(settings, tools=False) as app:
            return await _find_app_problems(app)
    except FrontdeskError as error:
        return [str(error)]


async def _find_app_problems(app: App) -> list[str]:
    app.open_host()
    found = [f"{part}: {state}" for part, state in (await app.check_parts()).items() if state != "ok"]
    found += await _find_server_problems(app)
    found += await find_embedding_problems(app.settings)
    for check in (app.check_exposure, lambda: app.host.list(1), app.check_model):
        try:
            await check()
        except FrontdeskError as error:
            found.append(str(error))
    return found


async def _find_server_problems(app: App) -> list[str]:
    """Problems of tool servers, and of the platform that names some. Without any, nothing is imported for them."""
    found: list[str] = []
    if app.settings.platform_app_id:
        from frontdesk.platform_servers import platform_problems  # noqa: PLC0415

        found += await platform_problems(app.settings)
    if await app.has_tool_servers():
        found += await app.tools.catalogue.check_servers()
    return found


async def find_embedding_problems(settings: Settings) -> list[str]:
    """Problems with the embeddings API, if one is configured."""
    if settings.embeddings in ("builtin", "off"):
        return []
    from frontdesk.embedding import open_embedder  # noqa: PLC0415

    embedder = open_embedder(settings.embeddings, settings.embeddings_model, settings.embeddings_key)
    try:
        if embedder is not None:
            await embedder.embed(["a tool"])
    except Unavailable as error:
        return [str(error)]
    finally:
        if embedder is not None:
            await embedder.close()
    return []


def remark_on_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Notes about variables of other products that have no use here."""
    for name, why in OBSOLETE_VARIABLES.items():
        if environ.get(name):
            yield f"{name} is set but not needed: {why}"


def remark_on_platform(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Notes about settings of Agent 365 that are easily overlooked."""
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


def remark_on_model(settings: Settings) -> Iterator[str]:
    """A note that the model itself is not checked, because an answer costs money."""
    model = ModelAccess.from_settings(settings).default_model
    if settings.letta_base_url is None and model != OFFLINE:
        yield f"The model {model} was not checked, because an answer costs; `frontdesk chat` shows whether it answers"


def find_contradictions(settings: Settings) -> Iterator[str]:
    """Settings that are valid but contradict each other."""
    if settings.supabase_jwt_secret and not settings.supabase_url:
        yield "SUPABASE_JWT_SECRET is set without NEXT_PUBLIC_SUPABASE_URL, and so has no effect"
    if settings.openai_base_url and not settings.model:
        yield "OPENAI_BASE_URL is set without FRONTDESK_MODEL, and the models there are unknown; name one"
    if (settings.platform_token or settings.platform_oauth) and not settings.platform_app_id:
        yield "FRONTDESK_PLATFORM_TOKEN and FRONTDESK_PLATFORM_OAUTH have no effect without FRONTDESK_PLATFORM_APP_ID"
    issues = settings.trusted_issuers or settings.login_clients
    if settings.host in ALL_ADDRESSES and issues and not settings.public_url:
        yield f"FRONTDESK_HOST={settings.host} cannot be the audience of a token; set FRONTDESK_PUBLIC_URL"


def find_misspelt_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables with our prefix that are not settings."""
    names = [CONFIG_FILE_VARIABLE, *(name for field in Settings.model_fields for name in variable_names(field))]
    # Compared without the common prefix, which would make any two similar.
    known = [name.removeprefix(VARIABLE_PREFIX) for name in names if name.startswith(VARIABLE_PREFIX)]
    for name in environ:
        if name.startswith(VARIABLE_PREFIX) and name not in names:
            near = difflib.get_close_matches(name.removeprefix(VARIABLE_PREFIX), known, 1)
            yield f"{name} is not a setting" + (f"; did you mean {VARIABLE_PREFIX}{near[0]}?" if near else "")


def _display_value(value: object) -> str | None:
    if isinstance(value, SecretStr):
        return "(set, not shown)"
    if value is None or value == ():
        return None
    return str(value)
