"""What certainly fails is said with what to do about it."""

import pyarrow as pa
import pytest

from operators.lalms.hearing import AudioLimits
from operators.lalms.transformers_chat import TransformersChat
from operators.weights import Weights
from pipelines.config import ConfigError
from pipelines.preflight import check_seconds

COLUMNS = {"item_id": pa.string(), "item_error": pa.string(), "audio_error": pa.string()}
SCHEMA = pa.schema({**COLUMNS, "audio_uris": pa.list_(pa.string()), "audio_seconds": pa.list_(pa.float64())})


def check(**limits):
    row = {"item_id": "q1", "audio_uris": ["a.wav", "b.wav"], "audio_seconds": [20.0, 15.0]}
    model = TransformersChat(weights=Weights("x"), limits=AudioLimits(**limits))
    check_seconds(model, pa.Table.from_pylist([row], schema=SCHEMA))


def test_clips_that_are_too_long_together_are_cut_one_by_one_or_not_at_all():
    for policy in ("stop", "truncate"):
        with pytest.raises(
            ConfigError, match=r"'q1': .*35.00 s together.*as many seconds of each in model\.limits"
        ):
            check(max_total_seconds=30, over_long=policy)
    with pytest.raises(ConfigError, match=r"a clip has 20.00 s.*which their rows then say$"):
        check(max_seconds=18)
    check(max_total_seconds=30, max_seconds=15, over_long="truncate")
    check(max_total_seconds=30, over_long="skip")
