"""`./dev test`: the whole suite but the slow tests; `--all` runs those too, anything else goes to pytest."""

import sys

import pytest

# As many processes as there are cores, up to a few: each has a PostgreSQL of its own. `-n 0` takes one alone.
SHARED_OUT = ["-n", "logical", "--maxprocesses", "4", "--dist", "loadgroup", "--no-loadscope-reorder"]

arguments = sys.argv[1:]
if "--all" in arguments:
    arguments.remove("--all")
else:
    arguments = ["-m", "not slow", *arguments]
sys.exit(pytest.main([*SHARED_OUT, *arguments]))
