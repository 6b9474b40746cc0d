"""Where the clips of a user's table may lie.

A local path, or file:// URI, that leaves the audio folder once symbolic links are followed is refused
(`audio_outside_folder`) unless `allow_outside`. An s3:// or gs:// URI is a deliberate address that cannot
reach into this computer, and is taken as it is; https:// and http://, which can reach other services of the
local network, need `allow_outside` unless they lie below an audio folder that is such a URI itself. Every
other scheme is refused. Whether a clip exists shows when it is decoded.

Locators are kept in results, so they carry no secrets: a URI with a user name, a password, or a signature,
token or key in its query is refused (`audio_uri_with_credentials`); credentials are read from the environment
instead. An audio folder has no query at all, since names are appended to it.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from operators.columns import RowError, short
from operators.locators import has_credentials, is_uri, shown
from operators.tables import TableError
from operators.text import encodable

_OBJECT_STORES = ("s3", "gs")
_WEB = ("https", "http")
_REMEDY = "benchmark.allow_outside=true accepts it"
_ENVIRONMENT = "leave them out and set them in the environment"


def locate(path: str, root: str, allow_outside: bool = False) -> str:
    """The absolute path or URI of the clip that a row calls `path`; `root` is as `resolved` gives it.

    Raises RowError: audio_outside_folder, audio_scheme_not_allowed, audio_uri_with_credentials, bad_audio.
    """
    try:
        if _is_remote(path):
            return _checked_uri(path, allow_outside)
        if _is_remote(root):
            return _below_uri(path, root, allow_outside)
        return _local(path, root, allow_outside)
    except RowError:
        raise
    except ValueError as error:
        # A NUL in a path, or brackets where a URI's host should be.
        raise RowError(f"bad_audio: {short(shown(path))} is neither a path nor an address") from error


def _is_remote(path: str) -> bool:
    return is_uri(path) and urlsplit(path).scheme != "file"


def _without_file_scheme(path: str) -> str:
    return unquote(urlsplit(path).path) if is_uri(path) else path


def resolved(root: str) -> str:
    """An audio folder as `locate` wants it: a local one absolute and without links, a URI as it is.

    Raises TableError for a URI that has a query or fragment, or credentials.
    """
    try:
        remote = _is_remote(root)
        secret = remote and has_credentials(root)
    except ValueError:
        raise TableError(f"audio folder {shown(root)}: this is not an address") from None
    if secret:
        raise TableError(f"audio folder {shown(root)}: its address holds credentials; {_ENVIRONMENT}")
    if remote and re.search("[?#]", root):
        raise TableError(f"audio folder {shown(root)}: its address has a query or fragment; leave it out")
    return root if remote else os.path.realpath(_without_file_scheme(root))


def folder_of(path: str) -> str:
    """The folder or URI that holds the file at `path`; credentials and query of its address are not taken."""
    if not _is_remote(path):
        return str(Path(_without_file_scheme(path)).absolute().parent)
    parts = urlsplit(shown(path))
    return f"{parts.scheme}://{parts.netloc}{posixpath.dirname(parts.path)}"


def _local(path: str, folder: str, allow_outside: bool) -> str:
    """`path` from `folder` (which has no symbolic links), absolute and with its own links followed."""
    found = os.path.realpath(os.path.join(folder, encodable(_without_file_scheme(path))))
    if not allow_outside and os.path.commonpath([found, folder]) != folder:
        raise _outside(path, folder)
    return found


def _below_uri(path: str, root: str, allow_outside: bool) -> str:
    """`path` where the audio folder is a URI: below it, neither plainly nor percent-encoded climbing out.

    An absolute path means this computer, which is outside of any such folder.
    """
    if allow_outside and (is_uri(path) or path.startswith("/")):
        return _local(path, "/", allow_outside)
    if is_uri(path):
        raise _outside(path, shown(root))
    for spelled in (path, unquote(path)):
        if posixpath.normpath(spelled).startswith(("..", "/")):
            raise _outside(path, shown(root))
    return _checked_uri(f"{root.rstrip('/')}/{posixpath.normpath(path)}", allow_outside=True)


def _checked_uri(uri: str, allow_outside: bool) -> str:
    parts = urlsplit(uri)
    if has_credentials(uri):
        raise RowError(f"audio_uri_with_credentials: {shown(uri)} holds credentials; {_ENVIRONMENT}")
    if "::" in uri:
        raise RowError(f"audio_scheme_not_allowed: {shown(uri)} chains addresses with '::'")
    if parts.scheme not in (*_OBJECT_STORES, *_WEB):
        raise RowError(f"audio_scheme_not_allowed: {parts.scheme}:// is none of file, s3, gs, https, http")
    if parts.scheme in _WEB and not allow_outside:
        raise RowError(f"audio_outside_folder: {shown(uri)} is on the web; {_REMEDY}")
    return encodable(uri)


def _outside(path: str, folder: str) -> RowError:
    return RowError(f"audio_outside_folder: {short(path)} lies outside {folder}; {_REMEDY}")
