"""Result rows of a run that never ran: many items and models, with texts that no page should trust."""

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from operators.aggregate import finish_rows
from operators.schema import METRICS, result_schema

HOSTILE = (
    "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'> javascript:alert(1) "
    "<!-- \u2028 ]]> &lt;b&gt; \x07 \u202e reversed {{question}} ${1}"
)


def row(item, model, number, text, gold=0, chosen=0, **changed):
    """One row in the result schema, all metrics scored; `changed` replaces columns."""
    draw = random.Random(f"{item} {model}")
    values = {name: draw.random() for name in METRICS}
    slots = {name: f"{name} of {item}: {text}" for name in ("perception", "analysis", "reasoning")}
    response = "\n".join(f"[{name.upper()}] {body}" for name, body in slots.items()) + "\n[ANSWER] dog"
    details = {
        METRICS[0]: {"entities": ["bark", text[:40]], "similarities": [0.75, 0.25], "truncated": []},
        METRICS[1]: {"cosine_p_a": 0.5, "cosine_a_r": 0.25, "truncated": []},
        METRICS[2]: {"perception": 0.5, "analysis": 0.5, "reasoning": 0.5, "answer": 1.0, "truncated": []},
        METRICS[3]: {"ppl_p": 40.0, "ppl_pa": 30.5, "ppl_par": 35.0, "truncated": [], "answer_tokens": 1},
        METRICS[4]: {"p_a": 0.5, "a_r": 0.125, "r_ans": 0.875, "truncated": [], "merged": []},
        METRICS[5]: {"n_words": 9, "n_out_of_vocabulary": 1, "n_stop_words": 4},
    }
    made = dict.fromkeys(result_schema().names)
    made |= {
        "item_id": item, "benchmark": "toy", "question": f"Which animal is number {number}? {text}",
        "choices": ["dog", "cat", "cow"], "gold_index": gold, "category": ("sound", "music", "speech")[number % 3],
        "audio_uris": [], "audio_hashes": [], "audio_seconds": [], "model": model, "trial": 0, "response": response,
        "answer": "dog", "entities": ["bark"], "answer_index": chosen, "answer_stage": "tag_exact",
        "answer_index_paper": 0, "answer_stage_paper": "exact", **slots, **values,
        **{f"{name}_details": json.dumps(found) for name, found in details.items()}, **changed,
    }  # fmt: skip
    return made


def results(n_items=12, models=("careful", "sloppy"), text="a dog barks"):
    """Finished rows of `n_items` x `models`; item number 3 of the last model has no answer, number 4 no response."""
    rows = []
    for number in range(n_items):
        for model in models:
            last = model == models[-1]
            changed = {}
            if last and number == 3:
                changed = {"answer_index": None, "answer_stage": None, "answer_reason": "no_choice_named"}
            if last and number == 4:
                error = "no_recorded_response: none for this item"
                gone = (
                    "response",
                    "perception",
                    "analysis",
                    "reasoning",
                    "answer",
                    "answer_index",
                    "answer_index_paper",
                )
                changed = dict.fromkeys((*gone, *METRICS)) | {"response_error": error, "row_error": error}
                changed |= {f"{name}_reason": error for name in METRICS}
            rows.append(
                row(f"item-{number}", model, number, text, chosen=0 if not last else number % 2, **changed)
            )
    return finish_rows(pa.Table.from_pylist(rows, schema=result_schema()))


def write_run(folder, rows, fingerprints=None, **record):
    """A run's folder with `rows`."""
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "results.parquet")
    about = {
        "config": {"model": {"name": HOSTILE}}, "fingerprints": fingerprints or {"m1": "0123456789abcdef"},
        "versions": {"numpy": "2"}, "wall_seconds": {"score": 1.5},
        "stages": {"m1": {"rows": 2, "from_store": 0, "computed": 2, "failed": 0, "seconds": 1.0, "rows_per_second": 2.0}},
        **record,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def write_mugen_run(folder, text="a dog barks"):
    """A MUGEN run's folder: two questions of three clips, three permuted trials each; the last one cannot be read."""
    from operators.mugen.presentation import MUGEN_ITEM, Strategy
    from operators.mugen.tables import agreement, curve, positions, scaling, summarise
    from operators.mugen.votes import TRIALS, vote
    from operators.schema import CLIPS

    folder.mkdir(parents=True)
    items, trials = [], []
    for number in range(2):
        where = {"benchmark": "many", "item_id": f"q{number} {text}", "category": "MA", "task": "loudest"}
        clips = [folder / f"clip{place}.wav" for place in range(3)]
        for clip in clips:
            soundfile.write(clip, np.zeros(800), 8000)
        items.append({**where, "question": f"Which is loudest? {text}", "choices": ["1", "2", "3"], "gold_index": 1,
                      "audio_uris": [str(clip) for clip in clips], "audio_hashes": ["h0", "h1", "h2"],
                      "audio_seconds": [0.1] * 3, "n_reference": 0, "ranking": False})  # fmt: skip
        for trial, order in enumerate(([0, 1, 2], [2, 0, 1], [1, 2, 0])):
            position = 2 if trial < 2 else None  # clip 3 of the question, then clip 2, then none
            choice = None if position is None else order[position]
            trials.append({**where, "model": f"m {text}", "prompt": "mugen_direct", "permuted": True, "voting": False,
                           "ranking": False, "n_reference": 0, "trial": trial, "audio_order": order, "gold_index": 1,
                           "gold_position": order.index(1), "response": f"Audio {trial}: {text}",
                           "option_position": position, "option_stage": None if position is None else "number",
                           "option_reason": "no_option: none" if position is None else None, "choice_index": choice,
                           "correct": choice == 1})  # fmt: skip
    made = pa.Table.from_pylist(trials, schema=TRIALS)
    votes = vote(made, [], {"apsc": Strategy("mugen_direct", permute=True, vote=True)}, False)
    found = {"items": pa.Table.from_pylist(items, schema=pa.schema([*MUGEN_ITEM, *CLIPS])), "trials": made, "votes": votes,
             "summary": summarise(votes, 200), "scaling": scaling(votes), "curve": curve(made),
             "positions": positions(made), "agreement": agreement(made)}  # fmt: skip
    for name, table in found.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "run.json").write_text("{}")
    return folder


def write_audit_run(folder, text="It is late."):
    """An audit's folder: one item under every probe; the judge is right but for perception of the second voice."""
    from operators.audit.outcomes import INSTANCE, VERDICT, instances
    from operators.audit.presentation import Design, planned_calls
    from operators.audit.tables import tables
    from tests.audit_toys import items_of, judge, single

    folder.mkdir(parents=True)
    items = items_of("single_turn_emotions", [single(text=text)], folder)
    for uri in items[0]["audio_uris"]:
        soundfile.write(uri, np.zeros(800), 8000)
    calls = planned_calls(
        items[0], Design(("pointwise", "pairwise", "perception", "oracle"), ("none", "soft"), 0)
    )
    verdicts = judge(
        calls, lambda call: not (call["probe"] == "perception" and call["branch"] == 1), f"judge {text}"
    )
    cells = instances(verdicts)
    found = tables(verdicts, cells, 200)
    found |= {"verdicts": pa.Table.from_pylist(verdicts, schema=VERDICT), "items": pa.Table.from_pylist(items),
              "instances": pa.Table.from_pylist(cells, schema=INSTANCE)}  # fmt: skip
    for name, table in found.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "run.json").write_text("{}")
    return folder
