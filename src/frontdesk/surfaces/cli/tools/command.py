"""`frontdesk tools`: where tools come from, which fits, who may use it, and how well search does."""

from cyclopts import App as Command

from frontdesk.surfaces.cli.tools import bench, finding, listing, rights, servers

command = Command(name="tools")
command.command(finding.search)
command.command(listing.show, name="list")
command.command(listing.servers)
command.command(servers.add, usage="Usage: frontdesk tools add [OPTIONS] NAME WHERE")
command.command(servers.remove)
command.command(servers.refresh, usage="Usage: frontdesk tools refresh [SERVER …]")
command.command(finding.explain)
command.command(finding.call, usage="Usage: frontdesk tools call [OPTIONS] TOOL [ARGUMENTS]")
command.command(listing.review, usage="Usage: frontdesk tools review [OPTIONS] [TOOL]")
command.command(rights.command)
command.command(rights.forget)
command.command(listing.usage)
command.command(bench.measure, name="bench")
