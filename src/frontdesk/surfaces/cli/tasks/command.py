"""`frontdesk tasks`: what a person has to do."""

from cyclopts import App as Command

from frontdesk.surfaces.cli.tasks import listing, making, queue, timing

command = Command(name="tasks")
command.command(making.add)
command.command(listing.show_all, name="list")
command.command(listing.show)
command.command(listing.tree)
command.command(making.update, usage="Usage: frontdesk tasks update [OPTIONS] TASK_ID")
command.command(making.done)
command.command(making.delete)
command.command(listing.stats)
command.command(timing.start, usage="Usage: frontdesk tasks start [OPTIONS] TASK_ID")
command.command(timing.stop, usage="Usage: frontdesk tasks stop [OPTIONS] [TASK_ID]")
command.command(timing.running)
command.command(timing.day, usage="Usage: frontdesk tasks day [OPTIONS] [DATE]")
command.command(queue.show_all, name="queue")
command.command(queue.assign)
command.command(queue.show, name="work")
command.command(queue.approve)
