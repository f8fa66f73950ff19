"""`python -m frontdesk` is the frontdesk command."""

from frontdesk.surfaces.cli.main import main

main()
