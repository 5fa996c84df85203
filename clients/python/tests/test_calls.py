import pytest

from conftest import Crm, Open, unique
from scheduling_client import Client, ProblemError, types


@pytest.mark.parametrize("name", ["y@t", "a/b c@t", "100%25ü@t", "a?b#c{x}&d@t"])
def test_a_reference_names_what_it_created(open_client: Open, provider: str, name: str) -> None:
    client = open_client()
    reference = f"{unique('c')}{name}"
    customer: types.NewCustomer = {
        "customerReference": reference,
        "providerReference": provider,
        "userName": "Grace",
    }
    client.create_customer(provider, customer)
    assert client.get_customer(provider, reference)["customer"]["customerReference"] == reference


@pytest.mark.parametrize(
    ("reference", "error"), [(None, TypeError), (7, TypeError), ("", ValueError), ("..", ValueError)]
)
def test_a_reference_without_a_meaning_is_not_sent(
    open_client: Open, reference: object, error: type[Exception]
) -> None:
    with pytest.raises(error, match="^providerRef must be a "):
        open_client(url="http://127.0.0.1:9").list_slots(reference)


def test_a_path_without_a_slash_is_not_sent(open_client: Open) -> None:
    with pytest.raises(ValueError, match="^path must begin with /, not 'webhooks'$"):
        open_client(url="http://127.0.0.1:9").request("GET", "webhooks")


def test_none_clears_a_field_and_an_absent_one_keeps_its_value(open_client: Open, provider: str) -> None:
    client = open_client()
    reference = unique("customer")
    customer: types.NewCustomer = {
        "customerReference": reference,
        "providerReference": provider,
        "userName": "Grace",
        "email": f"{reference}.example",
        "mobile": "+49 170 1",
    }
    client.create_customer(provider, customer)
    change: types.CustomerChange = {"email": None}
    changed = client.update_customer(provider, reference, change)["customer"]
    assert (changed["email"], changed["mobile"], changed["userName"]) == (None, "+49 170 1", "Grace")


def test_a_response_without_a_body_is_none(open_client: Open, provider: str) -> None:
    client = open_client()
    reference = unique("customer")
    customer: types.NewCustomer = {
        "customerReference": reference,
        "providerReference": provider,
        "userName": "Grace",
    }
    client.create_customer(provider, customer)
    assert client.delete_customer(provider, reference) is None


def test_headers_and_queries_of_a_call_are_sent(open_client: Open, provider: str) -> None:
    with pytest.raises(ProblemError) as raised:
        open_client().create_user({"reference": unique("u"), "lastname": "B"}, prefer="handling=strict")
    assert "/lastname" in [field.get("pointer") for field in raised.value.errors]
    with pytest.raises(ProblemError) as raised:
        open_client().list_slots(provider, {"limit": 0})
    assert [field.get("parameter") for field in raised.value.errors] == ["limit"]


def test_request_returns_the_response(open_client: Open) -> None:
    client = open_client()
    response = client.request("get", "/webhooks", query={"limit": 1}, headers={"X-Request-Id": "one"})
    assert (response.status_code, response.json()) == (200, [])
    assert response.headers["X-Request-Id"]
    with pytest.raises(ProblemError, match=r"webhook\.not_found"):
        client.request("DELETE", "/webhooks/none")


def test_a_client_closes_its_own_connections(crm: Crm) -> None:
    with Client(**crm.settings()) as client:
        client.list_webhooks()
    with pytest.raises(RuntimeError, match="closed"):
        client.list_webhooks()
