"""One request, as the generated methods describe it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

Result = TypeVar("Result")


@dataclass(frozen=True)
class Call(Generic[Result]):
    method: str
    path: str
    """Of the API document, without `/crms/{crmId}`."""
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, object] | str | None = None
    """A text is sent as it is."""
    body: object = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    """Those that are None are left out."""
    succeeds_if_gone: bool = False
    """If it is repeated and finds nothing, it has succeeded."""

    def target(self) -> str:
        """The path and query to send. Raises a TypeError or ValueError if the path or one of its parameters has no meaning."""
        path = self.path
        if path and not path.startswith("/"):
            raise ValueError(f"path must begin with /, not {path!r}")
        for name, value in self.path_parameters.items():
            path = path.replace(f"{{{name}}}", _encode(name, value))
        query = self.query if isinstance(self.query, str) else urlencode(list(_pairs(self.query or {})))
        return f"{path}?{query}" if query else path


def _encode(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {value!r}")
    if value in ("", ".", ".."):
        raise ValueError(f"{name} must be a reference, not {value!r}")
    return quote(value, safe="")


def _pairs(query: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """A list is repeated, and a mapping is `name[key]=value`."""
    for name, value in query.items():
        if isinstance(value, Mapping):
            yield from _pairs({f"{name}[{key}]": each for key, each in value.items()})
        elif isinstance(value, list | tuple):
            yield from ((name, _text(each)) for each in value)
        elif value is not None:
            yield name, _text(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
