"""Text for terminals and Markdown tables. What models, benchmarks and files are called is untrusted: never markup, never control."""

from __future__ import annotations

MIN_WIDTH = 100  # columns that a table may need where nobody looks at a terminal
MAX_NAME = 80
ABSENT = "-"


def printable(text: str | None, encoding: str = "utf-8", limit: int = MAX_NAME) -> str:
    r"""`text` on one line and within `encoding`; a control character is spelled out, as in `\x1b`."""
    if text is None:
        return ABSENT
    safe = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )
    safe = safe if len(safe) <= limit else safe[: limit - 3] + "..."
    return safe.encode(encoding, errors="backslashreplace").decode(encoding)


def markdown_cell(text: str | None, limit: int = MAX_NAME) -> str:
    """Untrusted text for a table cell, with all that Markdown or HTML would take for markup escaped."""
    safe = printable(text, limit=limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{char}" if char in "\\`*_{}[]()#|!~$" else char for char in safe)
