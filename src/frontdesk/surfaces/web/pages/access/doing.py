"""What is done on the page: keys are made, rotated and revoked; its text is shown as one is made, and then never."""

from frontdesk.errors import IdentityError, Invalid, Unstorable
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.access import choices
from frontdesk.surfaces.web.pages.access.looking import page


async def make(asked: Asked) -> Shown:
    """Make a key; what is wrong is said beside what was filled in."""
    form = asked.form
    try:
        key, text = await asked.app.identity.create_key(
            name=form.get("name", "").strip(),
            agent_id=form.get("agent", "").strip() or None,
            user_id=form.get("user", "").strip() or None,
            scopes=choices.scopes(form),
            lifetime=choices.lifetime(form.get("lasting", "")),
        )
    except (Invalid, IdentityError, Unstorable) as error:
        return await page(asked, form, error.in_full)
    return Shown("access/made.html", "A new key", {"key": key, "text": text, "old": None})


async def rotate(asked: Asked) -> Shown:
    old_id = asked.at["id"]
    key, text = await asked.app.identity.rotate_key(old_id, choices.overlap(asked.form.get("overlap", "")))
    old = await asked.app.keys.get(old_id)
    return Shown("access/made.html", "A new key", {"key": key, "text": text, "old": old})


async def revoke(asked: Asked) -> Done:
    key_id = asked.at["id"]
    await asked.app.identity.revoke_key(key_id)
    return Done("/access", f"Key {key_id} no longer works.")
