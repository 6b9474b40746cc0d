"""One self-contained HTML page from the files of a folder and data: opens from disk, asks the network for nothing.

What models and users wrote is untrusted. It enters a page only as JSON inside data blocks that browsers do not run,
and a content security policy allows the page's own scripts and styles by their hashes and nothing else: no inline
handler, no `javascript:` link, no request. Trusted Types make browsers that know them refuse markup from strings.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent
COMMON = PAGES / "common"
_ID = re.compile(r"[a-z][a-z0-9_-]*")
# What would end a data block or start markup in it, as JSON escapes; json.dumps writes all that is not ASCII so, too.
_ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
{styles}
</head>
<body>
{body}
{blocks}
{scripts}
</body>
</html>
"""


def page(
    name: str,
    title: str,
    data: Mapping[str, Any],
    large: Mapping[str, Any] | None = None,
    linked_media: bool = False,
) -> str:
    """The page of the folder `operators/pages/<name>` as one HTML text.

    The folder holds `page.html` (what stands in the body) and any number of `.css` and `.js` files, which follow those
    of `common/` in the order of their names, as classic scripts at the end of the body. `data` and `large` become data
    blocks by name, which a script reads with `embedded(name)` (a promise); those of `large` are compressed. Audio and
    images may be data or blob URIs; `linked_media` also allows files beside the page.

    Raises ValueError for a block's name that is not in lower case, or NaN or infinity in the data, TypeError for what JSON
    cannot say.
    """
    styles = [_element("style", text) for text in _texts(name, ".css")]
    scripts = [_element("script", text) for text in _texts(name, ".js")]
    blocks = [_block(key, "application/json", json_text(value)) for key, value in data.items()]
    blocks += [_block(key, "application/gzip", compressed(value)) for key, value in (large or {}).items()]
    return _FRAME.format(
        policy=html.escape(policy(_texts(name, ".css"), _texts(name, ".js"), linked_media)),
        title=html.escape(title.encode("utf-8", "replace").decode()),
        styles="\n".join(styles),
        body=(PAGES / name / "page.html").read_text(encoding="utf-8").strip(),
        blocks="\n".join(blocks),
        scripts="\n".join(scripts),
    )


def json_text(value: Any) -> str:
    """`value` as JSON in ASCII that may stand in a script element: no `<`, `>`, `&`, nor any line separator."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def compressed(value: Any) -> str:
    """`value` as JSON, gzip and base64; the same value gives the same text."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), compresslevel=6, mtime=0)).decode("ascii")


def policy(styles: Iterable[str], scripts: Iterable[str], linked_media: bool = False) -> str:
    """The content security policy of a page with these styles and scripts, and no other."""
    media = "data: blob:" + (" 'self' file:" if linked_media else "")
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            f"img-src {media}",
            f"media-src {media}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ]
    )


def _hashes(texts: Iterable[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _texts(name: str, ending: str) -> list[str]:
    folders = (COMMON, PAGES / name)
    files = [path for folder in folders for path in sorted(folder.glob(f"*{ending}"))]
    return [path.read_text(encoding="utf-8") for path in files]


def _element(tag: str, text: str) -> str:
    """A script or style of our own. A file that spelled the end of its element would be cut there."""
    if f"</{tag}" in text.lower():
        raise ValueError(f"a {tag} file of a page must not hold '</{tag}'")
    return f"<{tag}>{text}</{tag}>"


def _block(key: str, kind: str, text: str) -> str:
    if not _ID.fullmatch(key):
        raise ValueError(f"the name of a data block is in lower case, not {key!r}")
    return f'<script type="{kind}" id="data-{key}">{text}</script>'
