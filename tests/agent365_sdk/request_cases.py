"""Cases of requests: the agent's id, the turn and framework, and the variables around a call."""

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from microsoft_agents.activity import Activity
from microsoft_agents.hosting.core import TurnContext

from tests.agent365_sdk.cases import (
    DEVELOPMENT,
    MANIFEST,
    NONE,
    PLATFORM,
    PRODUCTION,
    TYPED,
    Case,
    Chat,
    Listing,
    Option,
    coded,
    manifest,
    same,
    showing,
    token,
    turn,
    with_claims,
)

# The agent in `x-ms-agentid`: turns, tokens and names of applications against each other


# The SDK's behaviour for an id that it cannot send.
CRASH = "<no request>"
UNUSABLE = "unusable-ids"
PLAIN = "plain-headers"
LONG = "a" * 257


@dataclass(frozen=True, slots=True)
class Source:
    """A source of the id: the id that each side finds there, the fix if they differ, and the other fixes it shows."""

    name: str
    value: Any
    sdk: str | None = None
    ours: str | None = None
    fix: str = ""
    also: frozenset[str] = NONE


def alike(name: str, value: Any, found: str | None = None, also: frozenset[str] = NONE) -> Source:
    return Source(name, value, found, found, also=also)


def broken(name: str, value: Any, ours: str | None = None) -> Source:
    return Source(name, value, CRASH, ours, UNUSABLE)


def sender(**said: Any) -> object:
    return turn(from_=SimpleNamespace(**said))


def blueprint(said: Any) -> object:
    return sender(agentic_app_blueprint_id=said)


def activity(**said: Any) -> Activity:
    usual = {"type": "message", "id": "activity", "conversation": {"id": "chat"}, "text": "hi"}
    return Activity.model_validate({**usual, **said})


REAL = activity(**{"from": {"id": "user", "agenticAppBlueprintId": "real"}})
NOBODY = activity(**{"from": {"id": "user"}})

TURNS = (
    alike("no turn", None),
    alike("a turn without activity", SimpleNamespace()),
    alike("an activity that is None", SimpleNamespace(activity=None)),
    alike("an activity that is text", SimpleNamespace(activity="text")),
    alike("a sender that is None", turn(from_=None)),
    alike("no sender", turn(id="activity")),
    alike("a sender without blueprint", sender(id="user")),
    alike("an empty blueprint", blueprint("")),
    alike("a sender that is a dict", turn(from_={"agentic_app_blueprint_id": "blueprint"})),
    alike("a blueprint", blueprint("blueprint"), "blueprint"),
    alike("a padded blueprint", blueprint(" blueprint "), "blueprint"),
    alike("the host's own activity without blueprint", SimpleNamespace(activity=NOBODY)),
    Source("the host's own activity", SimpleNamespace(activity=REAL), None, "real", "real-activities"),
    Source("the host's own turn", TurnContext(SimpleNamespace(), REAL), None, "real", "real-activities"),
    broken("a blueprint that is a number", blueprint(5)),
    broken("a blueprint that is an object", blueprint(object())),
    broken("a blueprint with a line break", blueprint("a\r\nx-evil: 1")),
    Source("a blueprint of spaces", blueprint("  "), "", None, UNUSABLE),
    Source("a blueprint with an accent", blueprint("é"), "é", None, UNUSABLE),
    Source("a blueprint that is too long", blueprint(LONG), LONG, None, UNUSABLE),
)

HEADLESS = coded(b'{"alg": "RS256"}')
LATIN = coded(b'{"appid": "\xe9"}')
TOKENS = (
    alike("no JWT", "token"),
    alike("all claims", token({"azp": "z", "appid": "a", "xms_par_app_azp": "x"}), "x"),
    alike("appid and azp", token({"azp": "z", "appid": "a"}), "a"),
    alike("azp", token({"azp": "z"}), "z"),
    alike("no claim", token({"sub": "somebody"})),
    alike("an empty claim", token({"xms_par_app_azp": "", "appid": "a"}), "a"),
    alike("a claim that is null", token({"appid": None, "azp": "z"}), "z"),
    alike("a claim that is 0", token({"appid": 0, "azp": "z"}), "z"),
    alike("a claim that is false", token({"appid": False, "azp": "z"}), "z"),
    alike("a claim that is an empty list", token({"appid": [], "azp": "z"}), "z"),
    alike("a padded claim", token({"appid": " a "}), "a"),
    alike("the longest claim", token({"appid": "a" * 256}), "a" * 256),
    alike("an expired token", token({"appid": "a", "exp": 1}), "a"),
    alike("a token of the future", token({"appid": "a", "nbf": 99999999999}), "a"),
    alike("an audience of somebody else", token({"appid": "a", "aud": "other"}), "a"),
    alike("alg none", token({"appid": "a"}, {"alg": "none"}, b""), "a"),
    alike("no alg", token({"appid": "a"}, {}), "a"),
    alike("a header that is a list", token({"appid": "a"}, [1])),
    alike("claims that are a list", token(["appid"])),
    alike("claims that are text", token("appid")),
    alike("claims that are no JSON", with_claims("appid")),
    alike("claims after a BOM", with_claims('\ufeff{"appid": "a"}'), "a"),
    alike("claims in Latin-1", f"{HEADLESS}.{LATIN}.c2ln"),
    alike("a claim that is said twice", with_claims('{"appid": "a", "appid": "b"}'), "b"),
    alike("claims with NaN", with_claims('{"appid": "a", "x": NaN}'), "a"),
    alike("claims with a huge number", with_claims(f'{{"appid": "a", "x": {"1" * 5000}}}')),
    alike("two parts", "a.b"),
    alike("four parts", f"{token({'appid': 'a'})}.x"),
    alike("five parts", "a.b.c.d.e"),
    alike("only dots", ".."),
    alike("no base64", "a!.b!.c"),
    broken("a claim that is a number", token({"appid": 123})),
    broken("a number before another claim", token({"appid": 123, "azp": "z"}), "z"),
    broken("a claim that is true", token({"appid": True, "azp": "z"}), "z"),
    broken("a claim that is a float", token({"appid": 1.5})),
    broken("a claim that is a list", token({"appid": ["a"]})),
    broken("a claim that is an object", token({"xms_par_app_azp": {"x": "y"}, "azp": "z"}), "z"),
    broken("a claim with a line break", token({"appid": "a\r\nx-evil: 1", "azp": "z"}), "z"),
    broken("a claim with a NUL", token({"appid": "a\0", "azp": "z"}), "z"),
    Source("a claim with a tab", token({"appid": "a\tb", "azp": "z"}), "a\tb", "z", UNUSABLE),
    Source("a claim of spaces", token({"appid": "  ", "azp": "z"}), "", "z", UNUSABLE),
    Source("a claim with an accent", token({"appid": "é", "azp": "z"}), "é", "z", UNUSABLE),
    Source("a claim that is half a character", with_claims('{"appid": "\\ud800", "azp": "z"}'), "", "z", UNUSABLE),
    Source("a claim that is too long", token({"appid": LONG, "azp": "z"}), LONG, "z", UNUSABLE),
    Source("a huge claim", token({"appid": "a" * 5000}), "a" * 5000, None, UNUSABLE),
    Source("a critical header", token({"appid": "a"}, {"alg": "RS256", "crit": ["x"]}), None, "a", "token-forms"),
    Source("a key id that is a number", token({"appid": "a"}, {"alg": "RS256", "kid": 5}), None, "a", "token-forms"),
    Source("a signature that is no base64", f"{token({'appid': 'a'}, signature=b'')}x", None, "a", "token-forms"),
    Source("a token that is very long", token({"appid": "a", "x": "y" * 17000}), "a", None, "token-forms"),
    Source("Bearer", f"Bearer {token({'appid': 'a'})}", None, "a", "bare-tokens", frozenset({"bare-tokens"})),
    Source("bearer", f"bearer {token({'azp': 'z'})}", None, "z", "bare-tokens", frozenset({"bare-tokens"})),
    Source("a padded token", f"  {token({'appid': 'a'})} ", None, "a", "bare-tokens", frozenset({"bare-tokens"})),
    alike("Bearer before no JWT", "Bearer token", None, frozenset({"bare-tokens"})),
)

NAME = "AGENT365_APPLICATION_NAME"
APPLICATIONS = (
    alike("no name", {}),
    alike("an empty name", {NAME: ""}),
    alike("a name", {NAME: "application"}, "application"),
    alike("a name with spaces", {NAME: "my application"}, "my application"),
    Source("a name with an accent", {NAME: "caf\u00e9"}, "café", "cafe", PLAIN),
    Source("a name with curly quotes", {NAME: "\u201capp\u201d"}, "“app”", '"app"', PLAIN),
    Source("a name that is too long", {NAME: LONG}, LONG, LONG[:256], PLAIN),
    Source("a name with a line break", {NAME: "a\nb"}, CRASH, "a b", PLAIN),
    Source("a name of spaces", {NAME: "  "}, "", None, PLAIN),
)

# None of these tokens can be sent, so there is nothing else to compare.
UNSENDABLE = {
    "a line break": ("to\nken", TYPED),
    "a header of its own": ("token\r\nx-evil: 1", TYPED),
    "a NUL": ("to\0ken", TYPED),
    "half a character": ("token\ud800", TYPED),
    "an accent": ("tok\u00e9n", NONE),
    "only spaces": ("   ", NONE),
    "only the word": ("Bearer ", NONE),
}


def fixes(*sources: Source) -> frozenset[str]:
    """The fixes of a combination: the first source on which the sides differ, unless both stop before it."""
    shown = frozenset[str]().union(*(source.also for source in sources))
    taken = next((source for source in sources if source.sdk is not None), None)
    if taken is not None and taken.sdk == CRASH:
        # The client sent nothing that could show more.
        return frozenset({taken.fix})
    for source in sources:
        if source.sdk != source.ours:
            return shown | {source.fix}
        if source.sdk:
            break
    return shown


def case(turned: Source, carried: Source, named: Source) -> Case:
    return Case(
        f"{turned.name}, {carried.name}, {named.name}",
        Listing(token=carried.value, turn=turned.value),
        fixes(turned, carried, named),
        {**PRODUCTION, **named.value},
        sends={"x-ms-agentid": next((source.ours for source in (turned, carried, named) if source.ours), None)},
    )


ID_CASES = (
    *(case(turned, carried, APPLICATIONS[0]) for turned, carried in product(TURNS, TOKENS)),
    *(case(TURNS[0], carried, named) for carried, named in product(TOKENS, APPLICATIONS[1:])),
    *(case(turned, TOKENS[0], named) for turned, named in product(TURNS[1:], APPLICATIONS[1:])),
    *(
        Case(f"a token with {name}", Listing(token=text), frozenset({"unsendable-tokens"}) | more)
        for name, (text, more) in UNSENDABLE.items()
    ),
    Case(
        "a token that ends with a line break",
        Listing(token=f"{token({'appid': 'a'})}\n"),
        frozenset({"bare-tokens"}),
    ),
)


# The rest of a request: the owner of the servers, the turn and channel, the framework


CHANNELS = frozenset({"channel-headers"})


class Raising:
    """A turn whose activity raises when it is read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def activity(self) -> object:
        raise self._error


APPS = (
    *same(
        {
            "plain": "11111111-2222-3333-4444-555555555555",
            "a UUID": UUID(int=7),
            "unreserved": "a-b_c.d~e",
            "spaces": "a b",
            "letters of others": "\u00e9\u6f22",
            "one space": " ",
            "empty": "",
            "none": None,
        }
    ),
    *showing(
        "encoded-names",
        {
            "a way up and a query": "../x?y=1",
            "a slash": "a/b",
            "a query": "a?b",
            "a fragment": "#a",
            "an escape": "a%2Fb",
            "a plus": "a+b",
            "reserved": "a:b@c;d=e,f",
            "a line break": "\n",
            "half a character": "\ud800",
            "many dots": "....",
            "too long": "a" * 257,
        },
    ),
    # Nothing answers at these addresses, so the SDK fails too.
    *showing(("encoded-names", "typed-errors"), {"one dot": ".", "two dots": ".."}),
)

IDS = (
    *same({"an id": "activity", "an empty id": "", "none": None, "punctuation": "1:a|b;c=d", "inner spaces": "a  b"}),
    *showing(
        "plain-headers",
        {
            "a line break": "a\r\nx-evil: 1",
            "an accent": "\u00e9",
            "curly quotes": "\u201ca\u201d",
            "too long": "a" * 300,
        },
    ),
    *showing("unusable-ids", {"a number": 5, "spaces": "  ", "an object": object()}),
)

CHANNEL_IDS = (
    *same({"none": None, "empty": "", "a number": 5}),
    *showing(
        "channel-headers",
        {
            "a channel": "msteams",
            "one within": "msteams:copilot",
            "a line break": "ms\r\nteams",
            "an accent": "t\u00e9ams",
        },
    ),
)

ORCHESTRATORS = (
    *same({"none": None, "empty": "", "OpenAI": "OpenAI", "a space": "Agent Framework", "a slash": "a/1.0"}),
    *showing(
        "plain-headers",
        {
            "a line break": "a\r\nx-evil: 1",
            "an accent": "\u00e9",
            "curly quotes": "\u201ca\u201d",
            "a comment of its own": "a (b) c",
            "a backslash": "a\\b",
            "spaces": "  ",
            "too long": "a" * 300,
        },
    ),
)

REQUEST_REAL = activity(channelId="msteams:copilot", **{"from": {"id": "user"}})
RAISING = Raising(RuntimeError("not here"))


def chat(**more: object) -> Chat:
    return Chat(turn(id="message", text="hi", conversation=SimpleNamespace(id="chat"), **more))


def _orchestrated(option: Option) -> tuple[Case, Case]:
    said = chat()
    return (
        Case(f"framework: {option.name}", Listing(orchestrator=option.value), option.fixes),
        Case(f"chat by framework: {option.name}", Chat(said.turn, (), option.value), option.fixes),
    )


REQUEST_CASES = (
    *(Case(f"app: {it.name}", Listing(app_id=it.value), it.fixes) for it in APPS),
    *(Case(f"app while developing: {it.name}", Listing(it.value, None), NONE, DEVELOPMENT) for it in APPS),
    Case("no token", Listing(token=None)),
    Case("an empty token", Listing(token="")),
    Case("neither app nor token", Listing(None, None)),
    *(Case(f"activity: {it.name}", Listing(turn=turn(id=it.value)), it.fixes) for it in IDS),
    *(Case(f"channel: {it.name}", Listing(turn=turn(channel_id=it.value)), it.fixes) for it in CHANNEL_IDS),
    *(Case(f"chat on channel: {it.name}", chat(channel_id=it.value), it.fixes) for it in CHANNEL_IDS),
    Case("a channel and one within", Listing(turn=turn(channel_id="a", channel_id_sub_channel="b")), CHANNELS),
    Case("a chat on a channel within", chat(channel_id="a", channel_id_sub_channel="b"), CHANNELS),
    Case("only a channel within", Listing(turn=turn(channel_id_sub_channel="b")), CHANNELS),
    Case("the host's own channel", Listing(turn=SimpleNamespace(activity=REQUEST_REAL)), CHANNELS),
    Case("the host's own turn", Listing(turn=TurnContext(SimpleNamespace(), REQUEST_REAL)), CHANNELS),
    Case("a chat on the host's own turn", Chat(TurnContext(SimpleNamespace(), REQUEST_REAL)), CHANNELS),
    *(it for option in ORCHESTRATORS for it in _orchestrated(option)),
    Case("a turn that lacks its activity", Listing(turn=Raising(AttributeError("none")))),
    Case("a turn of the wrong type", Listing(turn=Raising(TypeError("none")))),
    Case("a turn that raises", Listing(turn=RAISING), frozenset({"broken-turns"})),
    Case("a chat on a turn that raises", Chat(RAISING), frozenset({"broken-turns"})),
    Case("a chat on a turn without activity", Chat(SimpleNamespace()), frozenset({"broken-turns"})),
    Case("a chat without conversation", Chat(turn(id="message", text="hi")), frozenset({"broken-turns"})),
    Case("a chat without id", Chat(turn(text="hi", conversation=None)), frozenset({"broken-turns"})),
    Case("a real turn raises nothing while developing", Listing(turn=RAISING), NONE, DEVELOPMENT),
)


# The surroundings of a call: variables, their order and spelling, the platform's address, the project's file


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


# In production both would call the real platform, so only their addresses of servers are compared.
NOWHERE = (*same({"unset": {}}), *showing("endpoint", {"empty": {"MCP_PLATFORM_ENDPOINT": ""}}))
SLASHES = ("{platform}/", "{platform}//", "{platform}/base/", " {platform} ", "{platform} ")
VARIABLE_UNUSABLE = (
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
# With these the SDK sends its request to a wrong address. For the others a chat only reports that it was not sent.
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
            for said in (*SLASHES, *VARIABLE_UNUSABLE, BRACKET)
        ),
        *(
            Case(f"{name} at endpoint {said!r}", call, ENDPOINT, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": said})
            for said, (name, call) in product(SLASHES[:2], {"a listing": Listing(), "a chat": CHAT}.items())
        ),
        Case("an endpoint with spaces", Listing(), ENDPOINT, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": SLASHES[3]}),
        *(
            Case(f"endpoint {said!r}", Listing(), ENDPOINT | TYPED, {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": said})
            for said in (*VARIABLE_UNUSABLE, BRACKET)
        ),
        *(
            Case(
                f"chat at endpoint {said!r}",
                CHAT,
                TYPED | (ENDPOINT if said in ASKED else NONE),
                {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": said},
            )
            for said in VARIABLE_UNUSABLE
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
    """Each file with and without a variable that overrides it, and the name that a token overrides."""
    cases = [Case(f"project: {it.name}", files=_project(it), fixes=it.fixes) for it in PROJECTS]
    beaten = {**PRODUCTION, "AGENT365_APPLICATION_NAME": "variable"}
    cases += [Case(f"project: {it.name}, and a variable", files=_project(it), environment=beaten) for it in PROJECTS]
    return (*cases, Case("no project file"))


def _project(option: Option) -> dict[str, bytes]:
    return {"pyproject.toml": option.value}


VARIABLE_CASES = (*modes(), *endpoints(), *projects())
