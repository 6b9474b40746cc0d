"""The project's own clips as a corpus, labelled by what `operators.benchmarks.render_sample` put into them."""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.construction.corpora import Corpus

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class SampleCorpus(Corpus):
    """The 31 clips of the `sample` benchmark; `labels.csv` beside the built-in MUGEN items says what they hold."""

    labels: str = str(DATA / "mugen_sample" / "labels.csv")
    folder: str | None = str(DATA / "sample")
    columns: dict[str, str] = Field(default_factory=lambda: {"voices": "voices"})
