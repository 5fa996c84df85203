"""The client for asyncio and trio."""

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

import anyio
import httpx
from typing_extensions import Self

from ._async_operations import AsyncOperations
from ._attempts import Attempts, Outcome
from ._call import Call
from ._requests import build_request, check_response, first_page, next_page, result_of
from ._settings import Settings, check_http

Result = TypeVar("Result")


class AsyncClient(AsyncOperations):
    """The Client for asyncio and trio: it has the same methods, settings and errors."""

    def __init__(
        self,
        *,
        url: str,
        crm_id: str,
        key: str,
        retry_for_seconds: float = 15.0,
        attempt_seconds: float = 10.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """As that of Client, except that `attempt_seconds` is for a whole attempt."""
        self._settings = Settings(
            url=url,
            crm_id=crm_id,
            key=key,
            retry_for_seconds=retry_for_seconds,
            attempt_seconds=attempt_seconds,
        )
        check_http(http, httpx.AsyncClient)
        self._owns_http = http is None
        self._http = httpx.AsyncClient() if http is None else http

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._owns_http:
            await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """As that of Client."""
        return await self._send(Call[Any](method.upper(), path, query=query, body=body, headers=headers or {}))

    async def _call(self, call: Call[Result]) -> Result:
        return result_of(call, await self._send(call))

    async def _iterate(self, call: Call[list[Result]]) -> AsyncIterator[Result]:
        page: Call[list[Result]] | None = first_page(call)
        while page is not None:
            response = await self._send(page)
            for element in result_of(page, response):
                yield element
            page = next_page(page, response)

    async def _send(self, call: Call[Any]) -> httpx.Response:
        request = build_request(self._http, self._settings, call)
        attempts = Attempts(self._settings.retry_for_seconds)
        while True:
            outcome = await self._attempt(request)
            wait = attempts.wait_after(outcome)
            if wait is not None:
                await anyio.sleep(wait)
            elif isinstance(outcome, httpx.Response):
                return check_response(call, outcome, attempts.unanswered)
            else:
                raise outcome

    async def _attempt(self, request: httpx.Request) -> Outcome:
        """The response is read completely, so that one which is cut off is repeated."""
        seconds = self._settings.attempt_seconds
        try:
            with anyio.fail_after(seconds):
                # To follow a redirect would send the key and the body to whatever host it names.
                return await self._http.send(request, follow_redirects=False)
        except TimeoutError:
            return httpx.ReadTimeout(f"no complete response within {seconds} s", request=request)
        except httpx.RequestError as error:
            return error
