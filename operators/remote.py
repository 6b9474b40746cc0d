"""Files behind a URI: one way to open them, what may go wrong, and what a user can do about it.

fsspec opens s3:// through s3fs and botocore. Credentials, region and endpoint come from the environment alone (AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL for any S3-compatible server) or from the cloud's own
tools; no text of ours repeats a server's message, which may hold them. botocore tries again what can pass (5xx, SlowDown, cut
connections), 5 times or AWS_MAX_ATTEMPTS, waiting longer each time; s3fs adds tries for what botocore does not see, such as
a body that is cut off.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

S3 = ("s3", "s3a")
TRIES = 5

_SIGN = (
    "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the profile) and what they may do with this bucket"
)
_RENEW = "the credentials have expired: get new ones (AWS_SESSION_TOKEN, or sign in again)"
_WAIT = "the endpoint is overloaded or down: wait, use fewer actors, or raise AWS_MAX_ATTEMPTS"
_REACH = "check the network and AWS_ENDPOINT_URL"
# What S3 calls a refusal, or botocore an exception: what to do.
ADVICE = {
    "AccessDenied": _SIGN, "403": _SIGN, "InvalidAccessKeyId": _SIGN, "SignatureDoesNotMatch": _SIGN,
    "ExpiredToken": _RENEW, "TokenRefreshRequired": _RENEW, "InvalidToken": _RENEW,
    "RequestTimeTooSkewed": "the clock of this machine differs from the server's: set it (NTP)",
    "NoSuchBucket": "there is no such bucket: create it, or correct its name",
    "SlowDown": _WAIT, "ServiceUnavailable": _WAIT, "503": _WAIT, "InternalError": _WAIT, "500": _WAIT,
    "NoCredentialsError": "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "PartialCredentialsError": "half of the credentials is missing: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "EndpointConnectionError": _REACH, "ConnectionClosedError": _REACH, "ConnectTimeoutError": _REACH,
    "ReadTimeoutError": _REACH, "HTTPClientError": _REACH, "SSLError": _REACH, "ResponseParserError": _REACH,
}  # fmt: skip


def open_filesystem(uri: str) -> tuple[AbstractFileSystem, str]:
    """The filesystem of `uri` and the path there. Raises ValueError for an unknown scheme, ImportError where the package
    for it is missing."""
    import fsspec

    if uri.strip().partition("://")[0] not in S3:
        return fsspec.core.url_to_fs(uri)
    retries = {
        "mode": os.environ.get("AWS_RETRY_MODE", "standard"),
        "total_max_attempts": int(os.environ.get("AWS_MAX_ATTEMPTS", TRIES)),
    }
    # A remembered listing would hide what other processes wrote since.
    return fsspec.core.url_to_fs(uri, config_kwargs={"retries": retries}, use_listings_cache=False)


def failures() -> tuple[type[Exception], ...]:
    """What reaching a file may raise: aiohttp, behind http, and botocore, behind s3, have errors of their own."""
    aiohttp, botocore = sys.modules.get("aiohttp"), sys.modules.get("botocore.exceptions")
    return (
        OSError,
        *([aiohttp.ClientError] if aiohttp else []),
        *([botocore.BotoCoreError, botocore.ClientError] if botocore else []),
    )


def code_of(error: BaseException) -> str | None:
    """What the server called its refusal ("SlowDown"); the kind of failure where no answer came; None for others."""
    for one in (error, error.__cause__):
        response = getattr(one, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code") or "an answer without a code")
    return None if isinstance(error, OSError) else type(error).__name__


def explain(error: BaseException) -> str:
    """Why a file cannot be reached and what to do, without anything that a server or an address could have let slip."""
    code = code_of(error)
    if code is None:
        return getattr(error, "strerror", None) or type(error).__name__
    return f"{code}: {ADVICE[code]}" if code in ADVICE else code
