"""Whose records a request is about, and what it needs to be allowed: known before anything else is looked at."""

from typing import Annotated

from fastapi import Request, Security
from fastapi.security import SecurityScopes

from frontdesk.identity import rights
from frontdesk.memory.scope import Scope
from frontdesk.surfaces.rest.calls import CALLER, CREDENTIAL

# What the numbers are of.
NUMBERS = [rights.TASKS_READ, rights.MEMORIES_READ, rights.ACTIVITIES_READ, rights.TASKS_TIME, rights.AI_TASKS_READ]


def _scope(needed: SecurityScopes, request: Request, _shown: Annotated[object, Security(CREDENTIAL)]) -> Scope:
    """The services ask again; here it comes before what was sent is read, and stands in the description."""
    scope = Scope.of(request.scope[CALLER])
    for right in needed.scopes:
        scope.require(right)
    return scope


Anybody = Annotated[Scope, Security(_scope)]
Admin = Annotated[Scope, Security(_scope, scopes=[rights.MEMORY_ADMIN])]
ReadsNumbers = Annotated[Scope, Security(_scope, scopes=NUMBERS)]
ReadsTasks = Annotated[Scope, Security(_scope, scopes=[rights.TASKS_READ])]
WritesTasks = Annotated[Scope, Security(_scope, scopes=[rights.TASKS_WRITE])]
TracksTime = Annotated[Scope, Security(_scope, scopes=[rights.TASKS_TIME])]
ReadsMemories = Annotated[Scope, Security(_scope, scopes=[rights.MEMORIES_READ])]
WritesMemories = Annotated[Scope, Security(_scope, scopes=[rights.MEMORIES_WRITE])]
ReadsActivities = Annotated[Scope, Security(_scope, scopes=[rights.ACTIVITIES_READ])]
WritesActivities = Annotated[Scope, Security(_scope, scopes=[rights.ACTIVITIES_WRITE])]
ReadsTimeline = Annotated[Scope, Security(_scope, scopes=[rights.TIMELINE_READ])]
WritesTimeline = Annotated[Scope, Security(_scope, scopes=[rights.TIMELINE_WRITE])]
ReadsWork = Annotated[Scope, Security(_scope, scopes=[rights.AI_TASKS_READ])]
WritesWork = Annotated[Scope, Security(_scope, scopes=[rights.AI_TASKS_WRITE])]
ReadsCategories = Annotated[Scope, Security(_scope, scopes=[rights.CATEGORIES_READ])]
WritesCategories = Annotated[Scope, Security(_scope, scopes=[rights.CATEGORIES_WRITE])]
