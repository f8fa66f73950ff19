"""`./dev test`: the whole suite but the slow tests; `--all` runs those too, anything else goes to pytest."""

import sys

import pytest

arguments = sys.argv[1:]
if "--all" in arguments:
    arguments.remove("--all")
else:
    arguments = ["-m", "not slow", *arguments]
sys.exit(pytest.main(arguments))
