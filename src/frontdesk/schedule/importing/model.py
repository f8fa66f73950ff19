"""A row of a PromptYoSelf database as it stands there, and the name by which it is known again."""

import hashlib
from dataclasses import dataclass

# Of the two tables the newer comes first: what is in both is taken from there.
TABLES = ("unified_reminders", "schedules")
MARK = "import:"


@dataclass(frozen=True, slots=True)
class Row:
    """What was found under a column's name, or None; nothing of it is checked yet."""

    table: str
    id: object
    agent_id: object = None
    prompt: object = None
    kind: object = None
    value: object = None
    next_run: object = None
    active: object = None
    status: object = None
    max_repetitions: object = None
    repetition_count: object = None
    last_run: object = None
    created_at: object = None

    @property
    def name(self) -> str:
        return f"{self.table} {self.id}"

    @property
    def same(self) -> tuple[object, ...]:
        """By which the two tables' rows for one schedule are told to be the same."""
        return self.agent_id, self.prompt, self.kind, self.value

    @property
    def mark(self) -> str:
        """The same whenever this row is read again, wherever the file lies by then and however often it has run."""
        said = repr((self.table, self.id, *self.same, self.created_at))
        return f"{MARK}{hashlib.sha256(said.encode(errors='replace')).hexdigest()[:32]}"
