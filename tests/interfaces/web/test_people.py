"""Tests the pages of people: whose data is stored, what it is, and how it is exported or erased."""

import json
from collections.abc import AsyncGenerator
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from frontdesk.app import App, open_app
from frontdesk.identity.rights import INSTALLATION_ADMIN, MEMORY_ADMIN
from frontdesk.interfaces.http.application import build_application
from frontdesk.memory.model import PersonScope
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.browsers import Browser, browsing, text_of

ADA = PersonScope("ada")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnihtyna\u2066 \"' {{ 7*7 }}"

# Ids with characters that end an address, lead elsewhere in one, or end a word of a command.
ODD = ("a/b", "https://login.example/|ada?x=1#y", "..", ".", "50%", "a b+c&d", "/", "'; rm -rf ~", "x" * 200)


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[App]:
    """The services, on each database."""
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
async def web(installation: App) -> AsyncGenerator[Browser]:
    async with browsing(build_application(installation)) as browser:
        yield browser


async def task_of(installation: App, title: str, scope: PersonScope = ADA, **fields: Any) -> str:
    return (await installation.memory.tasks.create(scope, {"title": title, **fields})).id


async def note(installation: App, text: str, scope: PersonScope = ADA, **fields: Any) -> str:
    return (await installation.memory.memories.create(scope, {"note": text, **fields})).id


async def assign(installation: App, task_id: str, scope: PersonScope = ADA, **fields: Any) -> str:
    work = {"task_id": task_id, "agent_id": "clerk", "objective": "Compare hotels", "task_type": "research", **fields}
    return (await installation.memory.work_queue.create(scope, work)).id


def at(user: str) -> str:
    return f"/people/{quote(user, safe='')}"


async def follow(web: Browser, link: str) -> str:
    """The page behind a link, with HTML escapes."""
    path, _, query = unescape(link).partition("?")
    said: dict[str, Any] = dict(parse_qsl(query))
    return await web.get(path, **said)


@shows("WEB-PEOPLE")
async def test_everybody_who_keeps_something_is_listed_with_how_much(installation: App, web: Browser) -> None:
    assert "frontdesk memory add" in text_of(await web.get("/people"))
    await note(installation, "The office closes at six")
    await task_of(installation, "Book the train")
    await installation.memory.people.set_zone(ADA, "Europe/Berlin")
    await note(installation, "Grace likes ships", PersonScope("grace"))
    html = await web.get("/people")
    assert 'href="/people/ada"' in html
    assert "ada 2 now now Europe/Berlin grace 1 now now UTC" in text_of(html)
    assert "Europe/Berlin" not in text_of(await web.get("/people", find="GR"))
    assert "starts with this" in text_of(await web.get("/people", find="nobody"))


async def test_a_long_list_of_people_goes_on_after_the_last(installation: App, web: Browser) -> None:
    for number in range(23):
        await note(installation, "Something", PersonScope(f"person {number:02}"))
    first = await web.get("/people", find="person")
    assert "person 19" in first
    assert "person 20" not in first
    assert "after=person+19" in first or "after=person%2019" in first
    rest = text_of(await web.get("/people", find="person", after="person 19"))
    assert "person 19" not in rest
    assert "person 22" in rest
    assert "From the beginning" in rest


@shows("WEB-PEOPLE")
async def test_a_persons_tasks_are_shown_with_their_subtasks_and_completed(installation: App, web: Browser) -> None:
    trip = await task_of(installation, "Plan the trip", due_date="2020-01-01", priority="high")
    train = await task_of(installation, "Book the train", parent_task_id=trip)
    await task_of(installation, "Find a hotel", parent_task_id=trip)
    listed = text_of(await web.get("/people/ada"))
    assert "Plan the trip pending overdue" in listed
    assert "0 of 2 done high" in listed
    assert "Book the train" not in listed
    inside = text_of(await web.get("/people/ada", tab="tasks", task=trip))
    assert inside.index("Book the train") < inside.index("Find a hotel")
    form = {"user": "ada", "task": train, "back": f"tab=tasks&task={trip}"}
    done = await web.post("/people/complete", form)
    assert web.answer is not None
    assert web.answer.url.query == f"tab=tasks&task={trip}".encode()
    assert "Completed: Book the train" in text_of(done)
    assert "1 of 2 done" in text_of(await web.get("/people/ada"))
    assert "Book the train" in text_of(await web.get("/people/ada", tab="tasks", state="completed"))
    assert "Reopened: Book the train" in text_of(await web.post("/people/reopen", form))
    assert "Find a hotel" in text_of(await web.get("/people/ada", tab="tasks", q="hotel", part=True))
    assert "No such tasks" in text_of(await web.get("/people/ada", tab="tasks", q="boat"))


async def test_tasks_are_shown_a_page_at_a_time(installation: App, web: Browser) -> None:
    for number in range(26):
        await task_of(installation, f"Task {number:02}", due_date=f"2030-01-{26 - number:02}")
    first = await web.get("/people/ada", order="due")
    assert "26 tasks" in text_of(first)
    assert first.index("Task 25") < first.index("Task 01")
    assert "Task 00" not in first
    assert "Task 00" in await web.get("/people/ada", order="due", offset="25")
    await web.get("/people/ada", 400, offset="-1")


@shows("WEB-PEOPLE")
async def test_memories_are_searched_as_the_command_does(installation: App, web: Browser) -> None:
    assert "No memories" in text_of(await web.get("/people/ada", tab="memories"))
    nuts = await note(installation, "Ada is allergic to hazelnuts", PersonScope("ada", "clerk"), tags=["food"])
    await note(installation, "The office closes at six")
    await task_of(installation, "Buy hazelnuts for the squirrel")
    every = text_of(await web.get("/people/ada", tab="memories"))
    assert "allergic to hazelnuts" in every
    assert "closes at six" in every
    part = await web.get("/people/ada", tab="memories", q="hazelnuts", part=True)
    assert "<html" not in part
    assert "words: hazelnut" in text_of(part)
    assert "squirrel" not in part
    assert "squirrel" in await web.get("/people/ada", tab="memories", q="hazelnuts", everything="1")
    assert "Nothing fits" in text_of(await web.get("/people/ada", tab="memories", q="zeppelin"))
    one = text_of(await web.get("/people/ada", tab="memories", memory=nuts))
    assert nuts in one
    assert "food" in one


@shows("WEB-PEOPLE")
async def test_the_timeline_is_paged_from_the_newest_on(installation: App, web: Browser) -> None:
    assert "Nothing was put down" in text_of(await web.get("/people/ada", tab="timeline"))
    for number in range(35):
        await note(installation, f"Note {number:02}")
    await task_of(installation, "Water the plants")
    first = await web.get("/people/ada", tab="timeline")
    assert first.index("Water the plants") < first.index("Note 34") < first.index("Note 06")
    assert "Note 05" not in first
    older = first.split('rel="next" href="')[1].split('"')[0]
    rest = await follow(web, older)
    assert "Note 06" not in rest
    assert "Note 05" in rest
    assert "Note 00" in rest
    assert "Note 34" not in await web.get("/people/ada", tab="timeline", kind="task")
    await web.get("/people/ada", 400, tab="timeline", before="yesterday")
    await web.get("/people/ada", 400, tab="timeline", kind="dream")


@shows("WEB-PEOPLE")
async def test_time_is_told_by_day_and_a_timer_stopped(installation: App, web: Browser) -> None:
    nothing = text_of(await web.get("/people/ada", tab="time"))
    assert "No timer runs" in nothing
    assert "No time was tracked in these days" in nothing
    write, call = await task_of(installation, "Write"), await task_of(installation, "Call")
    for day, task_id, until in (("17", write, "10:30"), ("18", write, "09:20"), ("18", call, "11:00")):
        entry = {"start_at": f"2026-03-{day}T09:00", "end_at": f"2026-03-{day}T{until}", "note": f"until {until}"}
        await installation.memory.time_tracking.add(ADA, task_id, entry)
    week = text_of(await web.get("/people/ada", tab="time", day="2026-03-18"))
    assert "2026-03-12 to 2026-03-18 3 h 50 min in all" in week
    assert "Wed 2026-03-18 2 h 20 min 2 h 20 min Call 2 h , Write 20 min" in week
    assert "until 10:30" in week
    assert "0 min in all" in text_of(await web.get("/people/ada", tab="time", day="2026-03-11"))
    await web.get("/people/ada", tab="time", day="0001-01-04")
    await installation.memory.time_tracking.start(ADA, write)
    assert "running Write" in text_of(await web.get("/people/ada", tab="time"))
    assert "Stopped: Write" in text_of(await web.post("/people/stop", {"user": "ada", "item": write}))
    assert await installation.memory.time_tracking.running(ADA) is None
    assert "No timer runs" in text_of(await web.post("/people/stop", {"user": "ada", "item": write}))


@shows("WEB-PEOPLE")
async def test_work_of_agents_is_shown_and_approved(installation: App, web: Browser) -> None:
    assert "No work for agents" in text_of(await web.get("/people/ada", tab="work"))
    work = await assign(installation, await task_of(installation, "Plan the trip"), mode="execute")
    assert "awaits approval" in text_of(await web.get("/people/ada", tab="work"))
    form = {"user": "ada", "work": work, "back": f"tab=work&work={work}"}
    said = text_of(await web.post("/people/approve", form))
    assert "Approved: clerk may execute Compare hotels" in said
    assert "awaits approval" not in text_of(await web.get("/people/ada", tab="work"))
    await installation.memory.work_queue.accept(PersonScope("ada", "clerk"), work)
    await installation.memory.work_queue.complete(PersonScope("ada", "clerk"), work, {"output": "The Adler is best"})
    one = text_of(await web.get("/people/ada", tab="work", work=work))
    assert "The Adler is best" in one
    assert "in_progress completed" in one


@shows("WEB-PEOPLE")
async def test_an_export_is_a_file_that_can_be_taken_in(installation: App, web: Browser) -> None:
    await note(installation, "Käse & \U0001f9c0, never goat's")
    for number in range(3):
        await task_of(installation, f"Task {number}")
    sent = json.loads(await web.post("/people/export", {"user": "ada"}))
    assert web.answer is not None
    assert web.answer.headers["content-disposition"].startswith('attachment; filename="frontdesk-ada-')
    assert web.answer.headers["content-type"] == "application/json"
    assert web.answer.headers["x-content-type-options"] == "nosniff"
    again = await installation.memory.people.export(ADA)
    assert {**again, "exported_at": sent["exported_at"], "elsewhere": sent["elsewhere"]} == sent
    taken = await installation.memory.people.import_(PersonScope("bob"), sent)
    assert taken["timeline_items"] == 4


@shows("WEB-PEOPLE")
async def test_erasing_needs_the_id_and_says_what_is_gone(installation: App, web: Browser) -> None:
    await note(installation, "Something")
    await task_of(installation, "Something else")
    await note(installation, "Of another", PersonScope("grace"))
    html = text_of(await web.get("/people/ada", tab="everything"))
    assert "Timeline items 2" in html
    refused = text_of(await web.post("/people/erase", {"user": "ada", "sure": "grace"}, 400))
    assert "Nothing was erased" in refused
    assert (await installation.memory.people.counts(ADA))["timeline_items"] == 2
    gone = text_of(await web.post("/people/erase", {"user": "ada", "sure": "ada"}))
    assert "Erased: 2 timeline items, 1 tasks, 1 memories" in gone
    assert 'href="/people/ada"' not in await web.get("/people")
    assert "grace" in await web.get("/people")
    assert "Nothing is stored for this person" in text_of(await web.get("/people/ada"))


@shows("WEB-PEOPLE")
async def test_whatever_an_id_holds_it_has_a_page(installation: App, web: Browser) -> None:
    for user in ODD:
        task_id = await task_of(installation, "Theirs alone", PersonScope(user))
        links = [one.split('"')[0] for one in (await web.get("/people")).split('<a href="')]
        there = next(one for one in links if one.startswith("/people/"))
        assert "Theirs alone" in await follow(web, there)
        done = await web.post("/people/complete", {"user": user, "task": task_id})
        assert "Theirs alone completed" in text_of(done)
        json.loads(await web.post("/people/export", {"user": user}))
        assert "1 tasks" in text_of(await web.post("/people/erase", {"user": user, "sure": user}))


async def test_no_record_of_one_is_reached_through_another(installation: App, web: Browser) -> None:
    task_id, memory_id = await task_of(installation, "Ada's own"), await note(installation, "Ada's secret")
    work = await assign(installation, task_id)
    tabs: list[dict[str, Any]] = [{"tab": "tasks", "task": task_id}, {"tab": "memories", "memory": memory_id}]
    for query in tabs:
        assert "own" not in text_of(await web.get("/people/grace", 404, **query))
    await web.get("/people/grace", 404, tab="work", work=work)
    for act, field in (("complete", {"task": task_id}), ("approve", {"work": work}), ("stop", {"item": task_id})):
        await web.post(f"/people/{act}", {"user": "grace", **field}, 404)


async def test_what_cannot_be_is_refused_in_words(web: Browser) -> None:
    assert "printable" in text_of(await web.get(f"/people/{quote('a' * 201)}", 400))
    assert "printable" in text_of(await web.get("/people/%00", 400))
    assert "printable" in text_of(await web.post("/people/export", {}, 400))
    assert "no such tab" in text_of(await web.get("/people/ada", 404, tab="secrets"))
    assert "state is pending" in text_of(await web.get("/people/ada", 400, tab="tasks", state="odd"))


async def test_a_form_comes_back_to_the_persons_page_alone(installation: App, web: Browser) -> None:
    task_id = await task_of(installation, "Book the train")
    for back in ("//evil.example", "user=bob&tab=tasks", "a=" + "b" * 5000):
        await web.post("/people/complete", {"user": "ada", "task": task_id, "back": back})
        assert web.answer is not None
        assert str(web.answer.url).startswith("http://127.0.0.1:3020/people/ada")


async def test_what_people_and_agents_wrote_is_shown_inert(installation: App, web: Browser) -> None:
    odd = "<script>alert('id')</script>"
    scope = PersonScope(odd)
    task_id = await task_of(
        installation, HOSTILE, scope, description=HOSTILE, tags=[HOSTILE[:40]], assignee=HOSTILE[:100]
    )
    memory_id = await note(installation, HOSTILE + "x" * 40_000, scope, place_name=HOSTILE)
    work = await assign(installation, task_id, scope, objective=HOSTILE, context=HOSTILE)
    await installation.memory.time_tracking.start(scope, task_id, HOSTILE)
    pages: list[dict[str, Any]] = [
        {"tab": tab} for tab in ("tasks", "memories", "timeline", "time", "work", "everything")
    ]
    pages += [
        {"tab": "tasks", "task": task_id},
        {"tab": "memories", "memory": memory_id},
        {"tab": "work", "work": work},
    ]
    pages += [{"tab": "memories", "q": "script alert", "everything": "1"}, {"tab": "tasks", "q": "<script>"}]
    for page in pages:
        html = await web.get(at(odd), **page)
        assert "<script>alert" not in html
        assert "<img" not in html.replace('<img src="/static/icon.svg"', "")
        assert "49" not in text_of(html).replace(task_id, "").replace(memory_id, "").replace(work, "")
    assert "<script>alert" not in await web.get("/people")
    assert "<script>alert" not in await web.get("/people", find="<script>alert(1)")


async def test_an_operators_key_sees_people_and_another_does_not(installation: App) -> None:
    await note(installation, "Something")
    made = installation.identity.create_key
    _, admin = await made(name="", agent_id=None, user_id="root", scopes=frozenset({INSTALLATION_ADMIN}))
    _, other = await made(name="", agent_id=None, user_id="ada", scopes=frozenset({MEMORY_ADMIN}))
    async with browsing(build_application(installation), authorization=f"Bearer {admin}") as web:
        assert "ada" in text_of(await web.get("/people"))
        assert "Something" in text_of(await web.get("/people/ada", tab="memories"))
    async with browsing(build_application(installation), authorization=f"Bearer {other}") as web:
        await web.get("/people", 403)
        await web.get("/people/ada", 403)
