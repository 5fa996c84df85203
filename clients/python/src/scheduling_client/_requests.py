"""What is the same with and without asyncio: the request of a call, and the result of its response."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import httpx

from ._call import Call
from ._problem_error import ProblemError, has_content_type
from ._settings import Settings

Result = TypeVar("Result")

_DEFAULT_LIMIT = 100


def build_request(http: httpx.Client | httpx.AsyncClient, settings: Settings, call: Call[Any]) -> httpx.Request:
    """A POST without an `Idempotency-Key` gets one, which all attempts have."""
    headers = httpx.Headers({name: value for name, value in call.headers.items() if value is not None})
    headers["X-SERVICE-CLIENT-ID"] = settings.key
    if call.method == "POST":
        headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
    return http.build_request(
        call.method,
        settings.base_url + call.target(),
        headers=headers,
        json=call.body,
        timeout=settings.attempt_seconds,
    )


def result_of(call: Call[Result], response: httpx.Response) -> Result:
    return cast("Result", response.json() if response.content else None)


def check_response(call: Call[Any], response: httpx.Response, unanswered: bool) -> httpx.Response:
    """Raises a ProblemError unless the request has succeeded. A page of another server is no success."""
    if response.is_success and (not response.content or has_content_type(response, "application/json")):
        return response
    if call.succeeds_if_gone and unanswered and response.status_code == 404:
        # An attempt whose response was lost has deleted it.
        return httpx.Response(204, request=response.request)
    raise ProblemError(response)


def first_page(call: Call[list[Result]]) -> Call[list[Result]]:
    return replace(call, query={"limit": _DEFAULT_LIMIT, **cast("Mapping[str, object]", call.query or {})})


def next_page(call: Call[list[Result]], response: httpx.Response) -> Call[list[Result]] | None:
    """The end of the feed is its own next page."""
    link = response.links.get("next", {}).get("url")
    query = None if link is None else httpx.URL(link).query.decode("ascii")
    return None if query is None or query == call.query else replace(call, query=query)
