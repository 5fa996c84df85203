import json
from datetime import datetime, timedelta, timezone
from email.message import Message
from typing import Any

import pytest
from standardwebhooks import Webhook

from scheduling_client import WebhookVerificationError, verify_webhook

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDXKz1u0f3Q9U="
EVENT: Any = {"id": "01a20aed-38f1-71e7-8939-be7cf9ed034e", "type": "customer.created"}
BODY = json.dumps(EVENT, separators=(",", ":"))


def sign(at: datetime | None = None) -> dict[str, str]:
    at = at or datetime.now(timezone.utc)
    return {
        "webhook-id": EVENT["id"],
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(SECRET).sign(EVENT["id"], at, BODY),
    }


def test_the_event_is_returned() -> None:
    headers = Message()
    for name, value in sign().items():
        headers[name.title()] = value
    assert verify_webhook(SECRET, BODY, sign()) == EVENT
    assert verify_webhook(SECRET, BODY.encode(), headers) == EVENT
    other = {**sign(), "webhook-signature": f"v1,b3RoZXI= {sign()['webhook-signature']}"}
    assert verify_webhook(SECRET, BODY, other) == EVENT


def test_signatures_are_those_of_the_typescript_client() -> None:
    # new Webhook(secret).sign(event.id, new Date(1_800_000_000_000), body)
    at = datetime.fromtimestamp(1_800_000_000, timezone.utc)
    assert sign(at)["webhook-signature"] == "v1,Y7T7mLlU1PAIw0Iy2s+MJUmsamIyVWTi84YalEZEMIY="


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(f"{BODY} ", sign(), id="another body"),
        pytest.param(b"\xff", sign(), id="a body that is no text"),
        pytest.param(BODY, sign(datetime.now(timezone.utc) - timedelta(minutes=10)), id="an old signature"),
        pytest.param(BODY, sign(datetime.now(timezone.utc) + timedelta(minutes=10)), id="a future signature"),
        pytest.param(BODY, {}, id="no signature"),
        pytest.param(BODY, {**sign(), "webhook-signature": "v1"}, id="a signature without a value"),
        pytest.param(BODY, {**sign(), "webhook-signature": "v1,!"}, id="a signature that is not Base64"),
        pytest.param(BODY, {**sign(), "webhook-signature": "v1,é"}, id="a signature that is not ASCII"),
        pytest.param(BODY, {**sign(), "webhook-timestamp": "NaN"}, id="a timestamp that is no number"),
    ],
)
def test_what_is_not_signed_is_rejected(body: str | bytes, headers: dict[str, str]) -> None:
    with pytest.raises(WebhookVerificationError):
        verify_webhook(SECRET, body, headers)
