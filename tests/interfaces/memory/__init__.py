"""The interfaces of the memory capability."""
