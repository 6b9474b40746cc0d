"""Counterfactual audit items for tests: written out as JSONL lines, with or without sound."""

import json


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
    return [row | {"audio_hashes": [f"hash of {uri}" for uri in row["audio_uris"]]} for row in rows]


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
