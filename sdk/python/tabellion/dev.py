"""The log of `tabellion serve --dev`, for trials."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Union

from .client import Client
from .core import SigningKey, load_key

#: The issuer whose key is in the folder of a dev log.
DEV_ISSUER = "https://dev.issuer.example"


class DevLog(NamedTuple):
    """A dev log: its client, its trust file, and an issuer whom its policy admits, with the key."""

    client: Client
    trust: str
    issuer: str
    key: SigningKey


def dev_log(folder: Union[str, Path] = "tabellion-dev") -> DevLog:
    """Reads the folder that `tabellion serve --dev` writes."""
    url, trust, key = ((Path(folder) / name).read_text() for name in ("url", "trust.toml", "issuer.key"))
    return DevLog(Client(url.strip(), trust=trust), trust, DEV_ISSUER, load_key(key))
