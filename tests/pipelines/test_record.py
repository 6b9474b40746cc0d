import json

import pytest

from pipelines.record import free_folder, presentable


def test_two_runs_of_one_second_get_two_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [free_folder("sample-cascade") for _ in range(4)]
    assert len(set(folders)) == 4 and all(folder.is_dir() for folder in folders)


@pytest.mark.parametrize("secret", ["s3://KEY:SECRET@bucket/x", "https://h/a.wav?X-Amz-Signature=SECRET"])
def test_no_credential_of_a_uri_is_written_down(secret):
    written = json.dumps(presentable({"store": {"root": secret}, "list": [secret, 3, None]}))
    assert "SECRET" not in written and "KEY" not in written
    assert presentable("runs/a folder?x=1") == "runs/a folder?x=1", "a path is no URI"
