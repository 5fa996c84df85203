from datetime import datetime, timezone

import pytest

from scheduling_client._attempts import parse_retry_after

NOW = datetime(2026, 12, 1, 12, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0),
        ("0", 0),
        ("120", 120),
        ("86401", 86_400),
        ("9" * 400, 86_400),
        ("9" * 5_000, 86_400),
        ("", 0),
        ("-1", 0),
        ("1.5", 0),
        ("0x10", 0),
        ("1e3", 0),
        ("\u0661", 0),
        ("Infinity", 0),
        ("1, 2", 0),
        ("soon", 0),
        ("Tue, 01 Dec 2026 12:00:30 GMT", 30),
        ("Tue, 01 Dec 2026 11:59:59 GMT", 0),
        ("Wed, 01 Dec 9999 12:00:00 GMT", 86_400),
        ("Tue, 41 Dec 2026 12:00:30 GMT", 0),
        ("Tue, 01 Xyz 2026 12:00:30 GMT", 0),
        ("2026-12-01T12:00:30Z", 0),
    ],
)
def test_the_wait_of_retry_after(value: str | None, seconds: int) -> None:
    assert parse_retry_after(value, NOW) == seconds
