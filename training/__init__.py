"""Makes the embedding model that ships with Frontdesk; see README.md."""

from pathlib import Path


class Missing(Exception):
    """A file outside of this repository is not at its expected place."""

    def __init__(self, path: Path, option: str) -> None:
        super().__init__(f"{path} is not there; give its folder with {option}")
