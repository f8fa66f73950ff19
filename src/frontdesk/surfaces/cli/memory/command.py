"""`frontdesk memory`: what a person wants remembered."""

from cyclopts import App as Command

from frontdesk.surfaces.cli.memory import adding, categories, figures, finding, listing, moving

command = Command(name="memory")
command.command(adding.add)
command.command(finding.search)
command.command(listing.show_all, name="list")
command.command(listing.show)
command.command(adding.delete)
command.command(categories.command)
command.command(listing.stats)
command.command(figures.insights)
command.command(figures.zone, usage="Usage: frontdesk memory zone [OPTIONS] [NAME]")
command.command(moving.hand_out, name="export", usage="Usage: frontdesk memory export [OPTIONS] [FILE]")
command.command(moving.take_in, name="import")
command.command(moving.erase)
command.command(figures.people)
