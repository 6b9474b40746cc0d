"""Counterfactual audit items for tests: written out as JSONL lines, with or without sound."""

import json
import shutil
from pathlib import Path
from typing import ClassVar

import numpy as np
import soundfile
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass


def turn(emotion, audio, text="It is late.", speaker="user"):
    return {"speaker": speaker, "text": text, "emotion": emotion, "audio": audio}


def single(name="s1", emotions=("angry", "sad"), text="It is late.", **changes):
    """A single-turn item; its clips are called after it."""
    line = {
        "id": name,
        "branches": [[turn(e, f"{name}-{y}.wav", text)] for y, e in enumerate(emotions)],
        "responses": [
            {"branch": y, "text": f"A reply to someone {e}.", "audio": f"{name}-r{y}.wav"}
            for y, e in enumerate(emotions)
        ],
        "source": "written for this project",
        "generator": "none",
    }
    return line | changes


def positional(name="p1", onsets=(2, 3), n_user=3, states=("happy", "angry")):
    """A dialogue of `n_user` user turns with replies between; in branch y the second state starts at user turn onsets[y]."""

    def branch(y):
        turns = []
        for k in range(1, n_user + 1):
            emotion = states[1] if k >= onsets[y] else states[0]
            turns.append(turn(emotion, f"{name}-{y}-u{k}.wav", f"User line {k}."))
            if k < n_user:
                turns.append(turn("neutral", f"{name}-a{k}.wav", f"Assistant line {k}.", "voice assistant"))
        return turns

    replies = [
        {"branch": y, "text": f"Sorry about line {onsets[y]}.", "audio": f"{name}-r{y}.wav"} for y in (0, 1)
    ]
    return {"id": name, "branches": [branch(0), branch(1)], "responses": replies}


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def items_of(kind, lines, folder):
    """The items of `lines` with made-up hashes: enough to plan and present calls."""
    from operators.benchmarks.emotions import EmotionAudit

    rows = EmotionAudit(kind, write(folder / f"{kind}.jsonl", lines)).load().to_pylist()
    uris = [row["audio_uris"] for row in rows]
    clips = [
        {"audio_hashes": [f"hash of {uri}" for uri in some], "audio_seconds": [1.0] * len(some)}
        for some in uris
    ]
    return [row | heard for row, heard in zip(rows, clips, strict=True)]


def wrong(call):
    """An answer that is readable and wrong."""
    if call["probe"] == "perception":
        return ",".join("E2" if label == "E1" else "E1" for label in call["gold"].split(","))
    return "R2" if call["gold"] == "R1" else "R1"


def reply(call, pred):
    """The JSON reply that says `pred`, spelled as a call's gold."""
    if call["probe"] == "pairwise":
        pred = {"CA": pred, "CB": "R2" if pred == "R1" else "R1"}
    elif call["probe"] == "perception" and call["kind"] != "single_turn_emotions":
        pred = {f"C{turn}": label for turn, label in zip(call["turns"], pred.split(","), strict=True)}
    return json.dumps({"reasoning": "because", "pred": pred})


def judge(calls, right, model="toy"):
    """Verdicts of a hand-made judge; right(call) says whether it answers rightly, None for an unreadable answer."""
    from operators.audit.outcomes import judged

    rows = []
    for call in calls:
        outcome = right(call)
        text = "no idea" if outcome is None else reply(call, call["gold"] if outcome else wrong(call))
        rows.append(judged(call, model, [{"response": text, "response_error": None}]))
    return rows


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ToyJudge:
    """A judge with known skills. It really decodes every clip it is given, and knows their emotions by their file names,
    "...-angry.wav"; a text reply suits the emotion that it names.

    hears: it names emotions (else E1 for every turn). knows: told an emotion in writing, it finds the reply that names it
    (else R1). combines: it does so when it hears one voice or two (else R1). readable_from: its replies to earlier attempts
    are no JSON.
    """

    reads: ClassVar[tuple[str, ...]] = (
        "question",
        "probe",
        "parts",
        "names",
        "turns",
        "audio_uris",
        "audio_hashes",
        "trial",
    )
    writes: ClassVar[tuple[str, ...]] = ("response", "finish_reason", "usage", "response_error")
    version: ClassVar[int] = 1

    hears: bool = True
    knows: bool = True
    combines: bool = True
    readable_from: int = 0
    max_clips: int | None = None

    def build(self):
        def op(batch):
            columns = {name: np.full(len(batch["probe"]), None, dtype=object) for name in self.writes}
            for row in range(len(batch["probe"])):
                seconds = [soundfile.info(uri).duration for uri in batch["audio_uris"][row]]
                good = batch["trial"][row] >= self.readable_from
                pred = self._pred({name: batch[name][row] for name in self.reads})
                columns["response"][row] = json.dumps({"reasoning": "toy", "pred": pred}) if good else "Hm."
                columns["usage"][row] = json.dumps(
                    {"audio_clips": len(seconds), "audio_seconds": sum(seconds)}
                )
            return columns

        return op

    def _pred(self, row):
        clips = iter(row["audio_uris"])
        contexts, replies = {}, []
        for part in row["parts"]:
            sound = Path(next(clips)).stem.rsplit("-", 1)[-1] if part["text"] is None else None
            if part["place"] in ("R1", "R2"):
                replies.append(sound or part["text"].split()[-1].rstrip("."))
            elif part["speaker"] == "user":
                contexts.setdefault(part["place"].split()[0], []).append(sound or part["emotion"])
        if row["probe"] == "perception":
            labels = {name: f"E{k}" for k, name in enumerate(row["names"], 1)}
            said = [labels.get(e, "E1") if self.hears else "E1" for e in contexts["C"]]
            return (
                said[0] if len(said) == 1 else {f"C{t}": s for t, s in zip(row["turns"], said, strict=True)}
            )
        able = self.knows if row["probe"] in ("oracle", "staging") else self.combines
        if row["probe"] == "pairwise":
            first = replies.index(contexts["CA"][0]) if able and contexts["CA"][0] in replies else 0
            return {"CA": f"R{first + 1}", "CB": f"R{2 - first}"}
        return f"R{replies.index(contexts['C'][0]) + 1}" if able and contexts["C"][0] in replies else "R1"


def crema_audit(folder, source, n=20):
    """An audit from recorded pairs of CREMA-D (`source`): the same actor, the same words, two emotions.

    The replies are tones: enough for a judge that goes by the names of files.
    """
    pairs = json.loads((source / "counterfactual_pairs.json").read_text())[:n]
    lines = []
    for number, pair in enumerate(pairs):
        name = f"c{number}"
        clips = [f"{name}-{y}-{emotion}.wav" for y, emotion in enumerate(pair["emotions"])]
        for clip, file in zip(clips, pair["files"], strict=True):
            shutil.copyfile(source / file, folder / clip)
        lines.append(single(name, pair["emotions"], pair["sentence"]))
        for y, clip in enumerate(clips):
            lines[-1]["branches"][y][0]["audio"] = clip
            reply_clip = f"{name}-reply-{pair['emotions'][y]}.wav"
            rate = 8000
            tone = np.sin(2 * np.pi * (300 + 20 * number + 200 * y) * np.arange(rate // 4) / rate)
            soundfile.write(folder / reply_clip, 0.3 * tone, rate)
            lines[-1]["responses"][y]["audio"] = reply_clip
        lines[-1] |= {"source": "CREMA-D", "generator": f"actor {pair['actor']}"}
    return write(folder / "crema.jsonl", lines)
