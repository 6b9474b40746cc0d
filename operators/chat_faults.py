"""What went wrong with one chat request, and whose fault it is: the row's, the moment's, or the server's as a whole."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from operators.text import encodable

MARK = "***"  # stands where a key stood
LONGEST = 200  # characters of a server's own words in a reason
# What servers call a request that they will not answer because of what is in it.
_FILTERED = re.compile(r"content_?(?:filter|policy)|safety|moderation|blocked", re.IGNORECASE)
# How servers that do not answer 401 say that the key is wrong, at the beginning of their message; Gemini's says 400.
_WRONG_KEY = re.compile(
    r"\s*(?:incorrect |invalid )?api[ _]key (?:not valid|invalid|expired|provided)", re.IGNORECASE
)
_WRONG_KEY_CODES = ("API_KEY_INVALID", "invalid_api_key")
# Finish reasons of an answer that is none: what there is of it is no response. The last is DeepSeek's.
BROKEN_OFF = ("error", "abort", "insufficient_system_resource")
# Those of an answer that was held back or broken off for what is in it. Gemini hands its own words on, at times behind a colon.
_HELD_BACK = re.compile(
    r"content_?filter\b.*|(?:image_)?(?:safety|recitation|prohibited_content)|blocklist|spii", re.IGNORECASE
)
_NO_MONEY = re.compile(r"insufficient_quota|billing|credit|balance", re.IGNORECASE)
_KEYS = re.compile(r"\b(?:sk|pk|AIza|key|Bearer)[-_ ]?[A-Za-z0-9_*.-]{8,}", re.IGNORECASE)

# Stricter, for what a user wrote: "key takeaways" and "KEY_OF_2024" are words, and refusing them would stop a run.
_WHOLE_KEY = re.compile(
    r"(?:sk|pk|rk|gsk|xai)-[\w*.-]{8,}|AIza[\w-]{8,}"
    r"|(?:sk|pk|rk|gsk|hf|key)[-_](?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[A-Za-z0-9][\w-]{15,}"
)
_BEARER = re.compile(r"\bBearer [\w.~+/-]{8,}", re.IGNORECASE)
# Asking for permission is about keys, unless the server says that it looked at what was asked.
_MODERATED = re.compile(r"moderation|content_?(?:filter|policy)", re.IGNORECASE)
LEAST_KEY = 8  # characters of a key that give it away
_USUAL_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,59}|[a-z_]{1,60}")
_SECRET_NAME = re.compile(
    r"api_?key|access_?key|(?:access|auth|bearer|api)_?token|authori[sz]ation|secret|passw", re.I
)


def looks_like_a_key(text: str) -> bool:
    """Whether a word of `text` is spelled as the keys of chat servers are."""
    words = re.split(r"[\s\"',;:=(){}\[\]]+", text)
    return bool(_BEARER.search(text)) or any(_WHOLE_KEY.fullmatch(word) for word in words)


def may_be_a_key(name: str) -> bool:
    """Whether what should be the name of an environment variable may be a key itself: no such variable is set, and it is not
    spelled as variables are (LIKE_THIS, or small letters)."""
    unusual = not _USUAL_VARIABLE.fullmatch(name) and len(name) >= LEAST_KEY
    return looks_like_a_key(name) or (unusual and name not in os.environ)


def where_a_key_is(fields: Any, path: str = "") -> str | None:
    """The name (dotted, where nested) of a field that holds a key, by its own name or by how its text is spelled."""
    if isinstance(fields, str):
        name = path.rpartition(".")[2].replace("-", "_")
        return path if fields and (_SECRET_NAME.search(name) or looks_like_a_key(fields)) else None
    inner = (
        fields.items()
        if isinstance(fields, Mapping)
        else enumerate(fields if isinstance(fields, list) else [])
    )
    found = (where_a_key_is(value, f"{path}.{name}" if path else str(name)) for name, value in inner)
    return next((place for place in found if place), None)


@dataclass(frozen=True)
class Fault:
    """`kind`: "wait" (the server asks for patience), "retry" (this attempt failed), "row" (this request will never
    work), "stop" (no request will). `stops`: the server as a whole is unusable once the attempts are used up.
    `perhaps_charged`: the server may have worked, and charges for it, though no usage says what."""

    kind: Literal["wait", "retry", "row", "stop"]
    reason: str
    retry_after: float | None = None
    stops: bool = False
    perhaps_charged: bool = False


def what_happened(error: Exception, timeout_seconds: float, key: str) -> Fault:
    """The fault behind what the client raised. Texts hold no key, and at most LONGEST characters of the server's."""
    import openai

    if isinstance(error, (TimeoutError, openai.APITimeoutError)):
        if _caused_by(error, "ConnectTimeout"):
            return Fault("retry", "unreachable: no connection in time", stops=True)
        return Fault("retry", f"deadline: no whole answer within {timeout_seconds:g} s", perhaps_charged=True)
    if isinstance(error, openai.APIStatusError):
        return _by_status(error, key)
    if isinstance(error, openai.APIConnectionError):
        if _caused_by(error, "ConnectError"):
            return Fault("retry", f"unreachable: {_unconnected(error)}", stops=True)
        if _caused_by(error, "ProxyError"):
            proxy = "the proxy that the environment names (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY)"
            return Fault("retry", f"unreachable: {proxy} does not let it through", stops=True)
        lost = "connection_lost: the connection broke before the answer was complete"
        return Fault("retry", lost, perhaps_charged=True)
    if isinstance(error, ExceptionGroup):
        # The connection's own tasks: an address that no socket takes.
        return Fault("retry", "unreachable: no connection can be made to it", stops=True)
    unread = f"bad_reply: the server's answer cannot be read ({type(error).__name__})"
    return Fault("retry", unread, perhaps_charged=True)


def _unconnected(error: Exception) -> str:
    unsafe = next((one for one in _causes(error) if isinstance(one, ssl.SSLError)), None)
    if unsafe is None:
        return "nobody answers there"
    return "no secure connection (https) to it" + (f" ({unsafe.reason})" if unsafe.reason else "")


def _by_status(error: Any, key: str) -> Fault:
    status, code, said = error.status_code, _code(error.body, key), redacted(_message(error.body), key)
    about = f"HTTP {status}" + (f", {code}" if code else "") + (f": {said}" if said else "")
    if status == 429:
        if _NO_MONEY.search(code):
            return Fault("stop", f"quota_exhausted: {about}", stops=True)
        return Fault("wait", f"rate_limited: {about}", retry_after(error.response.headers))
    if 300 <= status < 400 and (place := error.response.headers.get("location")):
        # Not followed: the request, and the questions in it, would go to an address that nobody chose.
        there = f"refused: HTTP {status}: the server sends on to {redacted(_host(place), key)}, which is not followed"
        return Fault("stop", f"{there}; set base_url to the address that answers", stops=True)
    if status == 403 and _MODERATED.search(f"{code} {said}"):
        return Fault("row", f"content_filter: {about}")
    if status in (401, 403) or (status == 400 and _wrong_key(error.body)):
        # Servers quote keys, whole or in part, when they refuse them.
        return Fault("stop", f"key_refused: {type(error).__name__}, HTTP {status}", stops=True)
    if status in (402, 404, 405):
        return Fault("stop", f"refused: {about}", stops=True)
    if status in (408, 409, 425) or status >= 500:
        return Fault("retry", f"server_error: {about}", retry_after(error.response.headers))
    if _FILTERED.search(f"{code} {said}"):
        return Fault("row", f"content_filter: {about}")
    return Fault("row", f"bad_request: {about}")


def held_back(finish: str | None) -> bool:
    """Whether an answer that ended so was kept from us, in part or as a whole, for what is in it."""
    return bool(_HELD_BACK.fullmatch(finish or ""))


def said_instead(body: object, key: str) -> str:
    """The error that an answer with status 200 holds in place of a completion, as words; "" where it holds none."""
    if not isinstance(body, Mapping) or not isinstance(body.get("error"), Mapping):
        return ""
    return ": ".join(part for part in (_code(body, key), redacted(_message(body), key)) if part)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a server asks to wait (`retry-after-ms`, or `Retry-After` as seconds or as a date); None: it does not."""
    exact, given = headers.get("retry-after-ms"), (headers.get("retry-after") or "").strip()
    if exact and re.fullmatch(r"\d{1,9}(?:\.\d+)?", exact):
        return float(exact) / 1000
    if re.fullmatch(r"\d+(?:\.\d+)?", given):
        return float(given)  # however long: nobody waits for more than patience allows
    try:
        moment = parsedate_to_datetime(given)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):
        return None


def redacted(text: str, key: str) -> str:
    """`text` on one line, at most LONGEST characters, without the key or anything that looks like one, fit for UTF-8."""
    bare = " ".join(_KEYS.sub(MARK, without_key(encodable(text), key)).split())
    return bare if len(bare) <= LONGEST else f"{bare[: LONGEST - 3]}..."


def without_key(text: str, key: str) -> str:
    """`text` with MARK for the key, and for every part of it that gives it away.

    That is LEAST_KEY characters in a row or more, unless they spell a word: a part in letters of one case. A key shorter
    than that ("EMPTY", "none") is a placeholder of servers that want none, and a word in answers.
    """
    if len(key) < LEAST_KEY:
        return text
    text = text.replace(key, MARK)
    pieces = {key[start : start + LEAST_KEY] for start in range(len(key) - LEAST_KEY + 1)}
    starts = [found.start() for found in re.finditer(f"(?={'|'.join(map(re.escape, sorted(pieces)))})", text)]
    kept, done = [], 0
    for start, stop in _runs(starts):
        quoted = text[start:stop]
        word = quoted.isalpha() and (quoted.islower() or quoted.isupper() or quoted.istitle())
        kept += [text[done:start], quoted if word else MARK]
        done = stop
    return "".join([*kept, text[done:]])


def _runs(starts: list[int]) -> list[tuple[int, int]]:
    """(start, stop) of what pieces of LEAST_KEY characters cover that begin at `starts`, in order."""
    runs: list[tuple[int, int]] = []
    for start in starts:
        joined = bool(runs) and start <= runs[-1][1]
        runs[-1 if joined else len(runs) :] = [(runs[-1][0] if joined else start, start + LEAST_KEY)]
    return runs


def _wrong_key(body: object) -> bool:
    """Whether a refused request was refused for its key: told by a code, or by how the message begins."""
    inner = _inner(body)
    details = inner["details"] if isinstance(inner.get("details"), list) else []
    codes = [inner.get("code"), *(one.get("reason") for one in details if isinstance(one, dict))]
    return bool(_WRONG_KEY.match(_message(body))) or any(code in _WRONG_KEY_CODES for code in codes)


def _host(address: str) -> str:
    """Where a redirect leads, without user, path and query, any of which may be a secret."""
    try:
        parts = urlsplit(address)
        return parts.hostname or "another path of its own"
    except ValueError:
        return "an address that cannot be read"


def _code(body: object, key: str) -> str:
    inner = _inner(body)
    codes = [str(inner[name]) for name in ("code", "type") if inner.get(name)]
    return redacted(codes[0], key) if codes and re.fullmatch(r"[\w. -]{1,60}", codes[0]) else ""


def _message(body: object) -> str:
    return str(_inner(body).get("message") or "")


def _inner(body: object) -> dict[str, Any]:
    """The error object: some servers wrap it in `error`, some in a list of one."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        return body["error"] if isinstance(body.get("error"), dict) else body
    return {}


def _caused_by(error: BaseException, name: str) -> bool:
    return any(type(one).__name__ == name for one in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen = 0
    while error is not None and seen < 10:
        yield error
        error, seen = error.__cause__ or error.__context__, seen + 1
