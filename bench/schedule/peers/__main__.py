"""`python -m bench.schedule.peers PEER fill|due|work URL …`: fills a peer's table, makes some due, or works on it."""

import importlib
import sys

from bench.schedule.due import DueSet, now_us


def main() -> None:
    """A worker prints `ready` and waits for the signal, so that its start is over when the prompts fall due."""
    name, task, url, *numbers = sys.argv[1:]
    peer = importlib.import_module(f"bench.schedule.peers.on_{name}")
    match task, [int(number) for number in numbers]:
        case "fill", [schedules]:
            peer.fill(url, schedules)
            print("filled", flush=True)
        case "due", [schedules, due, apart_us, lead_us]:
            first_us = now_us() + lead_us
            peer.make_due(url, DueSet(schedules, due, apart_us).times(first_us))
            print(first_us, flush=True)
        case "work", [port]:
            print("ready", flush=True)
            sys.stdin.readline()
            peer.work(url, port)
        case _:
            sys.exit(f"there is no such task: {task} {numbers}")


if __name__ == "__main__":
    main()
