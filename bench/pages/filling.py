"""Fills an installation as years of use would, by writing directly into its tables."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

AGENTS = 200
MOMENT = "%Y-%m-%d %H:%M:%S.%f"
SCHEMA = json.dumps({"type": "object", "properties": {"text": {"type": "string"}}})
OUTCOMES = ("ok",) * 96 + ("failed", "denied", "refused", "limited")
SOURCES = ("header", "header", "parameter", "credential", "none")


@dataclass(frozen=True, slots=True)
class Stock:
    """The amounts of data in an installation."""

    rows: int
    schedules: int
    tools: int
    turns: int


MUCH = Stock(1_000_000, 100_000, 10_000, 20_000)
A_TENTH = Stock(100_000, 10_000, 1_000, 2_000)
ONE_OF_EACH = Stock(1, 1, 1, 1)


def fill(database: Path, stock: Stock) -> None:
    now = datetime.now(UTC)
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        _agents(connection, now, min(AGENTS, stock.turns))
        _journal(connection, now, stock.rows)
        _schedules(connection, now, stock.schedules)
        _tools(connection, now, stock.tools)
        _turns(connection, now, stock.turns)
        connection.execute("ANALYZE")


def _insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, object]]) -> None:
    names = list(rows[0])
    marks = ", ".join("?" for _ in names)
    columns = ", ".join(f'"{name}"' for name in names)
    connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [tuple(row.values()) for row in rows])


def _agents(connection: sqlite3.Connection, now: datetime, count: int) -> None:
    rows: list[dict[str, object]] = [
        {"id": _agent(number), "name": f"Agent {number}", "description": "", "created_at": now.strftime(MOMENT)}
        for number in range(count)
    ]
    _insert(connection, "agents", rows)


def _journal(connection: sqlite3.Connection, now: datetime, count: int) -> None:
    apart = timedelta(days=29) / count
    for start in range(0, count, 50_000):
        rows: list[dict[str, object]] = [
            {
                "at": (now - apart * (count - number)).strftime(MOMENT),
                "kind": ("call", "tool", "turn", "delivery")[number % 4],
                "surface": "mcp",
                "action": f"action-{number % 40}",
                "outcome": OUTCOMES[number % 100],
                "reason": None if number % 100 < 96 else "Unavailable",
                "agent_id": _agent(number % AGENTS),
                "user_id": f"user-{number % 1000}",
                "source": SOURCES[number % 5],
                "verified": number % 5 == 3,
                "request_id": f"r-{number}",
                "duration_us": 500 + number % 9_000,
            }
            for number in range(start, min(count, start + 50_000))
        ]
        _insert(connection, "journal", rows)


def _schedules(connection: sqlite3.Connection, now: datetime, count: int) -> None:
    soon = int(now.timestamp() * 1e6) + 3_600_000_000
    rows: list[dict[str, object]] = [
        {
            "agent_id": _agent(number % AGENTS),
            "user_id": f"user-{number % 1000}",
            "lane": _agent(number % AGENTS),
            "prompt": f"Do the work number {number}",
            "kind": "once",
            "value": "",
            "zone": "UTC",
            "jitter_s": 0,
            "overlap": "queue",
            "misfire": "once",
            "attempts": 3,
            "timeline": False,
            "state": "active",
            "intended_us": soon + number * 1_000_000,
            "fire_us": soon + number * 1_000_000,
            "fired": 0,
            "created_us": soon,
            "updated_us": soon,
        }
        for number in range(count)
    ]
    _insert(connection, "schedules", rows)
    connection.execute(
        "INSERT INTO lanes (name, serial, due_us) SELECT lane, TRUE, min(fire_us) FROM schedules GROUP BY lane"
    )


def _tools(connection: sqlite3.Connection, now: datetime, count: int) -> None:
    servers = max(1, count // 500)
    at = now.strftime(MOMENT)
    _insert(connection, "tool_servers", [_server(number, count // servers, at) for number in range(servers)])
    rows: list[dict[str, object]] = [
        {
            "id": f"server-{number % servers}::tool_{number}",
            "server": f"server-{number % servers}",
            "name": f"tool_{number}",
            "api_name": f"tool_{number}",
            "description": f"Does the thing number {number} with a text.",
            "parameters": SCHEMA,
            "inputs": "text",
            "input_texts": "",
            "annotations": "{}",
            "kind": "mcp",
            "standing": "ready",
            "change": "",
            "seal": str(number),
            "digest": f"{number:064d}",
            "gone": False,
            "changed_at": at,
            "revision": 1,
        }
        for number in range(count)
    ]
    _insert(connection, "tools", rows)


def _server(number: int, tools: int, at: str) -> dict[str, object]:
    return {
        "name": f"server-{number}",
        "transport": "http",
        "url": f"http://127.0.0.1:9/{number}",
        "command": '[""]',
        "env": "{}",
        "headers": "{}",
        "user_token": False,
        "oauth": "{}",
        "description": "",
        "origin": "added",
        "timeout": 60.0,
        "status": "ok",
        "error": "",
        "problems": "[]",
        "changes": "[]",
        "tools": tools,
        "crawled_at": at,
        "answered_at": at,
    }


def _turns(connection: sqlite3.Connection, now: datetime, count: int) -> None:
    rows: list[dict[str, object]] = [
        {
            "id": f"turn-{number}",
            "lane": f"conversation:{number}",
            "agent_id": _agent(number % AGENTS),
            "conversation_id": f"conv-{number % AGENTS}",
            "user_id": f"user-{number % 1000}",
            "running": False,
            "stop": "end_turn",
            "owner": "bench",
            "leased_until": now.strftime(MOMENT),
            "cancel_asked": False,
            "input_tokens": 100,
            "output_tokens": 20,
            "started_at": (now - timedelta(seconds=count - number)).strftime(MOMENT),
            "ended_at": (now - timedelta(seconds=count - number - 1)).strftime(MOMENT),
        }
        for number in range(count)
    ]
    _insert(connection, "turns", rows)


def _agent(number: int) -> str:
    return f"agent-{number:08d}"
