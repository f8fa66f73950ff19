"""`frontdesk schedule`: prompts that come later."""

from cyclopts import App as Command

from frontdesk.surfaces.cli.schedule import changing, listing, making

command = Command(name="schedule", help="Prompts that agents get later: once, by a cron rule, or at an interval.")
command.command(listing.show_all, name="list")
command.command(making.add)
command.command(listing.show)
command.command(making.update)
command.command(making.preview)
command.command(changing.pause)
command.command(changing.resume)
command.command(changing.cancel)
command.command(changing.run)
command.command(listing.history)
command.command(changing.redrive)
command.command(changing.take_over, name="import")
