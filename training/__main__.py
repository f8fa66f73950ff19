"""`python -m training`: tunes, averages, quantises and checks the embedding model that ships with Frontdesk."""

import argparse
import os
import sys
from pathlib import Path

from training import Missing
from training.commands import export, judge, tune
from training.sets import DATA
from training.speed import speed

SHIPPED = Path(__file__).parents[1] / "src" / "frontdesk" / "embedding" / "model"
UNTUNED = Path(__file__).parents[1] / ".build" / "bench" / "untuned"


def main() -> int:
    # cuBLAS gives reproducible sums only if this is set before it is loaded.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    given = _parser().parse_args()
    try:
        return given.run(given)
    except Missing as error:
        print(f"training: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("tune", help="make the model that ships: minutes on a GPU, hours without one")
    command.set_defaults(run=_tune)
    _add_base(command)
    command.add_argument("--out", type=Path, default=SHIPPED, help="where the model goes")
    command.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    command.add_argument("--seeds", type=int, default=6, help="how many runs are averaged (6)")
    command.add_argument(
        "--keep", type=Path, help="where the tuned weights go in half precision, if they should be kept"
    )
    command = commands.add_parser("export", help="put weights into the form that ships: the base's, to compare with")
    command.set_defaults(run=_export)
    _add_base(command)
    command.add_argument("--weights", type=Path, help="the folder of other weights, such as --keep kept")
    command.add_argument("--out", type=Path, default=UNTUNED, help="where the model goes")
    command = commands.add_parser("judge", help="NDCG at 10 of models as they are shipped")
    command.set_defaults(run=_judge)
    command.add_argument("models", type=Path, nargs="*", default=[UNTUNED, SHIPPED], help="folders of models")
    command.add_argument("--questions", type=int, help="at most this many of each set")
    command = commands.add_parser("speed", help="what a question and a tool cost, with a model as it ships")
    command.set_defaults(run=_speed)
    command.add_argument("model", type=Path, nargs="?", default=SHIPPED, help="the folder of a model")
    for command in commands.choices.values():
        command.add_argument("--data", type=Path, default=DATA, help="the folder of the tool-retrieval sets")
    return parser


def _tune(given: argparse.Namespace) -> int:
    return tune(given.data, given.base, given.out, range(given.seed, given.seed + given.seeds), given.keep)


def _export(given: argparse.Namespace) -> int:
    return export(given.data, given.base, given.weights or given.base, given.out)


def _judge(given: argparse.Namespace) -> int:
    return judge(given.data, given.models, given.questions)


def _speed(given: argparse.Namespace) -> int:
    return speed(given.model)


def _add_base(command: argparse.ArgumentParser) -> None:
    command.add_argument("--base", type=Path, required=True, help="the folder of the base weights and their vocabulary")


if __name__ == "__main__":
    sys.exit(main())
