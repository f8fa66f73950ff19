"""What an issuer says of itself is believed as far as it is safe to act on."""

import pytest

from frontdesk.identity.sign_in import IssuerEndpoints, read_endpoints

ISSUER = "https://login.example"
GOOD = {
    "issuer": f"{ISSUER}/",
    "authorization_endpoint": f"{ISSUER}/authorize#here",
    "token_endpoint": f"{ISSUER}/token",
}


def test_addresses_are_taken_from_the_issuers_own_description() -> None:
    assert read_endpoints(ISSUER, GOOD) == IssuerEndpoints(
        f"{ISSUER}/authorize", f"{ISSUER}/token", secret_in_form=False
    )


@pytest.mark.parametrize(
    ("methods", "in_form"),
    [
        (["client_secret_post"], True),
        (["client_secret_post", "client_secret_basic"], False),
        (["private_key_jwt"], False),
        ("client_secret_post", False),
    ],
)
def test_a_secret_goes_into_the_form_where_the_issuer_takes_it_nowhere_else(methods: object, in_form: bool) -> None:
    said = {**GOOD, "token_endpoint_auth_methods_supported": methods}
    assert read_endpoints(ISSUER, said).secret_in_form == in_form


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": "http://login.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "http://login.example/token"},
        {"token_endpoint": 7},
    ],
)
def test_what_is_not_the_issuers_or_not_safe_is_not_acted_on(changed: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"another issuer's|neither https|cannot be asked|no text"):
        read_endpoints(ISSUER, {**GOOD, **changed})
