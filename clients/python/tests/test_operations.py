import inspect
import re
from typing import Any

import httpx
import pytest

from conftest import Crm
from scheduling_client import AsyncClient, Client, types
from scheduling_client._call import Call


@pytest.fixture(scope="module")
def document(crm: Crm) -> dict[str, Any]:
    return dict(httpx.get(f"{crm.url}/openapi.json").json())


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_there_is_a_method_for_every_operation(
    document: dict[str, Any], client: type[Client] | type[AsyncClient]
) -> None:
    operations = {
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operation["operationId"]).lower(): operation
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert len(operations) >= 70
    methods = {name for name, _ in inspect.getmembers(client, inspect.isfunction) if not name.startswith("_")}
    pages = {
        name.replace("list_", "iter_", 1)
        for name, operation in operations.items()
        if name.startswith("list_") and any(each["name"] == "limit" for each in operation["parameters"])
    }
    assert len(pages) >= 9
    assert methods - {"request", "close", "aclose"} == {*operations, *pages}


def test_every_body_and_query_has_a_type(document: dict[str, Any]) -> None:
    named = set(document["components"]["schemas"])
    assert named - set(vars(types)) == set()
    hints = [inspect.signature(method).parameters for _, method in inspect.getmembers(Client, inspect.isfunction)]
    bodies = [parameters["body"].annotation for parameters in hints if "body" in parameters]
    queries = [parameters["query"].annotation for parameters in hints if "query" in parameters]
    assert len(bodies) > 25
    assert len(queries) > 20


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        (None, "/slots"),
        ({}, "/slots"),
        ({"from": None}, "/slots"),
        ({"from": "2030-03-04T10:00+01:00"}, "/slots?from=2030-03-04T10%3A00%2B01%3A00"),
        ({"ignoreNotice": True, "limit": 5}, "/slots?ignoreNotice=true&limit=5"),
        ({"state": ["BOOKED", "CANCELED"]}, "/slots?state=BOOKED&state=CANCELED"),
        ({"metadata": {"a b": "1&2", "c": True}}, "/slots?metadata%5Ba+b%5D=1%262&metadata%5Bc%5D=true"),
        ("after=a%2Fb", "/slots?after=a%2Fb"),
    ],
)
def test_queries_are_encoded(query: dict[str, object] | str | None, sent: str) -> None:
    assert Call[None]("GET", "/slots", query=query).target() == sent
