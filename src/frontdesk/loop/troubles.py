"""What goes wrong with a model, told so that somebody can do something about it; never with a key in it."""

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    UserError,
)

from frontdesk.loop.events import Failed, Trouble

MODEL_ERRORS = (AgentRunError, UserError)
SHOWN = 300

# The narrower error stands first.
TABLE: tuple[tuple[type[Exception], Trouble, str], ...] = (
    (
        ModelAuthenticationError,
        Trouble.UNAUTHENTICATED,
        "The provider of '{model}' refuses the key; check OPENAI_API_KEY, ANTHROPIC_API_KEY or the provider's own",
    ),
    (ModelQuotaExceededError, Trouble.RATE_LIMITED, "The quota for '{model}' is used up; check the plan or the bill"),
    (ModelRateLimitError, Trouble.RATE_LIMITED, "Too many requests to '{model}'; try again in a while"),
    (
        ModelContextWindowExceededError,
        Trouble.TOO_LONG,
        "The conversation no longer fits into '{model}'; begin a new one, or take a model with a larger context",
    ),
    (ModelNotFoundError, Trouble.NOT_FOUND, "The provider has no model '{model}'; check the agent's model"),
    (ModelRequestRejectedError, Trouble.INVALID, "'{model}' refused the request: {error}"),
    (
        ModelConnectionError,
        Trouble.UNAVAILABLE,
        "The connection to '{model}' could not be made or broke off; check the network and the provider's address",
    ),
    (ModelAPIError, Trouble.UNAVAILABLE, "The provider of '{model}' fails; try again in a while"),
    (UserError, Trouble.INVALID, "The model cannot be used: {error}"),
    (AgentRunError, Trouble.INTERNAL, "The model answered in a way that cannot be used: {error}"),
)


def failed(error: Exception) -> Failed:
    """The event for an error of the model's."""
    model = error.model_name if isinstance(error, ModelAPIError) else "the model"
    trouble, text = next((trouble, text) for kind, trouble, text in TABLE if isinstance(error, kind))
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return Failed(trouble, text.format(model=model, error=str(error)[:SHOWN]), wait)
