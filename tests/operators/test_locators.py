"""What of a path or URI may be printed, and which ones carry a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import audio, tables
from operators.locators import has_credentials, holds_credentials, is_uri, shown

PLAIN = [
    "/a/b?c.wav",
    "a@b:c.wav",
    "https://host:8080/a@b.wav",
    "https://[::1]:80/a.wav",
    "s3://bucket/me@home/x.wav",
    "file:///a/b.wav",
]
SECRET = [
    ("https://me:SECRET@host.org/a.wav", "https://host.org/a.wav"),
    ("https://SECRET@host.org/a.wav", "https://host.org/a.wav"),
    ("https://me:SE#CRET@host/a.wav", "https://host/a.wav"),
    ("s3://KEY:SECRET@bucket/x", "s3://bucket/x"),
    ("s3://KEY:SEC/RET@bucket/x@y", "s3://bucket/x@y"),
    (" s3://KEY:SECRET@bucket/x", "s3://bucket/x"),
    ("simplecache::s3://KEY:SECRET@bucket/x", "simplecache::s3://bucket/x"),
    ("https://host/a.wav?X-Amz-Signature=SECRET&v=1", "https://host/a.wav"),
    ("https://host/a.wav?X%2DAmz-Security-Token=SECRET", "https://host/a.wav"),
    ("https://host/a.wav?AWSAccessKeyId=SECRET", "https://host/a.wav"),
    ("https://host/a.wav?sv=2024&sig=SECRET", "https://host/a.wav"),
    ("https://host/a.wav?v=1;token=SECRET", "https://host/a.wav"),
    ("https://host/a.wav?api_key=SECRET", "https://host/a.wav"),
    ("https://host/a.wav#access_token=SECRET", "https://host/a.wav"),
]


@pytest.mark.parametrize("uri", PLAIN)
def test_what_holds_no_secret_stays(uri):
    assert shown(uri) == uri
    assert not has_credentials(uri)


@pytest.mark.parametrize(("uri", "printed"), SECRET)
def test_secrets_are_seen_and_not_shown(uri, printed):
    assert shown(uri) == printed
    assert has_credentials(uri)


@pytest.mark.parametrize("query", ["id=3", "versionId=7", "monkey=1", "design=2", "download", ""])
def test_an_ordinary_query_is_no_credential_and_still_not_shown(query):
    assert not has_credentials(f"https://host/a.wav?{query}")
    assert shown(f"https://host/a.wav?{query}") == "https://host/a.wav"


@given(st.text(max_size=40))
def test_any_text_can_be_shown(text):
    assert shown(text) == text or "://" in text
    assert "#" not in shown(f"s3://{text}") and "?" not in shown(f"s3://{text}")


def test_tables_and_audio_print_alike():
    assert tables.shown is audio.shown is shown
    assert tables.is_uri is is_uri


@pytest.mark.parametrize(
    "text",
    [
        "store.root=s3://KEY:SECRET@bucket/x",
        "++store={root:'s3://KEY:SEC/RET@bucket'}",
        "store.root=s3://plain/x,s3://KEY:SECRET@bucket/x",
        "benchmark.path=https://host/q.jsonl?X-Amz-Signature=abc",
        "model.endpoint.url='http://me:pass@host/v1'",
    ],
)
def test_an_address_with_a_secret_is_found_wherever_it_stands(text):
    assert holds_credentials(text)


@pytest.mark.parametrize(
    "text",
    [
        "store.root=s3://bucket/prefix,s3://other",
        "model.prompt='see https://host/page or write to me@host'",
        "model.endpoint.url=http://127.0.0.1:8000/v1",
        'model.endpoint.base_url="http://127.0.0.1:8000"',
        "model.endpoint.base_url=http://one:8000,http://two:8000",
        "model.endpoint.base_url=http://localhost:${oc.env:PORT}/v1",
        "out=runs/a@b",
        "hydra.sweep.dir=x",
    ],
)
def test_other_words_hold_none(text):
    assert not holds_credentials(text)
