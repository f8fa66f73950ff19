"""What a turn takes, in tokens and in money."""

from dataclasses import dataclass, field

from pydantic_ai.messages import ModelResponse

from frontdesk.loop.events import Usage


@dataclass(slots=True)
class Spent:
    """The sum over a turn's requests; no cost where one of them has no known price.

    `window` is how many tokens the model that takes the turn can have before its eyes, 0 where that is not known.
    """

    window: int = 0
    total: Usage = field(default_factory=lambda: Usage(0, 0, cost_usd=0.0))

    def add(self, response: ModelResponse) -> Usage:
        """Count one answer in, and tell the sum."""
        used, cost = response.usage, _cost(response)
        before = self.total
        self.total = Usage(
            before.input_tokens + used.input_tokens,
            before.output_tokens + used.output_tokens,
            before.cached_tokens + used.cache_read_tokens,
            response.model_name,
            None if cost is None or before.cost_usd is None else before.cost_usd + cost,
            used.input_tokens + used.output_tokens,
            self.window,
        )
        return self.total


def _cost(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
