"""APScheduler on a SQLite that is set up as Frontdesk's: as it comes, each job that is done waits for the disk."""

from bench.schedule.peers.on_apscheduler import fill, make_due, pragmas, work

__all__ = ["fill", "make_due", "work"]

pragmas += ("journal_mode=WAL", "synchronous=NORMAL")
