"""Implements `frontdesk acp`: serve editors on standard input and output, or by WebSocket."""

from pathlib import Path

from frontdesk.errors import Invalid
from frontdesk.identity.keys import LOCAL_USER


def serve(
    *, agent: str | None = None, user: str = LOCAL_USER, listen: str | None = None, root: Path | None = None
) -> None:
    """Serve the Agent Client Protocol on standard input and output, for the editor that starts it.

    Parameters
    ----------
    agent
        The agent for every folder, by id or name; each folder has one of its own when left out.
    user
        The person who uses the editor.
    listen
        Serve editors by WebSocket at this HOST:PORT instead; they show a key of this installation.
    root
        With --listen: the folder on this machine whose files and commands editors elsewhere may use.
    """
    if not user.strip():
        raise Invalid("--user names a person by 1 to 200 printable characters, as frontdesk keys list shows them")
    if listen is not None:
        from frontdesk.interfaces.acp.websocket import serve_websocket  # noqa: PLC0415

        serve_websocket(listen, agent, root)
        return
    if root is not None:
        raise Invalid("--root goes with --listen; an editor on this machine says itself where it works")
    # Everything else is loaded once the editor has its first answer.
    from frontdesk.interfaces.acp.stdio import serve_stdio  # noqa: PLC0415

    serve_stdio(user, agent)
