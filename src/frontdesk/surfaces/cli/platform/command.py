"""`frontdesk platform`: a manifest's servers on this machine, and what is wrong with them."""

from cyclopts import App as Command

PLACE = "frontdesk.surfaces.cli.platform"
LINT = "Say what is wrong with a ToolingManifest.json and the mocks beside it, and where."
VERIFY = "Look for each tool that a ToolingManifest.json declares on the live server, and say what differs."

command = Command(name="platform")
# By where they are: what one of them stands on takes a while to import.
command.command(f"{PLACE}.serving:serve", name="serve", help="Serve a ToolingManifest.json as the platform would.")
command.command(f"{PLACE}.reviewing:lint", name="lint", help=LINT)
command.command(f"{PLACE}.reviewing:verify", name="verify", help=VERIFY)
