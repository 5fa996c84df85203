import pickle
from http.server import BaseHTTPRequestHandler

import pytest

from conftest import Open, Recording, unique
from scheduling_client import ProblemError, types
from servers import respond, server


def test_a_problem_says_what_is_wrong(open_client: Open, provider: str) -> None:
    with pytest.raises(ProblemError) as raised:
        open_client().get_appointment(provider, "none")
    error = raised.value
    assert (error.status, error.code, error.errors, error.reason) == (404, "appointment.not_found", [], None)
    assert str(error) == f"404 appointment.not_found: {error.detail}"
    assert error.detail
    assert error.request_id == error.response.headers["x-request-id"]


def test_a_problem_has_every_invalid_field(open_client: Open) -> None:
    user = {"reference": "nobody", "email": "x", "username": "x", "lastName": "x"}
    with pytest.raises(ProblemError, match=r"^400 request\.invalid: .*; /reference \S") as raised:
        open_client().create_user(user)
    assert "/reference" in [field.get("pointer") for field in raised.value.errors]


def test_a_problem_has_its_reason(open_client: Open, provider: str) -> None:
    client = open_client()
    appointment: types.NewAppointment = {
        "reference": unique("appointment"),
        "resourceReference": "room",
        "productReference": "flow",
        "start": "2031-03-03T09:00",
        "end": "2031-03-03T10:00",
    }
    client.create_appointment(provider, appointment)
    booking: types.AppointmentBooking = {
        "reference": unique("booking"),
        "appointmentReference": appointment["reference"],
        "customer": {"customerReference": unique("ada"), "userName": "Ada"},
        "state": "BOOKED",
    }
    with pytest.raises(ProblemError, match=r"^409 slot\.unavailable \(private\): ") as raised:
        client.create_booking(provider, booking)
    assert raised.value.reason == "private"


def test_what_a_proxy_answers_has_no_code(open_client: Open) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, 502, b"<h1>Bad Gateway</h1>", {"Content-Type": "text/html"})

    with server(answer) as url, pytest.raises(ProblemError) as raised:
        open_client(url=url, retry_for_seconds=0).list_webhooks()
    error = raised.value
    assert (error.status, error.code, str(error), error.request_id) == (502, None, "502 Bad Gateway", None)


def test_a_page_of_another_server_is_no_success(open_client: Open) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, 200, b"<h1>Welcome</h1>", {"Content-Type": "text/html"})

    with server(answer) as url, pytest.raises(ProblemError, match=r"^200 OK: the response is not JSON$") as raised:
        open_client(url=url).list_webhooks()
    assert (raised.value.code, raised.value.response.text) == (None, "<h1>Welcome</h1>")


@pytest.mark.parametrize("body", [b"", b'{"code":', b"null", b"[]", b"\xff\xfe\xfd", b'{"errors": null}'])
def test_a_problem_that_cannot_be_read_has_its_status(open_client: Open, body: bytes) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, 403, body, {"Content-Type": "application/problem+json"})

    with server(answer) as url, pytest.raises(ProblemError) as raised:
        open_client(url=url).list_webhooks()
    error = raised.value
    assert (error.status, error.code, error.errors, str(error)) == (403, None, [], "403 Forbidden")


def test_a_problem_can_be_sent_to_another_process(open_client: Open) -> None:
    with pytest.raises(ProblemError) as raised:
        open_client(transport=Recording()).get_webhook("none")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.code) == (str(raised.value), "webhook.not_found")
