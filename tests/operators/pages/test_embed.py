import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.pages import embed
from operators.pages.embed import compressed, json_text, page, policy
from tests.browser import opened

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u2029<!--<script>&amp;\ud800\x00"


def probe(folder, script, body="<main id=here></main>"):
    """A page folder of the test's own under embed.PAGES' stand-in."""
    (folder / "probe").mkdir(parents=True, exist_ok=True)
    (folder / "probe" / "page.html").write_text(body)
    (folder / "probe" / "page.js").write_text(script)
    return "probe"


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_json_comes_back_and_can_neither_end_nor_open_an_element(value):
    text = json_text(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set(text) & set("<>&")


def test_nan_is_refused_since_json_has_none():
    with pytest.raises(ValueError, match="JSON"):
        json_text({"x": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        compressed([float("inf")])


def test_compression_is_deterministic():
    assert compressed(["a" * 1000]) == compressed(["a" * 1000])
    assert len(compressed(["a" * 1000])) < 100


def test_the_policy_names_hashes_and_no_wildcard():
    # printf 'let a' | openssl dgst -sha256 -binary | base64
    rules = policy(["b {}"], ["let a"])
    assert "script-src 'sha256-IfEXP/8HLuXoAiy0hZVrCAcjcLsZqYFpLOHDGj8enqE=';" in rules
    assert "unsafe" not in rules
    assert "http" not in rules
    assert "default-src 'none'" in rules
    assert "file:" not in rules
    assert "file:" in policy([], [], linked_media=True)
    assert "script-src 'none'" in policy([], [])


def test_titles_are_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "PAGES", tmp_path)
    name = probe(tmp_path, "0")
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in page(name, "</title><script>", {})
    with pytest.raises(ValueError, match="lower case"):
        page(name, "t", {'"><script>': 1})
    probe(tmp_path, "'</SCRIPT>'")
    with pytest.raises(ValueError, match="</script"):
        page(name, "t", {})


@pytest.mark.weights
def test_hostile_text_arrives_whole_and_nothing_of_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "PAGES", tmp_path)
    script = """
    (async () => {
      const [small, large] = [await embedded("small"), await embedded("large")];
      document.getElementById("here").append(node("p", {}, small), node("p", {}, large[0]));
      try { document.body.innerHTML = "<b>markup</b>"; window.markup = "taken"; } catch { window.markup = "refused"; }
      window.same = small === large[0];
      window.length_ = small.length;
      try { await fetch("https://example.org/"); window.asked = true; } catch { window.asked = false; }
      document.body.dataset.done = "yes";
    })();
    """
    name = probe(
        tmp_path, script, "<main id=here></main><p><a id=link href='javascript:window.ran=1'>x</a></p>"
    )
    file = tmp_path / "page.html"
    file.write_text(page(name, "t", {"small": HOSTILE}, {"large": [HOSTILE]}), encoding="utf-8")
    with opened(expected_errors=("Content Security Policy", "TrustedHTML")) as tab:
        tab.goto(file.as_uri())
        tab.wait_for_selector("body[data-done]", state="attached")
        assert tab.evaluate("[window.markup, window.same, window.asked]") == ["refused", True, False]
        assert tab.evaluate("window.length_") == len(HOSTILE)
        tab.click("#link")
        assert tab.evaluate("window.ran") is None
        assert tab.locator("img").count() == 0
