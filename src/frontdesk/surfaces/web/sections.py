"""What the navigation lists, with the key that leads there after `g`."""

from frontdesk.surfaces.web.model import Section

SECTIONS = (
    Section("Now", "/", "n"),
    Section("Agents", "/agents", "a"),
    Section("Tools", "/tools", "t"),
    Section("Schedule", "/schedule", "s"),
    Section("People", "/people", "p"),
    Section("Turns", "/turns", "u"),
    Section("Access", "/access", "k"),
)
