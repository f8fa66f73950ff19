"""Declares what a person can ask about keys of their own."""

from frontdesk.operations import Operation

KEY_OPERATIONS: tuple[Operation, ...] = ()
