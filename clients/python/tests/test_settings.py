import math
import pickle
from typing import Any

import httpx
import pytest

from scheduling_client import AsyncClient, Client, SettingsError

RIGHT: dict[str, Any] = {"url": "https://scheduling.example.com", "crm_id": "demo", "key": "sk_secret"}

WRONG: list[tuple[str, object, str | None]] = [
    ("url", None, None),
    ("url", "", None),
    ("url", "scheduling.example.com", None),
    ("url", "localhost:8080", None),
    ("url", "ftp://scheduling.example.com", None),
    ("url", "https://", None),
    ("url", "https://scheduling.example.com:port", None),
    ("url", "https://scheduling.example.com:65536", None),
    ("url", "https://scheduling.example.com/?crm=demo", None),
    ("url", "https://scheduling.example.com/#demo", None),
    ("url", " https://scheduling.example.com", None),
    ("url", "https://mara:secret@scheduling.example.com", "'https://…@scheduling.example.com'"),
    ("crm_id", None, None),
    ("crm_id", "", None),
    ("crm_id", "..", None),
    ("crm_id", "demo/webhooks", None),
    ("crm_id", "demo\n", None),
    ("crm_id", "Demo", None),
    ("crm_id", 17, None),
    ("key", None, None),
    ("key", "", "another value"),
    ("key", "sk_secret\n", "another value"),
    ("key", "sk_sécret", "another value"),
    ("key", b"sk_secret", "another value"),
    ("retry_for_seconds", "15", None),
    ("retry_for_seconds", -1, None),
    ("retry_for_seconds", math.nan, None),
    ("retry_for_seconds", True, None),
    ("attempt_seconds", 0, None),
    ("attempt_seconds", math.nan, None),
    ("attempt_seconds", math.inf, None),
    ("attempt_seconds", 1e9, None),
    ("http", "http", None),
]


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize(("setting", "value", "shown"), WRONG)
def test_a_wrong_setting_is_named(
    client: type[Client] | type[AsyncClient], setting: str, value: object, shown: str | None
) -> None:
    with pytest.raises(SettingsError) as raised:
        client(**{**RIGHT, setting: value})
    message = str(raised.value)
    assert message.startswith(f"{setting} must be ")
    assert message.endswith(f"; it is {shown or repr(value)}")
    assert "secret" not in message
    assert raised.value.setting == setting
    assert str(pickle.loads(pickle.dumps(raised.value))) == message


def test_http_is_of_the_kind_of_the_client() -> None:
    with pytest.raises(SettingsError, match=r"^http must be an httpx\.Client; it is <httpx\.AsyncClient"):
        Client(**RIGHT, http=httpx.AsyncClient())  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"^http must be an httpx\.AsyncClient; it is <httpx\.Client"):
        AsyncClient(**RIGHT, http=httpx.Client())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "http://127.0.0.1:8080/"},
        {"url": "https://[::1]:8443/behind/a/proxy"},
        {"retry_for_seconds": 0},
        {"retry_for_seconds": math.inf, "attempt_seconds": 0.5},
    ],
)
def test_right_settings_are_accepted(settings: dict[str, Any]) -> None:
    Client(**{**RIGHT, **settings}).close()


def test_no_text_of_a_client_has_the_key() -> None:
    with Client(**RIGHT) as client:
        assert "secret" not in repr(client) + repr(vars(client))
