import base64

import numpy as np
import soundfile

from operators.reporting.clips import Clips


def tone(path, seconds=0.1):
    soundfile.write(path, np.zeros(int(8000 * seconds)), 8000)
    return str(path)


def item(*uris, heard=True):
    return {
        "audio_uris": list(uris),
        "audio_hashes": ["h" if heard else None] * len(uris),
        "audio_seconds": [0.1] * len(uris),
    }


def test_a_small_clip_stands_in_the_page_once(tmp_path):
    clips = Clips(tmp_path / "r.html", 10_000, 10_000)
    path = tone(tmp_path / "a.wav")
    assert clips.of_item(item(path)) == clips.of_item(item(path)) == [0]
    assert list(clips.blocks) == ["clip-0"]
    kind, _, body = clips.blocks["clip-0"].partition(";base64,")
    assert kind == "data:audio/wav"
    assert base64.b64decode(body) == (tmp_path / "a.wav").read_bytes()


def test_past_the_limits_a_clip_is_linked_relative_to_the_page(tmp_path):
    (tmp_path / "out").mkdir()
    path = tone(tmp_path / "a b#c:d.wav")
    for limits in ((10, 10_000), (10_000, 10)):
        clips = Clips(tmp_path / "out" / "r.html", *limits)
        clips.of_item(item(path))
        assert clips.entries[0]["href"] == "./../a%20b%23c%3Ad.wav"
        assert not clips.blocks


def test_the_total_limit_counts_over_clips(tmp_path):
    paths = [tone(tmp_path / f"{n}.wav") for n in range(3)]
    size = (tmp_path / "0.wav").stat().st_size
    clips = Clips(tmp_path / "r.html", 2 * size, 10_000)
    clips.of_item(item(*paths))
    assert clips.told() == "2 clips in the page, 1 linked as files, 0 missing"


def test_what_is_no_clip_never_enters_the_page(tmp_path):
    secret = tmp_path / "id_rsa"
    secret.write_text("a private key")
    clips = Clips(tmp_path / "r.html", 10_000, 10_000)
    clips.of_item(item(str(secret), heard=False))
    assert "did not decode" in clips.entries[0]["missing"]
    clips.of_item(item(str(secret)))  # a run's table that claims it was heard
    assert not clips.blocks


def test_missing_and_remote_clips_say_so_without_secrets(tmp_path):
    clips = Clips(tmp_path / "r.html", 10_000, 10_000)
    long = str(tmp_path / ("x" * 300))  # longer than a disk takes
    clips.of_item(item(str(tmp_path / "gone.wav"), "s3://KEY:SECRET@bucket/x.wav?Signature=abc", long))
    gone, remote, unnameable = clips.entries
    assert "there is no file" in gone["missing"] and "there is no file" in unnameable["missing"]
    assert "s3://bucket/x.wav" in remote["missing"]
    assert "SECRET" not in str(clips.entries)
    assert "abc" not in str(clips.entries)
