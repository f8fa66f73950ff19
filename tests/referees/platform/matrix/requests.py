"""The rest of a request: whose servers are asked for, on which turn and channel, by which framework."""

from types import SimpleNamespace
from uuid import UUID

from microsoft_agents.hosting.core import TurnContext

from tests.referees.platform.cases import DEVELOPMENT, NONE, Case, Chat, Listing
from tests.referees.platform.matrix.ids import activity
from tests.referees.platform.matrix.making import Option, same, showing, turn

CHANNELS = frozenset({"channel-headers"})


class Raising:
    """A turn whose activity cannot be looked at."""

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
    # Where these lead there is nothing, so that the SDK fails too.
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

REAL = activity(channelId="msteams:copilot", **{"from": {"id": "user"}})
RAISING = Raising(RuntimeError("not here"))


def chat(**more: object) -> Chat:
    return Chat(turn(id="message", text="hi", conversation=SimpleNamespace(id="chat"), **more))


def _orchestrated(option: Option) -> tuple[Case, Case]:
    said = chat()
    return (
        Case(f"framework: {option.name}", Listing(orchestrator=option.value), option.fixes),
        Case(f"chat by framework: {option.name}", Chat(said.turn, (), option.value), option.fixes),
    )


CASES = (
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
    Case("the host's own channel", Listing(turn=SimpleNamespace(activity=REAL)), CHANNELS),
    Case("the host's own turn", Listing(turn=TurnContext(SimpleNamespace(), REAL)), CHANNELS),
    Case("a chat on the host's own turn", Chat(TurnContext(SimpleNamespace(), REAL)), CHANNELS),
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
