"""The settings of a client."""

import re
from dataclasses import dataclass
from typing import NoReturn

import httpx

# As the service creates them.
_CRM_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# A header can have nothing else.
_KEY = re.compile(r"[!-~]+", re.ASCII)
_HIGHEST_PORT = 65_535
# Sockets cannot wait for longer.
_LONGEST_ATTEMPT = 2_147_483


class SettingsError(ValueError):
    """A setting of a client is missing or wrong. The message says which one and what is expected, never the key."""

    def __init__(self, setting: str, expected: str, given: str) -> None:
        super().__init__(setting, expected, given)
        self.setting = setting

    def __str__(self) -> str:
        setting, expected, given = self.args
        return f"{setting} must be {expected}; it is {given}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    url: str
    crm_id: str
    key: str
    retry_for_seconds: float
    attempt_seconds: float

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            expected = "the address of the service, like https://scheduling.example.com, without user name, ? and #"
            _refuse("url", expected, re.sub("//.*@", "//…@", repr(self.url)))
        if not isinstance(self.crm_id, str) or not _CRM_ID.fullmatch(self.crm_id):
            _refuse(
                "crm_id", "the ID of the CRM: lower-case letters, digits and hyphens, 63 at most", repr(self.crm_id)
            )
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key):
            given = "None" if self.key is None else "another value"
            _refuse("key", "an API key of the CRM, without spaces", given)
        if not _is_number(self.retry_for_seconds) or not self.retry_for_seconds >= 0:
            _refuse("retry_for_seconds", "a number of seconds, 0 or more", repr(self.retry_for_seconds))
        if not _is_number(self.attempt_seconds) or not 0 < self.attempt_seconds <= _LONGEST_ATTEMPT:
            expected = f"a number of seconds, more than 0 and at most {_LONGEST_ATTEMPT}"
            _refuse("attempt_seconds", expected, repr(self.attempt_seconds))

    @property
    def base_url(self) -> str:
        return f"{self.url.rstrip('/')}/crms/{self.crm_id}"


def check_http(http: object, expected: type) -> None:
    if http is not None and not isinstance(http, expected):
        _refuse("http", f"an httpx.{expected.__name__}", repr(http))


def _is_address(value: object) -> bool:
    if not isinstance(value, str) or re.search(r"[?#\s@]", value):
        return False
    try:
        address = httpx.URL(value)
    except httpx.InvalidURL:
        return False
    return address.scheme in ("http", "https") and address.host != "" and (address.port or 1) <= _HIGHEST_PORT


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(setting: str, expected: str, given: str) -> NoReturn:
    raise SettingsError(setting, expected, given)
