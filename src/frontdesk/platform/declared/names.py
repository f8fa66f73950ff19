"""What a server may be called: its name becomes part of an address, a variable and a file."""

import re
from urllib.parse import quote

from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import quoted
from frontdesk.platform.tokens import own_variable

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
IN_A_VARIABLE = re.compile(r"[A-Za-z0-9_]+")
LONGEST = 256


def is_usable(name: str, where: str, notes: Notes) -> bool:
    """Whether a server can go by this name at all."""
    if not name.strip():
        notes.error(where, "is blank; give the server a name")
    elif CONTROL.search(name):
        notes.error(where, "holds a control character or a new line, which no address can; write it without")
    elif not name.strip(" ."):
        notes.error(where, f"is {quoted(name)}, and only dots lead elsewhere in an address; give it a name")
    elif len(name) > LONGEST:
        notes.error(where, f"is longer than {LONGEST} characters; shorten it")
    else:
        return True
    return False


def check_name(name: str, where: str, notes: Notes) -> None:
    """Warn of a usable name that others have trouble with."""
    if quote(name, safe="") != name or ".." in name:
        notes.warn(
            where,
            f"{quoted(name)} must be encoded in an address; Microsoft's SDK does not, and asks elsewhere: "
            "keep to letters, digits, - and _",
        )
    if not IN_A_VARIABLE.fullmatch(name) or not name.isascii():
        notes.warn(
            where,
            f"no shell can set {own_variable(name)}, which holds its token in development; "
            "keep to letters, digits and _",
        )
