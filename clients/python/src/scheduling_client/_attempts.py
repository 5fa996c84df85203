"""Which requests are repeated, and when: the same rules with and without asyncio."""

import random
import re
import time
from email.utils import parsedate_to_datetime

import httpx

_FIRST_WAIT = 0.2
_LONGEST_WAIT = 5.0
# Too many requests; not available, as the service says it, or a proxy before it.
_REPEATED_STATUSES = frozenset({429, 502, 503, 504})
_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT", re.ASCII)
_DAY = 24 * 60 * 60.0

Outcome = httpx.Response | httpx.RequestError


class Attempts:
    """The attempts of one request."""

    def __init__(self, retry_for_seconds: float) -> None:
        self._ends_at = time.monotonic() + retry_for_seconds
        self._failed = 0
        self.unanswered = False
        """Whether one has failed without telling whether it had an effect."""

    def wait_after(self, outcome: Outcome) -> float | None:
        """How long to wait before the next one, in seconds; None if this was the last one."""
        response = outcome if isinstance(outcome, httpx.Response) else None
        if response is not None and not _may_be_repeated(response):
            return None
        asked = parse_retry_after(response.headers.get("Retry-After"), time.time()) if response is not None else 0.0
        wait = max(_backoff(self._failed), asked)
        if time.monotonic() + wait > self._ends_at:
            return None
        self._failed += 1
        if response is None or response.status_code != 429:
            self.unanswered = True
        return wait


def parse_retry_after(value: str | None, now: float) -> float:
    """The wait that a Retry-After header asks for, in seconds, a day at most (RFC 9110 10.2.3).

    It is 0 if the header is absent, or has neither seconds nor a date. `now` is in seconds since 1970.
    """
    if value is None:
        return 0.0
    if _SECONDS.fullmatch(value):
        return min(float(value), _DAY)
    if not _HTTP_DATE.fullmatch(value):
        return 0.0
    try:
        asked = parsedate_to_datetime(value).timestamp() - now
    except ValueError:
        return 0.0
    return min(max(asked, 0.0), _DAY)


def _may_be_repeated(response: httpx.Response) -> bool:
    if response.status_code == 409:
        return b'"idempotency_key.in_flight"' in response.content
    return response.status_code in _REPEATED_STATUSES


def _backoff(failed: int) -> float:
    """With a random part, so that clients which failed together do not come back together."""
    wait: float = min(_FIRST_WAIT * 2.0 ** min(failed, 10), _LONGEST_WAIT)
    return wait * random.uniform(0.75, 1.25)
