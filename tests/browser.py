"""A real headless Chromium for the tests of the pages that the project writes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, sync_playwright


@contextmanager
def opened(
    width: int = 1280, height: int = 800, expected_errors: tuple[str, ...] = (), **context
) -> Iterator[Page]:
    """A page in Debian's Chromium, offline; the test fails on any error in its console or uncaught exception, unless it
    holds one of `expected_errors`.

    `context` goes to Playwright's `new_context`: `color_scheme="dark"`, `accept_downloads=True`, ...
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            tab = browser.new_context(viewport={"width": width, "height": height}, offline=True, **context)
            page = tab.new_page()
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
            yield page
            problems = [line for line in problems if not any(part in line for part in expected_errors)]
            assert problems == [], problems
        finally:
            browser.close()
