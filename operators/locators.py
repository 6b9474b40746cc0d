"""Paths and URIs as they may be printed, and what in a URI is a secret.

A locator is written into tables, logs and error texts, all of which people share. Credentials belong into the
environment (or the configuration of the cloud's own tools), where fsspec finds them by itself.
"""

from __future__ import annotations

import re
from itertools import pairwise
from urllib.parse import parse_qsl

_URI = re.compile(r"\s*((?:[A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]*://)(.*)", re.DOTALL)
_PORT = re.compile(r"(?:[^:\[\]]*|\[[^\]]*\])(?::[0-9]*)?")
_SECRET_NAMES = re.compile(
    r"signature|token|secret|passw|credential|api_?key|access_?key|authori[sz]ation"
    r"|(?:^|_)(?:sig|key|auth|pwd|jwt|sas)(?:$|_)"
)


def is_uri(path: str) -> bool:
    """Whether `path` starts with a scheme, as in s3://bucket/key."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) is not None


def shown(uri: str) -> str:
    """`uri` as it may be printed: without user name, password, keys, query and fragment; a path as it is.

    Secrets are cut off wherever they end: the secret half of `s3://KEY:SEC/RET@bucket/x` holds a slash. Never
    raises, whatever the text.
    """
    parts = _URI.fullmatch(uri)
    if not parts:
        return uri
    start, rest = parts.groups()
    return start + re.split(r"[?#]", _without_user(rest), maxsplit=1)[0]


def has_credentials(uri: str) -> bool:
    """Whether `uri` has a user name, a password or key before its host, or a signature, token or key in its
    query or fragment. Raises ValueError for a query with too many fields to look at."""
    parts = _URI.fullmatch(uri)
    if not parts:
        return False
    rest = _without_user(parts[2])
    fields = re.split(r"[?#]", rest, maxsplit=1)[1:]
    names = [name for field in fields for name, _ in parse_qsl(re.sub("[?#;]", "&", field), True)]
    return rest != parts[2] or any(_SECRET_NAMES.search(_snake(name)) for name in names)


def holds_credentials(text: str) -> bool:
    """Whether any address in `text` (quoted, in a list, in a whole sentence) has credentials."""
    starts = [found.start() for found in re.finditer(r"[A-Za-z][A-Za-z0-9+.-]*://", text)]
    # An address ends at the latest where white space or the next one begins.
    found = [text[start:end].split()[0] for start, end in pairwise([*starts, len(text)])]
    # What follows it in a list or a quotation ("http://h:8000,") is no part of its port: a secret has one of these signs.
    return any(has_credentials(address) for address in found if re.search("[@?#]", address))


def _without_user(rest: str) -> str:
    """What follows `scheme://`, from the host on."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        return rest[authority.rindex("@") + 1 :]
    if not _PORT.fullmatch(authority):
        # No port is spelled like this: a key, whose secret has a slash or the like before its "@".
        return rest.partition("@")[2]
    return rest


def _snake(name: str) -> str:
    """A parameter's name for comparing: "X-Amz-Signature" and "AWSAccessKeyId" in one spelling."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]", "_", name).lower()
