"""Typed client of the scheduling service, for CRMs."""

from . import types
from ._async_client import AsyncClient
from ._client import Client
from ._problem_error import ProblemError
from ._settings import SettingsError
from ._webhooks import WebhookVerificationError, verify_webhook
from .types import Event, Problem, ProblemCode

__all__ = [
    "AsyncClient",
    "Client",
    "Event",
    "Problem",
    "ProblemCode",
    "ProblemError",
    "SettingsError",
    "WebhookVerificationError",
    "types",
    "verify_webhook",
]
