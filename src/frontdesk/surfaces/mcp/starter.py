"""Who is at the other end of standard input: the person whose key is set, or whose token this process was left."""

from contextlib import suppress
from dataclasses import dataclass

from pydantic import SecretStr

from frontdesk.app import App
from frontdesk.errors import ConfigurationError, Unauthenticated, Unavailable
from frontdesk.identity.service import Identity
from frontdesk.surfaces import behalf
from frontdesk.surfaces.visit import SESSION_HEADER, Visit, request_id


@dataclass(frozen=True, slots=True)
class Starter:
    """`session_id` is this process' own: what is left under it ends with the process.

    Where there is a `key`, all calls are for its person, `user_id`, also while it does not hold or cannot be checked.
    """

    identity: Identity
    session_id: str
    key: SecretStr | None = None
    user_id: str | None = None

    async def arrive(self) -> Visit:
        """A call, with who makes it, as far as that can be told now; the token goes before the key.

        Both are one person's: a token that is over would otherwise leave its person's calls to the key's.
        """
        said = {SESSION_HEADER: self.session_id}
        visit = Visit(request_id(None), said, trusted=self.key is None, only_for=self.user_id)
        with suppress(Unavailable):
            left = await self.identity.sessions.recall(self.session_id)
            for text in (left, self.key.get_secret_value() if self.key else None):
                if text is not None and visit.credential is None:
                    with suppress(Unauthenticated):
                        await behalf.show(self.identity, visit, text)
        return visit

    async def leave(self) -> None:
        """What cannot be forgotten now is of no use to anybody, and goes by itself after a day."""
        with suppress(Unavailable):
            await self.identity.sessions.forget(self.session_id)


async def starter_of(app: App) -> Starter:
    """By the settings; a key that does not hold is told before anybody calls."""
    key, user_id = app.settings.zmemory_api_key, None
    if key is not None:
        try:
            user_id = (await app.identity.authenticate(key.get_secret_value())).user_id
        except Unauthenticated as error:
            raise ConfigurationError(f"ZMEMORY_API_KEY does not hold: {error}") from error
    return Starter(app.identity, app.identity.sessions.begin(), key, user_id)
