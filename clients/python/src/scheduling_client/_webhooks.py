"""The requests of webhooks."""

import json
from collections.abc import Iterable
from typing import Protocol, cast

from standardwebhooks import Webhook, WebhookVerificationError

from .types import Event

__all__ = ["Headers", "WebhookVerificationError", "verify_webhook"]


class Headers(Protocol):
    """A dictionary, or the headers of any framework."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(secret: str, body: bytes | str, headers: Headers) -> Event:
    """Returns the event in the request of a webhook.

    Raises a WebhookVerificationError unless it is signed with the secret, within the last 5 minutes. `body` is as it
    arrived, not parsed. Names of headers can be in any case.
    """
    webhook = Webhook(secret)
    try:
        webhook.verify(body, {name.lower(): value for name, value in headers.items()}, json_parse=False)
    except ValueError as error:
        # A signature that is not Base64, or a body that is not UTF-8.
        raise WebhookVerificationError("Invalid signature") from error
    return cast("Event", json.loads(body))
