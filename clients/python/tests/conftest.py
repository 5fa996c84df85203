"""The tests run against the stack and as the CRM that the environment names; .ci/run starts it."""

import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from scheduling_client import AsyncClient, Client


@dataclass(frozen=True)
class Crm:
    url: str
    crm_id: str
    key: str

    def settings(self) -> dict[str, Any]:
        return {"url": self.url, "crm_id": self.crm_id, "key": self.key}


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}@test"


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits for what the service does by itself, for 30 seconds at most."""
    ends_at = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends_at, "it has not happened within 30 seconds"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def crm() -> Crm:
    return Crm(os.environ["SCHEDULING_URL"], os.environ["CRM"], os.environ["KEY"])


@pytest.fixture(scope="session")
def limited_crm(crm: Crm) -> Crm:
    """It may send one request a minute."""
    return Crm(crm.url, os.environ["LIMITED_CRM"], os.environ["LIMITED_KEY"])


@pytest.fixture(scope="session")
def scheduling(crm: Crm) -> Iterator[Client]:
    with Client(**crm.settings()) as client:
        yield client


@pytest.fixture
def provider(scheduling: Client) -> str:
    return create_provider(scheduling)


def create_provider(scheduling: Client, provider: str | None = None) -> str:
    """A provider of its own, and its owner and account."""
    reference = provider or unique("provider")
    owner = unique("owner")
    email = f"{owner}.example"
    scheduling.create_user(
        {"reference": owner, "email": email, "username": owner.replace("@", "."), "lastName": "Blum"}
    )
    account = unique("account")
    scheduling.create_account({"accountReference": account, "ownerReference": owner, "branch": "misc"})
    scheduling.create_provider(
        {"reference": reference, "ownerReference": owner, "accountReference": account, "name": "Studio"}
    )
    return reference


class Synchronous:
    """Calls the methods of a Client or an AsyncClient in the same way, so that a test is about both."""

    def __init__(self, client: Client | AsyncClient, portal: BlockingPortal | None) -> None:
        self._client = client
        self._portal = portal

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)
        if self._portal is None:
            return method  # type: ignore[no-any-return]
        portal = self._portal

        def call(*arguments: Any, **named: Any) -> Any:
            if name.startswith("iter_"):
                return self._iterate(portal, method(*arguments, **named))

            async def wait() -> Any:
                return await method(*arguments, **named)

            return portal.call(wait)

        return call

    @staticmethod
    def _iterate(portal: BlockingPortal, elements: AsyncIterator[Any]) -> Iterator[Any]:
        async def take() -> list[Any]:
            return [element async for element in _first(elements)]

        while taken := portal.call(take):
            yield from taken


async def _first(elements: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for element in elements:
        yield element
        return


Show = Callable[[httpx.Response, int], httpx.Response]


class Recording(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends every attempt, and shows its response to the client as a function makes it, which knows its number."""

    def __init__(self, show: Show = lambda response, _attempt: response) -> None:
        self._show = show
        self._sync = httpx.HTTPTransport()
        self._async = httpx.AsyncHTTPTransport()
        self.requests: list[httpx.Request] = []
        self.statuses: list[int] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = self._sync.handle_request(request)
        response.read()
        return self._shown(response)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = await self._async.handle_async_request(request)
        await response.aread()
        return self._shown(response)

    def _shown(self, response: httpx.Response) -> httpx.Response:
        self.statuses.append(response.status_code)
        return self._show(response, len(self.requests))

    def close(self) -> None:
        self._sync.close()

    async def aclose(self) -> None:
        await self._async.aclose()


Open = Callable[..., Synchronous]


@pytest.fixture(params=["Client", "AsyncClient"])
def open_client(request: pytest.FixtureRequest, crm: Crm) -> Iterator[Open]:
    """Opens clients of the CRM, or with other settings, and closes them after the test."""
    is_async = request.param == "AsyncClient"
    portals: AbstractContextManager[BlockingPortal] = start_blocking_portal()
    with portals as portal:
        opened: list[Callable[[], object]] = []

        def open_with(transport: Recording | None = None, **settings: Any) -> Synchronous:
            if not is_async:
                http = httpx.Client(transport=transport)
                opened.append(http.close)
                return Synchronous(Client(**{**crm.settings(), **settings}, http=http), None)
            async_http = httpx.AsyncClient(transport=transport)
            opened.append(lambda: portal.call(async_http.aclose))
            return Synchronous(AsyncClient(**{**crm.settings(), **settings}, http=async_http), portal)

        yield open_with
        for close in opened:
            close()
