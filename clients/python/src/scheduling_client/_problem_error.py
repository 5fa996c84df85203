"""What the service rejects."""

import json
from contextlib import suppress
from typing import cast

import httpx

from .types import InvalidField, Problem, ProblemCode


class ProblemError(Exception):
    """The service has rejected a request, or another server has answered it."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response)
        problem = _problem_of(response)
        self.response = response
        self.status = response.status_code
        self.code = cast("ProblemCode | None", problem.get("code"))
        """None if the response is not one of the service, for example that of a proxy."""
        self.reason = problem.get("reason")
        """A more specific cause, for the codes that have one."""
        self.detail = problem.get("detail")
        self.errors: list[InvalidField] = problem.get("errors") or []
        """Every invalid field; empty if it is not about fields."""
        self.request_id: str | None = response.headers.get("X-Request-Id")
        """Name it when you ask the operator of the service; it is in the logs."""

    def __str__(self) -> str:
        """`409 slot.unavailable (full): All seats of the appointment are taken.`"""
        if self.code is None:
            hint = ""
            if self.response.is_redirect:
                hint = ": redirects are not followed"
            elif self.response.is_success:
                hint = ": the response is not JSON"
            return f"{self.status} {self.response.reason_phrase}".strip() + hint
        fields = [f"{_place_of(field)} {field['detail']}".strip() for field in self.errors]
        reason = "" if self.reason is None else f" ({self.reason})"
        return f"{self.status} {self.code}{reason}: {'; '.join([self.detail or '', *fields])}"


def _problem_of(response: httpx.Response) -> Problem:
    """Empty if the response is not one of the service."""
    problem: object = None
    if has_content_type(response, "application/problem+json"):
        # What a proxy calls JSON need not be any.
        with suppress(ValueError):
            problem = json.loads(response.content)
    return cast("Problem", problem if isinstance(problem, dict) else {})


def has_content_type(response: httpx.Response, content_type: str) -> bool:
    given: str = response.headers.get("Content-Type", "")
    return given.partition(";")[0].strip().lower() == content_type


def _place_of(field: InvalidField) -> str:
    return field.get("pointer") or field.get("parameter") or ""
