import time
from collections.abc import Callable
from datetime import datetime, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from conftest import Crm, Open, Recording, unique
from scheduling_client import Client, ProblemError, types
from servers import respond, server


def lose_first(response: httpx.Response, attempt: int) -> httpx.Response:
    if attempt == 1:
        raise httpx.ReadError("the connection is lost")
    return response


def timeslots(resource: str) -> types.NewTimeslots:
    timeslot: types.NewTimeslot = {
        "resourceReference": resource,
        "start": "2031-03-03T09:00",
        "end": "2031-03-03T10:00",
        "raster": 60,
        "defaultCapacity": 1,
        "defaultAcceptBookings": True,
        "state": "BOOKABLE",
    }
    return {"timeslots": [timeslot]}


def test_a_post_whose_response_is_lost_has_its_effect_once(
    open_client: Open, scheduling: Client, provider: str
) -> None:
    recording = Recording(lose_first)
    resource = unique("room")
    open_client(recording).create_timeslots(provider, timeslots(resource))
    period: types.ListTimeslotsQuery = {"from": "2031-03-03T00:00", "to": "2031-03-04T00:00"}
    assert len(scheduling.list_timeslots(provider, resource, period)) == 1
    keys = [request.headers["Idempotency-Key"] for request in recording.requests]
    assert len(keys) == 2
    assert len(keys[0]) == 36
    assert keys[1] == keys[0]


def test_a_key_of_the_caller_is_sent(open_client: Open, provider: str) -> None:
    recording = Recording()
    key = unique("key")
    open_client(recording).create_timeslots(provider, timeslots(unique("room")), idempotency_key=key)
    assert [request.headers.get_list("Idempotency-Key") for request in recording.requests] == [[key]]


def test_only_a_post_has_a_key(open_client: Open) -> None:
    recording = Recording()
    open_client(recording).list_webhooks()
    assert "Idempotency-Key" not in recording.requests[0].headers


def test_a_deletion_whose_response_is_lost_has_succeeded(open_client: Open, provider: str) -> None:
    reference = unique("customer")
    customer = {"customerReference": reference, "providerReference": provider, "userName": "Grace"}
    open_client().create_customer(provider, customer)
    recording = Recording(lose_first)
    assert open_client(recording).delete_customer(provider, reference) is None
    assert recording.statuses == [204, 404]


def test_a_deletion_that_finds_nothing_at_once_has_not(open_client: Open, provider: str) -> None:
    with pytest.raises(ProblemError, match=r"customer\.not_found"):
        open_client().delete_customer(provider, unique("customer"))


def test_a_cancellation_whose_response_is_lost_has_not_if_nothing_is_found(open_client: Open, provider: str) -> None:
    recording = Recording(lose_first)
    with pytest.raises(ProblemError, match=r"appointment\.not_found"):
        open_client(recording).cancel_appointment(provider, {"appointmentReference": "none"})
    assert recording.statuses == [404, 404]


def test_what_is_rejected_or_has_to_wait_for_too_long_is_not_repeated(open_client: Open, limited_crm: Crm) -> None:
    recording = Recording()
    client = open_client(recording, **limited_crm.settings())
    with pytest.raises(ProblemError, match=r"webhook\.not_found|rate\.limited"):
        client.get_webhook("none")
    with pytest.raises(ProblemError, match=r"rate\.limited"):
        client.list_webhooks()
    assert recording.statuses[1:] == [429]


def test_nothing_is_repeated_without_time_for_it(open_client: Open) -> None:
    recording = Recording(lose_first)
    with pytest.raises(httpx.ReadError, match="the connection is lost"):
        open_client(recording, retry_for_seconds=0).list_webhooks()
    assert len(recording.requests) == 1


Answers = list[Callable[[BaseHTTPRequestHandler], None]]


def in_flight(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, 409, b'{"code":"idempotency_key.in_flight"}', {"Content-Type": "application/problem+json"})


def cut_off(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    respond(handler, 200, b'[{"ref', {"Content-Length": "1000"})


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def unavailable(status: int = 503, retry_after: str | None = None) -> Callable[[BaseHTTPRequestHandler], None]:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda handler: respond(handler, status, b"", headers)


def succeed(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, 200, b"[]")


class Service:
    """Gives these answers one after the other, and the last one again and again."""

    def __init__(self, *answers: Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.answers = answers
        self.arrivals: list[float] = []

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.arrivals.append(time.time())
        self.answers[min(len(self.arrivals), len(self.answers)) - 1](handler)


@pytest.mark.parametrize(
    "answer",
    [in_flight, cut_off, hang_up, unavailable(429), unavailable(502), unavailable(503), unavailable(504)],
    ids=["in flight", "cut off", "no response", "429", "502", "503", "504"],
)
def test_an_attempt_that_failed_is_repeated(
    open_client: Open, answer: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    service = Service(answer, succeed)
    with server(service) as url:
        assert open_client(url=url).list_webhooks() == []
    assert len(service.arrivals) == 2


@pytest.mark.parametrize("status", [400, 404, 409, 410, 500, 501])
def test_a_problem_of_the_request_is_not_repeated(open_client: Open, status: int) -> None:
    service = Service(unavailable(status))
    with server(service) as url, pytest.raises(ProblemError, match=f"^{status} "):
        open_client(url=url).list_webhooks()
    assert len(service.arrivals) == 1


@pytest.mark.parametrize("value", ["Tue, 01 Dec 2020 12:00:00 GMT", "soon", "-1", "NaN", "", "0"])
def test_other_values_of_retry_after_do_not_shorten_the_wait(open_client: Open, value: str) -> None:
    service = Service(unavailable(503, value))
    with server(service) as url, pytest.raises(ProblemError, match="^503 "):
        open_client(url=url, retry_for_seconds=0.4).list_webhooks()
    # The first wait is at least 0.15 s, and the second one 0.3.
    assert len(service.arrivals) < 3


def test_the_wait_ends_at_the_date_of_retry_after(open_client: Open) -> None:
    until = int(time.time()) + 2
    date = format_datetime(datetime.fromtimestamp(until, timezone.utc), usegmt=True)
    service = Service(unavailable(503, date), succeed)
    with server(service) as url:
        assert open_client(url=url).list_webhooks() == []
    assert len(service.arrivals) == 2
    # A timer may be a millisecond early.
    assert service.arrivals[1] >= until - 0.001


def test_it_gives_up_at_once_if_the_date_is_too_late(open_client: Open) -> None:
    date = format_datetime(datetime.fromtimestamp(time.time() + 3_600, timezone.utc), usegmt=True)
    service = Service(unavailable(503, date))
    with server(service) as url, pytest.raises(ProblemError, match="^503 "):
        open_client(url=url).list_webhooks()
    assert len(service.arrivals) == 1


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Each byte comes in time, and the last one never."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.05)
    except OSError:
        pass


def test_an_attempt_ends_while_its_response_arrives_slowly(open_client: Open) -> None:
    with server(drip) as url, pytest.raises(httpx.ReadTimeout, match=r"^no complete response within 0\.5 s$"):
        open_client(url=url, attempt_seconds=0.5, retry_for_seconds=0).list_webhooks()


def test_an_attempt_without_any_response_ends(open_client: Open) -> None:
    def stay_silent(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.rfile.read(1)

    with server(stay_silent) as url, pytest.raises(httpx.ReadTimeout):
        open_client(url=url, attempt_seconds=0.3, retry_for_seconds=0).list_webhooks()


def test_a_service_that_cannot_be_reached_is_an_error_of_httpx(open_client: Open) -> None:
    with server(succeed) as url:
        pass
    with pytest.raises(httpx.ConnectError):
        open_client(url=url, retry_for_seconds=0.3).list_webhooks()
