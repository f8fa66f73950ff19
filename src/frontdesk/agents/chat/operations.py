"""Declares the operations of the chat."""

from frontdesk.operations import Operation

CHAT_OPERATIONS: tuple[Operation, ...] = ()
