"""Slots and entities: the template, what models make of it, and text made to hurt a parser."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.cot import SLOTS, Slots, entities_of, parse_slots

FULL = Slots("Entities: dog.", "It barks.", "So a dog.", "B", ("dog",))


@pytest.mark.parametrize(
    "text",
    [
        "[PERCEPTION] Entities: dog. [ANALYSIS] It barks. [REASONING] So a dog. [ANSWER] B",
        "[perception]\nEntities: dog.\n[analysis]\nIt barks.\n[reasoning]\nSo a dog.\n[answer]\nB\n",
        "**[PERCEPTION]** Entities: dog.\n\n**[ANALYSIS]** It barks.\n\n**[REASONING]** So a dog.\n\n**[ANSWER]** **B**",
        "**[PERCEPTION]**: Entities: dog.\n**[ANALYSIS]**: It barks.\n**[REASONING]**: So a dog.\n**[ANSWER]**: B",
        "## Perception\nEntities: dog.\n## Analysis\nIt barks.\n## Reasoning\nSo a dog.\n## Answer\nB",
        "### [PERCEPTION]\nEntities: dog.\n\n---\n### [ANALYSIS]\nIt barks.\n---\n### [REASONING]\nSo a dog.\n---\n### [ANSWER]\nB",
        "**Perception:** Entities: dog.\n**Analysis:** It barks.\n**Reasoning:** So a dog.\n**Answer:** B",
        "**PERCEPTION:** Entities: dog. **ANALYSIS:** It barks. **REASONING:** So a dog. **ANSWER:** B",
        "Perception: Entities: dog. Analysis: It barks. Reasoning: So a dog. Answer: B",
        "PERCEPTION\nEntities: dog.\nANALYSIS\nIt barks.\nREASONING\nSo a dog.\nANSWER\nB",
        "1. **Perception**: Entities: dog.\n2. **Analysis**: It barks.\n3. **Reasoning**: So a dog.\n4. **Answer**: B",
        "Step 1: Perception\nEntities: dog.\nStep 2: Analysis\nIt barks.\nStep 3: Reasoning\nSo a dog.\nStep 4: Answer\nB",
        "<perception>Entities: dog.</perception><analysis>It barks.</analysis><reasoning>So a dog.</reasoning>"
        "<answer>B</answer> Thanks!",
        "[PERCEPTION]Entities: dog.[/PERCEPTION]x[ANALYSIS]It barks.[/ANALYSIS]y[REASONING]So a dog.[/REASONING]z"
        "[ANSWER]B[/ANSWER]!",
        "[PERCEPTION Entities: dog.\nANALYSIS] It barks.\n[REASONING: So a dog.]\n[ANSWER: B]",
        "```\n[PERCEPTION]\nEntities: dog.\n[ANALYSIS]\nIt barks.\n[REASONING]\nSo a dog.\n[ANSWER]\nB\n```",
        "Sure, here it is. [PERCEPTION] Entities: dog. [ANALYSIS] It barks. [REASONING] So a dog. [FINAL ANSWER] B",
        "[ANSWER] B [REASONING] So a dog. [ANALYSIS] It barks. [PERCEPTION] Entities: dog.",
        "<think>[PERCEPTION] Entities: dog. [ANALYSIS] It barks. [REASONING] So a dog.</think>\n\n[ANSWER] B",
        "Use [PERCEPTION] Entities: <list> [ANALYSIS] ... [REASONING] ... [ANSWER] <choice>\n\n"
        "[PERCEPTION] Entities: dog. [ANALYSIS] It barks. [REASONING] So a dog. [ANSWER] B",
        "[PERCEPTION] Entities: dog.\r\n[ANALYSIS] It barks.\r\n[REASONING] So a dog.\r\n[ANSWER] B\r\n",
        "(PERCEPTION) Entities: dog. (ANALYSIS) It barks. (REASONING) So a dog. (ANSWER) B",
        "[PERCEPTION] Entities: dog.<|im_end|>[ANALYSIS] It barks.</s>[REASONING] So a dog.<end_of_turn>[ANSWER] B<|eot_id|>",
        "{Perception}\nEntities: dog.\n{Analysis}\nIt barks.\n{Reasoning}\nSo a dog.\n{Answer}\nB",
        "Perception - Entities: dog.\nAnalysis - It barks.\nReasoning - So a dog.\nAnswer - B",
        "**Perception** – Entities: dog.\n**Analysis** – It barks.\n**Reasoning** – So a dog.\n**Answer** – B",
        '{"perception": "Entities: dog.", "analysis": "It barks.", "reasoning": "So a dog.", "answer": "B"}',
        'Here:\n```json\n{"PERCEPTION": "Entities: dog.", "ANALYSIS": "It barks.",\n "REASONING": "So a dog.", "ANSWER": "B"}\n```',
        r"\[PERCEPTION\] Entities: dog. \[ANALYSIS\] It barks. \[REASONING\] So a dog. \[ANSWER\] B",
        r"\\[PERCEPTION\\] Entities: dog. \\[ANALYSIS\\] It barks. \\[REASONING\\] So a dog. \\[ANSWER\\] B",
        r"\[PERCEPTION\] Entities: dog. \[/PERCEPTION\]x **\[ANALYSIS\]** It barks. **\[REASONING\]** So a dog. \[ANSWER\] B",
        "[ＰＥＲＣＥＰＴＩＯＮ] Entities: dog. ［Ａnalysis］ It barks. 【ＲＥＡＳＯＮＩＮＧ】 So a dog. [ＡＮＳＷＥＲ] B",
        "{'perception': 'Entities: dog.', 'analysis': \"It barks.\", 'reasoning': 'So a dog.', 'answer': 'B'}",
        "```python\n{'perception': ('Entities: dog.',), 'analysis': 'It barks.', 'reasoning': 'So a dog.', 'answer': 'B'}\n```",
        "[PERCEIVE] Entities: dog. [ANALYZE] It barks. [REASON] So a dog. [ANSWER] B",
    ],
)
def test_what_models_make_of_the_template_parses_alike(text):
    assert parse_slots(text) == FULL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t",
        "The dog barks, so the answer is a dog.",
        "My analysis: the dog barks. I prefer the answer: B",
        "the answer\nis dog. Further analysis\nof the sound needs perception and reasoning.",
        "An answer, a perception, an analysis (reasoning) - and no tag.",
        "[PERCEPTIONS] [REANALYSIS] answers] unanswered:",
        "[PERCEPTION] [ANALYSIS]\n\n[REASONING] ** [ANSWER] ...",
        "[PERCEPTION] <|im_end|> [ANALYSIS] </s> [REASONING] <eos> [ANSWER] <|eot_id|>",
        'The perception (answer) - an analysis - {reasoning} and "answer": x',
        '{"answer": "B"}',
        '{"perception": "x", "answer": "B"',
        '{"perception": null, "answer": [], "n": ' + "[" * 5000,
    ],
)
def test_mere_words_and_empty_slots_are_absent(text):
    assert parse_slots(text) == Slots()


def test_reference_to_a_slot_does_not_open_one():
    slots = parse_slots("[REASONING] As the [PERCEPTION] says, and from the [ANALYSIS]: rain. [ANSWER] rain")
    assert slots == Slots(reasoning="As the [PERCEPTION] says, and from the [ANALYSIS]: rain.", answer="rain")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[PERCEPTION] w and [ANALYSIS] x and [REASONING] y and [ANSWER] B",
            Slots("w and", "x and", "y and", "B"),
        ),
        ("I hear rain, so here is the [ANSWER] B", Slots(answer="B")),
        ("[ANSWER] B, see the [ANSWER] above", Slots(answer="B, see the [ANSWER] above")),
        (
            "## Perception\nrain\n[REASONING] the [PERCEPTION] says rain",
            Slots("rain", "", "the [PERCEPTION] says rain"),
        ),
        ("[ANALYSIS] x up to [/ANALYSIS] y", Slots(analysis="x up to")),
    ],
)
def test_a_mention_opens_a_slot_that_nothing_else_opens(text, expected):
    assert parse_slots(text) == expected


def test_a_verb_is_a_tag_only_in_brackets_and_where_the_slot_has_no_name_of_its_own():
    assert parse_slots("[ANALYSIS] Reason: it barks. Analyze: x. (REASON) y") == Slots(
        analysis="Reason: it barks. Analyze: x. (REASON) y"
    )
    assert parse_slots("[REASONING] A dog. [ANSWER] B [REASON] x") == Slots(
        reasoning="A dog.", answer="B [REASON] x"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{'perception': {'dog'}, 'answer': 'B'}",
        "{'perception': 'dog', 'answer': 'B'",
        "{'perception': open('x'), 'answer': 'B'}",
        "{'perception': " + "[" * 5000 + "}",
        "{'perception': 'it's a dog', 'answer': 'B'}",
    ],
)
def test_what_is_no_dict_of_texts_is_no_chain(text):
    assert parse_slots(text) == Slots()


def test_full_width_letters_stay_in_what_a_slot_says():
    assert parse_slots("[ＡＮＳＷＥＲ] Ｂ１") == Slots(answer="Ｂ１")


def test_json_values_become_text():
    slots = parse_slots(
        '{"perception": {"Entities": ["dog", "cat"], "Description": "loud"}, "analysis": null, "answer": 3}'
    )
    assert slots == Slots("Entities: dog, cat\nDescription: loud", "", "", "3", ("dog", "cat"))
    assert parse_slots('{"analysis": "a\\u0000\\ud800b", "answer": "B"}').analysis == "a\ufffdb"


def test_loose_heading_yields_to_a_strict_tag_of_the_same_slot():
    slots = parse_slots("[ANALYSIS]\nAnalysis: loud\n[ANSWER] A")
    assert (slots.analysis, slots.answer) == ("Analysis: loud", "A")


def test_last_occurrence_with_text_counts():
    assert parse_slots("[ANSWER] A [REASONING] r [ANSWER] B").answer == "B"
    assert parse_slots("[ANSWER] A\n[ANSWER]").answer == "A"
    assert parse_slots("[ANALYSIS] first [ANALYSIS] second").analysis == "second"


def test_thought_block_ends_a_slot():
    assert parse_slots("<think>[ANSWER] C or so</think> Here: [ANSWER] B</think> bye").answer == "B"


@pytest.mark.parametrize(
    "literal", ["a <step b", "a <steps> b", "a <think> b", "a </stepwise> b", "a <summary b"]
)
def test_only_a_closing_tag_ends_a_slot(literal):
    assert parse_slots(f"[ANALYSIS] {literal} [ANSWER] B").analysis == literal
    assert parse_slots(f"[ANALYSIS] {literal}</step> more [ANSWER] B").analysis == literal


def test_translated_tags():
    spanish = parse_slots("[PERCEPCIÓN] Entidades: perro, gato [ANÁLISIS] x [RAZONAMIENTO] y [RESPUESTA] B")
    assert spanish == Slots("Entidades: perro, gato", "x", "y", "B", ("perro", "gato"))
    assert parse_slots("【感知】实体：狗、猫\n【推理】y\n【答案】B") == Slots(
        "实体：狗、猫", "", "y", "B", ("狗", "猫")
    )


@pytest.mark.parametrize(
    ("perception", "expected"),
    [
        (
            "Entities: male voice, speech, English, Indian accent.",
            ("male voice", "speech", "english", "indian accent"),
        ),
        (
            "Entities: speech, male voice…. Description: The audio, as heard, is calm.",
            ("speech", "male voice"),
        ),
        ("Entities: Dog, dog; DOG and Straße, STRASSE", ("dog", "strasse")),
        ("**Entities:** 'dog', \"cat\"; **Rain**\n**Description:** loud, sharp", ("dog", "cat", "rain")),
        ("Entities: dog, cat Properties: loud, sharp", ("dog", "cat")),
        ("Entities: dog (loud, sharp), car horn [short, twice]", ("dog", "car horn")),
        (
            "Entities:\n- **Dog** (loud)\n- Cat: meowing\n  - soft\n* Rain – steady\n\nProperties: x",
            ("dog", "cat", "rain"),
        ),
        ("Entities:\n1. Dog barking\n2) Car horn\n\nDescription:\n1. loud", ("dog barking", "car horn")),
        ("Entities: 1. Dog barking 2. Car horn", ("dog barking", "car horn")),
        ("Entities:\nDog\nCat\n\nThe dog is loud.", ("dog", "cat")),
        ("**Entities**\n* dog\n* cat\n\n**Description**\n* loud", ("dog", "cat")),
        ("Entities: ['Dog', 'Cat']", ("dog", "cat")),
        (
            "Entities: dog / cat, music/speech, A/C unit, R&B vocal",
            ("dog", "cat", "music", "speech", "a/c unit", "r&b vocal"),
        ),
        (
            "Entities: rock and roll, drum and bass, wind and rain",
            ("rock and roll", "drum and bass", "wind", "rain"),
        ),
        ("Entities: a dog, and a man speaking, etc.", ("a dog", "a man speaking")),
        ("Entities: dog,\ncat\nDescription: x", ("dog", "cat")),
        ("Entities: dog\nThen more.\nEntities: cat, dog", ("dog", "cat")),
        ("Sound Entities (in order): dog\nTemporal order: dog first", ("dog",)),
        ("entities: dog", ("dog",)),
        ("Entities: U.S. anthem, rain", ("u.s. anthem", "rain")),
        ("Entities: J. S. Bach, wind. The music is calm.", ("j. s. bach", "wind")),
        ("Entities: St. Bernard barking, wind. It is loud.", ("st. bernard barking", "wind")),
        ("Entities: dog vs. cat, bell", ("dog vs. cat", "bell")),
        ("Entities: speaker A. The speaker is calm.", ("speaker a",)),
        ("Entities: dog. Cat. Rain", ("dog", "cat", "rain")),
        ("Entities: dog. The dog barks.", ("dog",)),
        ("Entities: dog. It barks.", ("dog",)),
        ("Entities: dog, cat. Loud.", ("dog", "cat")),
        ("Entities:\ndog\ncat\nbird", ("dog", "cat", "bird")),
        ("Entities: dog\ncat\nbird song\nDescription: loud", ("dog", "cat", "bird song")),
        ("Entities heard: dog\n- cat\n- bird", ("dog", "cat", "bird")),
        ("Entities: dog\ncat\n\nrain", ("dog", "cat")),
        ("Entities: dog\nSetting: a park", ("dog",)),
        ("Entities: dog\nA man is speaking to a small crowd of people", ("dog",)),
        ("Entities: dog.\nA quiet room", ("dog",)),
        ("Entities - dog, cat", ("dog", "cat")),
        ("**Entities** – dog, cat", ("dog", "cat")),
        ("Entities (dog, cat)", ("dog", "cat")),
        ("Entities (dog, cat).\nDescription: loud", ("dog", "cat")),
        ("Entities (in order)\n- dog\n- cat", ("dog", "cat")),
        ("I hear entities - say, dogs - and entities (cats)", ()),
        ("Entities: unknown instrument, various birds", ("unknown instrument", "various birds")),
        ("Entities: unknown, various sounds, others", ()),
        ("Entities: dog bark at 0:05, cat: loud", ("dog bark at 0:05", "cat")),
        ("Entities: None.", ()),
        ("Entities: N/A", ()),
        ("Entities: no clear entities", ()),
        ("Entities: none detected\nDescription: silence", ()),
        ("Entities: no sound entities can be identified.", ()),
        ("Entities: dog, no music, unknown", ("dog",)),
        ("Entities: -", ()),
        ("Entities:", ()),
        ("The sound entities are a dog and a cat.", ()),
        ("dog, cat", ()),
    ],
)
def test_entities(perception, expected):
    assert entities_of(perception) == expected
    assert parse_slots(f"[PERCEPTION] {perception}\n[ANSWER] B").entities == expected


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "*",
        "<",
        "\n",
        " ",
        "[ANSWER",
        "answer ",
        "answer:",
        "**",
        "Entities:",
        "entities: a, ",
        "(",
        "a (b, ",
        " and ",
        ".",
        "- x\n",
        "#",
        "a. ",
        "St. ",
        "x\n",
        "Entities - ",
        "Entities (x)\n",
        "the [ANSWER] ",
        '{"answer":',
        '{"answer": {',
    ],
)
def test_adversarial_repetition_ends(unit):
    """Work that grows with the square of the length would not end within the suite's timeout."""
    for prefix in ("", "[PERCEPTION] Entities: "):
        text = prefix + unit * (100_000 // len(unit))
        slots = parse_slots(text)
        assert all(getattr(slots, name) in text for name in SLOTS)
        assert all(entity in text.casefold() for entity in slots.entities)


def test_twenty_thousand_words_keep_their_slots():
    body = "the dog barks and the analysis goes on, " * 2_500
    slots = parse_slots(f"[PERCEPTION] {body}[REASONING] {body}[ANSWER] dog")
    assert (slots.perception, slots.reasoning, slots.answer) == (body.strip(), body.strip(), "dog")


PIECES = st.sampled_from(
    [
        "[PERCEPTION]",
        "[ANALYSIS]",
        "[ANSWER",
        "answer:",
        "**",
        "Entities:",
        "\n",
        "- ",
        "dog",
        ",",
        "İ",
        "ß",
        "\ud800",
        "\0",
        "</think>",
    ]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES | st.text(max_size=8), max_size=30).map("".join))
def test_any_text_parses_into_its_own_parts(text):
    slots = parse_slots(text)
    for name in SLOTS:
        body = getattr(slots, name)
        assert body == "" or (body == body.strip() and any(map(str.isalnum, body)))
    assert len(set(slots.entities)) == len(slots.entities)
    assert all(entity == entity.casefold() for entity in slots.entities)
