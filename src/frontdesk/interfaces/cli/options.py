"""Defines the option types that commands share."""

from typing import Annotated

from cyclopts import Parameter, validators

UserOption = Annotated[str, Parameter(show_default=True)]

JsonFlag = Annotated[bool, Parameter(name="--json", negative=(), show_default=False)]
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Repeated = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]
# A text may begin with a hyphen, as lists do.
Text = Annotated[str, Parameter(allow_leading_hyphen=True, show_default=False)]


def number_up_to(most: int, least: int = 1) -> Parameter:
    """A number from `least` to `most`."""
    return Parameter(validator=validators.Number(gte=least, lte=most))


# Rows that are read by a person or a script; what pages has less on each.
Limit = Annotated[int, number_up_to(100_000)]
