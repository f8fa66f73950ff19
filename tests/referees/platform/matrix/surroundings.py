"""What surrounds a call: variables, their order and spelling, the platform's address, the project's file."""

from itertools import product

from tests.referees.platform.cases import DEVELOPMENT, MANIFEST, NONE, PLATFORM, PRODUCTION, Case, Chat, Listing
from tests.referees.platform.matrix.making import TYPED, Option, manifest, same, showing, turn

ENDPOINT = frozenset({"endpoint"})
MAIL = {MANIFEST: manifest({"mcpServerName": "mail"})}
VARIABLES = ("PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT")
SPELLINGS = ("", "Development", "development", "DEVELOPMENT", " Development", "Dev", "Production", "Staging")
CHAT = Chat(turn(id="message", text="hi", conversation=turn(id="chat").activity))


def modes() -> tuple[Case, ...]:
    """Each variable in each spelling, and each pair of them in both orders."""
    alone = [
        Case(f"{name}={said!r}", environment={"MCP_PLATFORM_ENDPOINT": PLATFORM, name: said}, files=MAIL)
        for name, said in product(VARIABLES, SPELLINGS)
    ]
    pairs = [
        Case(
            f"{first}={one!r} and {second}={other!r}",
            environment={"MCP_PLATFORM_ENDPOINT": PLATFORM, second: other, first: one},
            files=MAIL,
        )
        for (first, second), (one, other) in product(
            [(first, second) for first, second in product(VARIABLES, VARIABLES) if first != second],
            product(("", "development", "Production"), ("development", "Production")),
        )
    ]
    return (*alone, *pairs, Case("no variable", environment=DEVELOPMENT, files=MAIL))


# In production both would ask the real platform, so that only their addresses of servers are compared.
NOWHERE = (*same({"unset": {}}), *showing("endpoint", {"empty": {"MCP_PLATFORM_ENDPOINT": ""}}))
SLASHES = ("{platform}/", "{platform}//", "{platform}/base/", " {platform} ", "{platform} ")
UNUSABLE = (
    "localhost:5309",
    "platform",
    "ftp://platform",
    "http://",
    "http:///agents",
    "http://user:secret@127.0.0.1:9",
    "{platform}?x=1",
    "{platform}#x",
)
BRACKET = "http://[::1"
# With these the SDK does ask, elsewhere than it meant. Of the others a chat only tells that it was not sent.
ASKED = frozenset({"{platform}?x=1", "{platform}#x"})


def endpoints() -> tuple[Case, ...]:
    return (
        *(Case(f"endpoint {it.name}", environment=it.value, files=MAIL, fixes=it.fixes) for it in NOWHERE),
        Case(
            "endpoint with a path", environment={**PRODUCTION, "MCP_PLATFORM_ENDPOINT": "{platform}/base"}, fixes=TYPED
        ),
        Case("a path while developing", environment={"MCP_PLATFORM_ENDPOINT": "{platform}/base"}, files=MAIL),
        *(
            Case(f"endpoint {said!r} while developing", Listing(), ENDPOINT, {"MCP_PLATFORM_ENDPOINT": said}, MAIL)
            for said in (*SLASHES, *UNUSABLE, BRACKET)
        ),
        *(
            Case(f"{name} at endpoint {said!r}", call, ENDPOINT, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": said})
            for said, (name, call) in product(SLASHES[:2], {"a listing": Listing(), "a chat": CHAT}.items())
        ),
        Case("an endpoint with spaces", Listing(), ENDPOINT, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": SLASHES[3]}),
        *(
            Case(f"endpoint {said!r}", Listing(), ENDPOINT | TYPED, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": said})
            for said in (*UNUSABLE, BRACKET)
        ),
        *(
            Case(
                f"chat at endpoint {said!r}",
                CHAT,
                TYPED | (ENDPOINT if said in ASKED else NONE),
                {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": said},
            )
            for said in UNUSABLE
        ),
        Case(f"chat at endpoint {BRACKET!r}", CHAT, ENDPOINT, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": BRACKET}),
    )


PROJECTS = (
    *same(
        {
            "no project": b"",
            "a name": b'[project]\nname = "project"\n',
            "single quotes": b"[project]\nname = 'project'\n",
            "a comment": b'# [project]\n[project]\n# name = "x"\nname = "project" # name\n',
            "no spaces": b'[project]\nname="project"\n',
            "windows lines": b'[project]\r\nversion = "1"\r\nname = "project"\r\n',
            "other keys": b'[project]\nnames = "x"\nname_x = "y"\nx.name = "z"\nname = "project"\n',
            "only other keys": b'[project]\nnames = "x"\nname_x = "y"\n',
            "another table": b'[tool.poetry]\nname = "project"\n',
            "a table before": b'[build-system]\nname = "x"\n[project]\nname = "project"\n',
            "a table below": b'[project.urls]\nname = "x"\n',
            "an empty name": b'[project]\nname = ""\n',
            "a number": b"[project]\nname = 5\n",
            "not UTF-8": b'[project]\nname = "\xff"\n',
            "a comment that ends the table": b'[project]\n# [x]\nname = "project"\n',
        }
    ),
    *showing(
        "project-names",
        {
            "a comment behind the table": b'[project] # ours\nname = "project"\n',
            "spaces in the table": b'[ project ]\nname = "project"\n',
            "an inline table": b'project = { name = "project" }\n',
            "a dotted key": b'project.name = "project"\n',
            "a quoted key": b'[project]\n"name" = "project"\n',
            "an escape": b'[project]\nname = "pro\\u006aect"\n',
            "the other quote": b'[project]\nname = "it\'s"\n',
            "three quotes": b'[project]\nname = """project"""\n',
            "a BOM": b'\xef\xbb\xbf[project]\nname = "project"\n',
            "inside a text": b'[project]\ndescription = """\nname = "x"\n"""\nname = "project"\n',
            "broken behind": b'[project]\nname = "project"\n[broken\n',
            "broken quotes": b"[project]\nname = \"project'\n",
            "a name that is said twice": b'[project]\nname = "one"\nname = "two"\n',
            "another table of lists": b'[project]\nversion = "1"\n[[tool.x]] # more\nname = "x"\n',
        },
    ),
)


def projects() -> tuple[Case, ...]:
    """Each file with and without a variable that beats it, and the name that a token beats."""
    cases = [Case(f"project: {it.name}", files=_project(it), fixes=it.fixes) for it in PROJECTS]
    beaten = {**PRODUCTION, "AGENT365_APPLICATION_NAME": "variable"}
    cases += [Case(f"project: {it.name}, and a variable", files=_project(it), environment=beaten) for it in PROJECTS]
    return (*cases, Case("no project file"))


def _project(option: Option) -> dict[str, bytes]:
    return {"pyproject.toml": option.value}


CASES = (*modes(), *endpoints(), *projects())
