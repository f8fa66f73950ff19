"""What this house can offer to editors, read off its settings alone."""

from frontdesk.loop.access import ModelAccess
from frontdesk.loop.senses import senses
from frontdesk.settings import Settings
from frontdesk.surfaces.acp.greeting import Offer


def offer_of(settings: Settings) -> Offer:
    """By the model that agents have who name none."""
    if settings.letta_base_url is not None:
        return Offer(images=True)
    images, sounds = senses(ModelAccess.of(settings).chosen)
    return Offer(images, sounds, steers=True)
