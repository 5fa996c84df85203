from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from conftest import Open
from scheduling_client import ProblemError
from servers import respond, server

USER = {"reference": "u@x", "email": "u@x.example", "username": "u", "lastName": "L"}


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str | None]]]:
    """Another host than that of the service, and the keys that it was sent."""
    revealed: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        revealed.append(handler.headers["X-SERVICE-CLIENT-ID"])
        respond(handler, 200)

    with server(answer) as url:
        yield url, revealed


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("list_webhooks", ()),
        ("create_user", (USER,)),
        ("update_user", ("u@x", {"lastName": "L"})),
        ("delete_user", ("u@x",)),
    ],
)
def test_a_redirect_is_an_error_at_once(
    open_client: Open,
    stranger: tuple[str, list[str | None]],
    status: int,
    method: str,
    arguments: tuple[object, ...],
) -> None:
    other, revealed = stranger
    attempts = 0

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        nonlocal attempts
        attempts += 1
        respond(handler, status, headers={"Location": f"{other}/crms/one/webhooks"})

    with server(redirect) as url:
        client = open_client(url=url, crm_id="one", key="secret")
        with pytest.raises(ProblemError) as raised:
            getattr(client, method)(*arguments)
    assert (raised.value.status, raised.value.code) == (status, None)
    assert str(raised.value).endswith(": redirects are not followed")
    assert (revealed, attempts) == ([], 1)


def test_a_redirect_on_the_same_host_is_not_followed_either(open_client: Open) -> None:
    def redirect(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, 307, headers={"Location": "/elsewhere"})

    with server(redirect) as url, pytest.raises(ProblemError, match="^307 "):
        open_client(url=url).list_webhooks()
