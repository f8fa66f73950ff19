"""`python -m frontdesk` is the frontdesk command."""

from frontdesk.interfaces.cli.main import main

main()
