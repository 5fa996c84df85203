"""The client without asyncio."""

import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

import httpx
from typing_extensions import Self

from ._attempts import Attempts, Outcome
from ._call import Call
from ._operations import Operations
from ._requests import build_request, check_response, first_page, next_page, result_of
from ._settings import Settings, check_http

Result = TypeVar("Result")


class Client(Operations):
    """A client of one CRM, with a method for each operation of the API document. Threads can share it.

    Its requests are safe to repeat, because every POST has an `Idempotency-Key`. They are repeated if there is no
    response, if the response is cut off, and after 429, 502, 503, 504 and `idempotency_key.in_flight`.

    Methods raise a ProblemError if the service rejects the request, and an httpx.RequestError if no attempt got a
    response.
    """

    def __init__(
        self,
        *,
        url: str,
        crm_id: str,
        key: str,
        retry_for_seconds: float = 15.0,
        attempt_seconds: float = 10.0,
        http: httpx.Client | None = None,
    ) -> None:
        """Raises a SettingsError that names a setting which is missing or wrong.

        - `url`: the address of the service, for example `https://scheduling.example.com`
        - `key`: an API key of the CRM
        - `retry_for_seconds`: how long a request is repeated, from its first attempt; 0: never
        - `attempt_seconds`: how long one attempt waits for a connection, for the beginning of the response, and for
          the rest of it
        - `http`: sends the attempts, for example through a proxy; it stays open when this client is closed
        """
        self._settings = Settings(
            url=url,
            crm_id=crm_id,
            key=key,
            retry_for_seconds=retry_for_seconds,
            attempt_seconds=attempt_seconds,
        )
        check_http(http, httpx.Client)
        self._owns_http = http is None
        self._http = httpx.Client() if http is None else http

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._owns_http:
            self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Sends a request like the methods for operations do, and returns the response with its status and headers.

        The path follows `/crms/{crmId}`, and is encoded.
        """
        return self._send(Call[Any](method.upper(), path, query=query, body=body, headers=headers or {}))

    def _call(self, call: Call[Result]) -> Result:
        return result_of(call, self._send(call))

    def _iterate(self, call: Call[list[Result]]) -> Iterator[Result]:
        page: Call[list[Result]] | None = first_page(call)
        while page is not None:
            response = self._send(page)
            yield from result_of(page, response)
            page = next_page(page, response)

    def _send(self, call: Call[Any]) -> httpx.Response:
        request = build_request(self._http, self._settings, call)
        attempts = Attempts(self._settings.retry_for_seconds)
        while True:
            outcome = self._attempt(request)
            wait = attempts.wait_after(outcome)
            if wait is not None:
                time.sleep(wait)
            elif isinstance(outcome, httpx.Response):
                return check_response(call, outcome, attempts.unanswered)
            else:
                raise outcome

    def _attempt(self, request: httpx.Request) -> Outcome:
        """The response is read completely, so that one which is cut off is repeated."""
        try:
            # To follow a redirect would send the key and the body to whatever host it names.
            response = self._http.send(request, stream=True, follow_redirects=False)
            try:
                response.stream = _Timely(response, self._settings.attempt_seconds)
                response.read()
            finally:
                response.close()
        except httpx.RequestError as error:
            return error
        return response


class _Timely(httpx.SyncByteStream):
    """The body of a response, as long as it takes no longer than this. The time limits of httpx are for its parts."""

    def __init__(self, response: httpx.Response, seconds: float) -> None:
        self._response = response
        self._stream = response.stream
        self._seconds = seconds

    def __iter__(self) -> Iterator[bytes]:
        ends_at = time.monotonic() + self._seconds
        for part in cast("httpx.SyncByteStream", self._stream):
            if time.monotonic() > ends_at:
                message = f"no complete response within {self._seconds} s"
                raise httpx.ReadTimeout(message, request=self._response.request)
            yield part

    def close(self) -> None:
        cast("httpx.SyncByteStream", self._stream).close()
