"""How a tool answers: by one template, or by what its server has been through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontdesk.platform.declared.fields import Fields, check_keys, fields_in_any_case, kind_of
from frontdesk.platform.declared.model import FIRST_STATE, Answer
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import quoted
from frontdesk.platform.declared.templates import unprovided

KEYS = ("in", "responseTemplate", "next", "isError")


@dataclass(frozen=True, slots=True)
class Placed:
    """An answer and where it stands."""

    where: str
    answer: Answer


def answers(found: Fields, schema: Mapping[str, Any], notes: Notes) -> tuple[Placed, ...]:
    """Those for a state first, in their order, then the one for all others."""
    template = found.text("responseTemplate", notes)
    if template is not None:
        _check_template(template, schema, found.at("responseTemplate"), notes)
    read: list[Placed] = []
    for number, value in enumerate(found.items("states", notes) or ()):
        where = f"{found.at('states')}[{number}]"
        if isinstance(value, dict):
            state = fields_in_any_case(cast("dict[str, object]", value), where, KEYS, notes)
            read.append(Placed(where, _answer(state, template, schema, notes)))
        else:
            notes.error(where, f'must be an object like {{"in": "draft"}}, not {kind_of(value)}, and is left out')
    _check_order(read, notes)
    rest = () if template is None else (Placed(found.at("responseTemplate"), Answer(template)),)
    return (*read, *rest)


def check_states(all_answers: Sequence[Placed], notes: Notes) -> None:
    """Warn of states of one server that cannot be reached, and of those in which nobody has an answer."""
    spoken_of = {one.answer.state for one in all_answers if one.answer.state is not None} | {FIRST_STATE}
    # Where an answer is for every state, one that nobody speaks of may be the end; or it is misspelt.
    has_rest = any(one.answer.state is None for one in all_answers)
    reached = _reached([one.answer for one in all_answers])
    for one in all_answers:
        state, following = one.answer.state, one.answer.next_state
        if state is not None and state not in reached:
            known = notes.meant(state, reached)
            notes.warn(f"{one.where}.in", f"nothing leads to {quoted(state)} from '{FIRST_STATE}'{known}")
        if following is not None and following not in spoken_of:
            known = notes.meant(following, spoken_of)
            if known or not has_rest:
                notes.warn(f"{one.where}.next", f"no tool of the server speaks of {quoted(following)}{known}")


def _reached(given: Sequence[Answer]) -> set[str]:
    """The states that a server can come into, from the first one on."""
    ways: dict[str | None, list[str]] = {}
    for one in given:
        if one.next_state is not None:
            ways.setdefault(one.state, []).append(one.next_state)
    # What counts in any state does so in the first one too.
    reached, ahead = {FIRST_STATE}, [FIRST_STATE, *ways.get(None, ())]
    while ahead:
        state = ahead.pop()
        ahead += [following for following in ways.get(state, ()) if following not in reached]
        reached |= {state, *ways.get(state, ())}
    return reached


def _answer(found: Fields, otherwise: str | None, schema: Mapping[str, Any], notes: Notes) -> Answer:
    check_keys(found, KEYS, notes)
    template = found.text("responseTemplate", notes)
    if template is not None:
        _check_template(template, schema, found.at("responseTemplate"), notes)
    elif otherwise is None:
        notes.warn(found.where, "has no responseTemplate, so that its answer is empty; say what it is")
    said = otherwise or "" if template is None else template
    failed = found.flag("isError", notes) or False
    return Answer(said, _state(found, "in", notes), _state(found, "next", notes), failed)


def _state(found: Fields, key: str, notes: Notes) -> str | None:
    state = found.text(key, notes)
    if state is not None and not state.strip():
        notes.error(found.at(key), "is blank, and left out; name a state")
        return None
    return state


def _check_order(read: Sequence[Placed], notes: Notes) -> None:
    """The first answer that fits counts: others for the same state are never given."""
    taken: set[str | None] = set()
    for one in read:
        if one.answer.state in taken or None in taken:
            notes.warn(one.where, "is never given: an answer before it is for the same state; keep one")
        taken.add(one.answer.state)


def _check_template(template: str, schema: Mapping[str, Any], where: str, notes: Notes) -> None:
    for name in unprovided(template, schema):
        known = notes.meant(name, tuple(schema["properties"]))
        notes.warn(where, f"{quoted('{{' + name + '}}')} is no argument of the tool{known}")
