"""The front desk for stateful AI agents: a program that builds on it imports what stands in `__all__`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frontdesk.agents.host import Agent, AgentHost, NewAgent, Prompt
    from frontdesk.app import App, open_app, running
    from frontdesk.errors import FrontdeskError
    from frontdesk.identity.model import Caller
    from frontdesk.interfaces.library.client import Client
    from frontdesk.interfaces.library.desk import Desk, open  # noqa: A004 - read as frontdesk.open
    from frontdesk.interfaces.library.mounted import create_app
    from frontdesk.settings import Settings

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AgentHost",
    "App",
    "Caller",
    "Client",
    "Desk",
    "FrontdeskError",
    "NewAgent",
    "Prompt",
    "Settings",
    "create_app",
    "open",
    "open_app",
    "running",
]

# By name, so that whoever wants one of them does not wait for all the others to be imported.
_MODULE_OF = {
    "Agent": "agents.host",
    "AgentHost": "agents.host",
    "App": "app",
    "Caller": "identity.model",
    "Client": "interfaces.library.client",
    "Desk": "interfaces.library.desk",
    "FrontdeskError": "errors",
    "NewAgent": "agents.host",
    "Prompt": "agents.host",
    "Settings": "settings",
    "create_app": "interfaces.library.mounted",
    "open": "interfaces.library.desk",
    "open_app": "app",
    "running": "app",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'frontdesk' has no attribute '{name}'")
    return getattr(import_module(f"frontdesk.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
