"""Prompts: filled without interpreting what is filled in, identified by their text."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from operators.fingerprint import canonical
from operators.prompts import PROMPTS, Prompt, PromptError


def written(folder: Path, text: str, name: str = "mine.txt") -> Prompt:
    (folder / name).write_text(text, encoding="utf-8")
    return Prompt(str(folder / name))


def test_fill_puts_every_value_in_place(tmp_path: Path) -> None:
    prompt = written(tmp_path, "Q: {{question}} A: {{answer}} ({{question}})\n")
    assert prompt.fields == {"question", "answer"}
    assert prompt.fill(question="who?", answer="me") == "Q: who? A: me (who?)"


@pytest.mark.parametrize(
    "value", ["{{answer}}", "{answer} {0} {", "$answer ${x} $$", "%s %(a)d", r"\1 \g<0> \n", "日本 🎧 שלום"]
)
def test_untrusted_values_stay_what_they_are(tmp_path: Path, value: str) -> None:
    prompt = written(tmp_path, "{{question}}|{{answer}}")
    assert prompt.fill(question=value, answer="B") == f"{value}|B"


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text())
def test_any_text_can_be_filled_in(question: str, answer: str) -> None:
    text = Prompt("cascade_answer").fill(evidence=answer, question=question)
    assert text == f"{answer}\nQuestion: {question}\nAnswer:"


@pytest.mark.parametrize("values", [{}, {"question": "a"}, {"question": "a", "evidence": "b", "more": "c"}])
def test_missing_and_unknown_fields_are_named(values: dict[str, str]) -> None:
    with pytest.raises(PromptError, match=r"'cascade_answer' has the fields \['evidence', 'question'\]"):
        Prompt("cascade_answer").fill(**values)


def test_an_unknown_prompt_names_those_there_are() -> None:
    with pytest.raises(ValidationError, match=r"no prompt 'nope'.*cascade_answer.*cot_four_step"):
        Prompt("nope")


def test_what_an_editor_adds_is_no_part_of_a_prompt_and_other_bytes_are_refused(tmp_path: Path) -> None:
    marked, plain = written(tmp_path, "\ufeffSay {{x}}.", "a.txt"), written(tmp_path, "Say {{x}}.", "b.txt")
    assert marked.text == plain.text and canonical(marked) == canonical(plain)
    (tmp_path / "c.txt").write_bytes(b"Fr\xe4ge: {{x}}")
    with pytest.raises(ValidationError, match=r"c\.txt': byte 0xe4 is not UTF-8; save the file as UTF-8"):
        Prompt(str(tmp_path / "c.txt"))


def test_identity_is_the_text_and_not_the_name(tmp_path: Path) -> None:
    one, same = written(tmp_path, "Say {{x}}.", "a.txt"), written(tmp_path, "Say {{x}}.\n", "b.txt")
    other = written(tmp_path, "Say {{x}}!", "c.txt")
    assert canonical(one) == canonical(same)
    assert one.sha256 == same.sha256
    assert canonical(one) != canonical(other)


def test_every_shipped_prompt_can_be_read() -> None:
    names = [path.stem for path in PROMPTS.glob("*.txt")]
    assert {"cascade_answer", "cascade_chain", "cascade_evidence", "cot_four_step"} <= set(names)
    for name in names:
        assert Prompt(name).text


def test_the_four_step_prompt_asks_for_the_four_tags_in_order() -> None:
    prompt = Prompt("cot_four_step")
    assert prompt.fields == {"question", "choices"}
    at = [prompt.text.index(tag + "\n") for tag in ("[PERCEPTION]", "[ANALYSIS]", "[REASONING]", "[ANSWER]")]
    assert at == sorted(at)
