"""APScheduler on a SQLite with Frontdesk's settings: with the defaults, each finished job waits for the disk."""

from bench.schedule.peers.on_apscheduler import fill, make_due, pragmas, work

__all__ = ["fill", "make_due", "work"]

pragmas += ("journal_mode=WAL", "synchronous=NORMAL")
