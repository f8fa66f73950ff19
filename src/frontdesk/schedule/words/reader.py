"""A phrase as words, taken from the front one by one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

WORD = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}-\d{1,2}-\d{4}|"
    r"\d+(?:[./]\d+){2,}|\d+/\d+|\d*:\d+(?::\d+)?|\d+(?:\.\d+)?|[^\W\d_]+|\S"
)


@dataclass(slots=True)
class Words:
    """What is left of a phrase; `left` has the next word at its end."""

    left: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, text: str) -> "Words":
        plain = text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("o'clock", "oclock")
        plain = plain.replace("&", " and ")
        # `dec. 1`, `mon. at 9`
        plain = re.sub(r"\b([^\W\d_]{3,5})\.(?=\s)", r"\1", plain)
        plain = re.sub(r"(?<![^\W\d_])([ap])\.m\b\.?", r"\1m", plain).rstrip(" .!")
        return cls(WORD.findall(plain)[::-1])

    @property
    def done(self) -> bool:
        return not self.left

    def rest(self) -> str:
        return _joined(self.left)

    def since(self, mark: Sequence[str]) -> str:
        """What was taken after a mark."""
        return _joined(mark[len(self.left) :])

    def peek(self, ahead: int = 0) -> str:
        return self.left[-1 - ahead] if ahead < len(self.left) else ""

    def take(self, *options: str) -> str | None:
        """The next word, if it is one of these."""
        return self.left.pop() if self.peek() in options and self.left else None

    def phrase(self, text: str) -> bool:
        """Take all of these words, or none."""
        wanted = text.split()
        if [self.peek(ahead) for ahead in range(len(wanted))] != wanted:
            return False
        del self.left[-len(wanted) :]
        return True

    def mark(self) -> list[str]:
        return list(self.left)

    def back(self, mark: list[str]) -> None:
        self.left = list(mark)


def _joined(left: Sequence[str]) -> str:
    return re.sub(r"(\d) (st|nd|rd|th)\b", r"\1\2", " ".join(reversed(left)))
