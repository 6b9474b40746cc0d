"""How far a reader of options agrees with people (MUGEN section 3.2: the paper's judge, 99% on 400 responses).

python -m pipelines.mugen_calibrate labels=my_labels.jsonl                                       the rules
python -m pipelines.mugen_calibrate labels=my_labels.jsonl reader=judge reader.chat.model=NAME   an LLM judge

A row per response: {"question": "...", "n_options": 5, "response": "I would say the third.", "selected": 3}, where
`selected` counts from 1 and is null, or 0, where a person finds no single option.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from omegaconf import DictConfig

from operators.columns import RowError, is_null, number_of, text_of
from operators.intervals import wilson_interval
from operators.judges.option_judge import JudgeError, calibrate
from operators.mugen.options import Asked, verdict_lost
from operators.tables import Row, TableError, read_rows, shown
from pipelines.config import ConfigError, build, entry, plain
from pipelines.mugen_settings import MugenCalibrate

SHOWN = 10


def main(config: DictConfig) -> None:
    """Read every labelled response and print agreement, Cohen's kappa and the first disagreements."""
    settings: MugenCalibrate = plain(config)
    if settings.labels is None:
        raise ConfigError("name the file with human labels: labels=my_labels.jsonl")
    reader = build(settings.reader, "reader")
    asked, human = read_labels(settings.labels)
    try:
        found = reader.read(asked)
    except JudgeError as error:
        raise ConfigError(f"reader: {error}") from error
    report(
        [extraction.index for extraction in found], [extraction.reason for extraction in found], asked, human
    )


def read_labels(path: str) -> tuple[list[Asked], list[int | None]]:
    """The responses of a file and the positions (from 0) that people read in them. Raises TableError for a bad row."""
    asked, human = [], []
    for row in read_rows(path):
        try:
            one, selected = _label(row)
        except RowError as error:
            raise TableError(f"{shown(path)}, {row.place}: {error}") from None
        asked.append(one)
        human.append(selected)
    return asked, human


def _label(row: Row) -> tuple[Asked, int | None]:
    if missing := [name for name in ("n_options", "response", "selected") if name not in row]:
        raise RowError(f"missing_column: a row needs {', '.join(missing)}")
    options = number_of(row["n_options"], "n_options")
    blank = is_null(row["selected"]) or row["selected"] == ""
    selected = 0 if blank else number_of(row["selected"], "selected")
    if options < 2 or selected > options:
        raise RowError(f"bad_selected: {selected} of {options} options")
    one = Asked(text_of(row.get("question"), "question"), options, text_of(row["response"], "response"))
    return one, selected - 1 if selected else None


def report(
    read: list[int | None], reasons: list[str | None], asked: list[Asked], human: list[int | None]
) -> None:
    """Agreement with its Wilson interval, kappa, and what the reader and the people made of the rest.

    A verdict that the judge lost is no reading, not even of "no single option": it is left out and counted.
    """
    kept = [number for number, reason in enumerate(reasons) if not verdict_lost(reason)]
    if not kept:
        raise ConfigError(f"reader: none of the judge's {len(read)} verdicts can be read")
    found = calibrate([read[number] for number in kept], [human[number] for number in kept])
    agreed = round(found.agreement * found.n)
    low, high = wilson_interval(agreed, found.n)
    kappa = "not defined" if math.isnan(found.kappa) else f"{found.kappa:.3f}"
    print(
        f"agreement {100 * found.agreement:.2f}% ({agreed}/{found.n}, 95% {100 * low:.1f} to {100 * high:.1f})"
    )
    print(f"Cohen's kappa {kappa}")
    if lost := len(read) - len(kept):
        worst = 100 * agreed / len(read)
        print(
            f"{lost} verdicts of the judge could not be read and are left out; were all wrong: {worst:.2f}%"
        )
    differ = [number for number in kept if read[number] != human[number]]
    refused = Counter(reasons[number] for number in differ if reasons[number])
    if refused:
        print(
            "refused where people saw an option: "
            + ", ".join(f"{reason} {n}" for reason, n in refused.most_common())
        )
    for number in differ[:SHOWN]:
        said = " ".join((asked[number].response or "").split())[-120:]
        print(f"  people {_place(human[number])}, reader {_place(read[number])}: {said!r}")


def _place(index: Any) -> str:
    return "none" if index is None else str(index + 1)


if __name__ == "__main__":
    entry("mugen_calibrate", main)
