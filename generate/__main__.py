"""Writes the files that are made from the declared operations: `python -m generate`.

With `--check` it writes nothing, and fails if a file is not current.
"""

import sys
from collections.abc import Callable, Mapping

from generate.library import ROOT, library_module

FILES: Mapping[str, Callable[[], str]] = {
    "src/frontdesk/interfaces/library/methods.py": library_module,
}


def main(arguments: list[str]) -> int:
    stale: list[str] = []
    for name, make in FILES.items():
        path, text = ROOT / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} is not current: run python -m generate" if "--check" in arguments else f"wrote {name}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
