"""Makes the embedding model that ships with Frontdesk; see README.md."""

from pathlib import Path


class Missing(Exception):
    """A file that is no part of this repository is not where it was looked for."""

    def __init__(self, path: Path, option: str) -> None:
        super().__init__(f"{path} is not there; give its folder with {option}")
