"""What is asked about the desk itself."""

from pydantic import Field

from frontdesk.memory.asked.common import Asked


class SystemStatus(Asked):
    """How much of it."""

    include_recent_errors: bool = Field(True, description="Name your own calls of the last day that went wrong.")
    check_connectivity: bool = Field(True, description="Ask the parts that we depend on whether they answer.")
