"""`./dev test`: runs the suite without the slow tests; `--all` runs those too, `--random [SEED]` in random order.

Anything else goes to pytest.
"""

import random
import signal
import sys

import pytest

# One process for each core, up to a few: each has a PostgreSQL of its own. `-n 0` uses one process alone.
SHARED_OUT = ["-n", "logical", "--maxprocesses", "4", "--dist", "loadscope", "--no-loadscope-reorder"]


def with_seed(arguments: list[str]) -> list[str]:
    """A seed for `--random` without a value: one for all, since every process must have the same order."""
    if "--random" not in arguments:
        return arguments
    at = arguments.index("--random")
    before, rest = arguments[:at], arguments[at + 1 :]
    seed = rest.pop(0) if rest and rest[0].isdecimal() else str(random.randrange(10_000))
    return [*before, f"--random={seed}", *rest]


# A shell that starts this in the background makes it ignore Ctrl-C; the commands that tests interrupt would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)
arguments = with_seed(sys.argv[1:])
if "--all" in arguments:
    arguments.remove("--all")
else:
    arguments = ["-m", "not slow", *arguments]
sys.exit(pytest.main([*SHARED_OUT, *arguments]))
