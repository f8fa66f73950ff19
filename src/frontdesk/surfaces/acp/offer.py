"""What this house can offer to editors, read off its settings alone."""

from frontdesk.loop.access import ModelAccess
from frontdesk.loop.senses import senses
from frontdesk.settings import Settings
from frontdesk.surfaces.acp.greeting import Offer


def offer_of(settings: Settings) -> Offer:
    """By the model that agents have who name none."""
    if settings.letta_base_url is not None:
        # Which model an agent has there is known once it is asked; each session holds to its own.
        return Offer(images=settings.model is None or senses(settings.model, settings.image_models)[0])
    access = ModelAccess.of(settings)
    images, sounds = senses(access.chosen, access.image_models)
    return Offer(images, sounds, steers=True)
