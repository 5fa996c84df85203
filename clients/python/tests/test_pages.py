import math

from conftest import Open, Recording, unique, wait_until
from scheduling_client import Client, types


def create_appointments(scheduling: Client, provider: str, count: int) -> list[str]:
    references = [unique("appointment") for _ in range(count)]
    for hour, reference in enumerate(references, 9):
        appointment: types.NewAppointment = {
            "reference": reference,
            "resourceReference": "room",
            "productReference": "flow",
            "start": f"2031-03-03T{hour:02}:00",
            "end": f"2031-03-03T{hour:02}:30",
        }
        scheduling.create_appointment(provider, appointment)
    return references


def test_pages_are_fetched_as_they_are_needed(open_client: Open, scheduling: Client, provider: str) -> None:
    references = create_appointments(scheduling, provider, 5)
    recording = Recording()
    listed = []
    for appointment in open_client(recording).iter_appointments(provider, {"limit": 2}):
        listed.append(appointment["reference"])
        assert len(recording.requests) == math.ceil(len(listed) / 2)
    assert listed == references


def test_a_page_has_a_hundred_elements_by_default(open_client: Open, provider: str) -> None:
    recording = Recording()
    assert list(open_client(recording).iter_appointments(provider)) == []
    assert recording.requests[0].url.params["limit"] == "100"


def test_the_feed_ends_where_it_has_caught_up_and_goes_on_after_an_event(
    open_client: Open, scheduling: Client, provider: str
) -> None:
    created = create_appointments(scheduling, provider, 4)
    client = open_client()
    query: types.ListEventsQuery = {"limit": 2, "providerRef": provider}
    wait_until(lambda: len(scheduling.list_events({"providerRef": provider})) == len(created))
    events = list(client.iter_events(query))
    assert [event["data"]["reference"] for event in events] == created
    ids = [event["id"] for event in events]
    assert [event["id"] for event in client.iter_events({**query, "after": ids[1]})] == ids[2:]
    assert list(client.iter_events({**query, "after": ids[-1]})) == []
