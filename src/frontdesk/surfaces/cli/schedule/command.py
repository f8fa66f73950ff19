"""`frontdesk schedule`: prompts that come later."""

from cyclopts import App as Command

from frontdesk.surfaces.cli.schedule import changing, listing, making

command = Command(name="schedule")
command.command(listing.show_all, name="list")
command.command(making.add, usage="Usage: frontdesk schedule add [OPTIONS] AGENT PROMPT [WHEN]")
command.command(listing.show)
command.command(making.update, usage="Usage: frontdesk schedule update [OPTIONS] SCHEDULE_ID [WHEN]")
command.command(making.preview, usage="Usage: frontdesk schedule preview [OPTIONS] [SCHEDULE_ID | WHEN]")
command.command(changing.pause)
command.command(changing.resume)
command.command(changing.cancel)
command.command(changing.run)
command.command(listing.history, usage="Usage: frontdesk schedule history [OPTIONS] [SCHEDULE_ID]")
command.command(changing.redrive)
command.command(changing.take_over, name="import", usage="Usage: frontdesk schedule import [OPTIONS] [FILE]")
