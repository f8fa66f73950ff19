"""Implements as much of curl as the documentation uses, for machines that have none: -s -i -X -H -d URL."""

import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

SECONDS = 20


def main(arguments: list[str]) -> None:
    url, data, method, show_head = "", None, None, False
    headers: dict[str, str] = {}
    rest = iter(arguments)
    for word in rest:
        match word:
            case "-s" | "-S" | "-f":
                continue
            case "-i":
                show_head = True
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(":")
                headers[name] = value.strip()
            case "-d":
                data = next(rest)
            case _:
                url = word
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=SECONDS)
    target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    connection.request(method or ("POST" if data else "GET"), target, data, {"Accept": "*/*", **headers})
    answer = connection.getresponse()
    if show_head:
        lines = [
            f"HTTP/1.1 {answer.status} {answer.reason}",
            *(f"{name}: {value}" for name, value in answer.headers.items()),
        ]
        sys.stdout.write("\r\n".join([*lines, "", ""]))
    sys.stdout.write(answer.read().decode())


main(sys.argv[1:])
