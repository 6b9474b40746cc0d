"""Reading the chosen option from free text: every way of naming a clip, and every reason to refuse."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.mugen.options import Asked, RuleReader, canonical, extract_option, labels

CHOSEN = {
    # response: position from 1, of 5
    "Audio 3": 3,
    "audio_3": 3,
    "Audio three.": 3,
    "C": 3,
    "(C)": 3,
    "Option C": 3,
    "Candidate B": 2,
    "option three": 3,
    "clip #2": 2,
    "clip number 5": 5,
    "Sound 3": 3,
    "audio 3 of 5": 3,
    "3": 3,
    "2)": 2,
    "#4": 4,
    "\\boxed{3}": 3,
    "the third clip": 3,
    "the 2nd one": 2,
    "the last clip": 5,
    "第三个音频": 3,
    "Answer: 3": 3,
    "The answer is 3.": 3,
    "**Answer:** Audio 3": 3,
    '{"answer": 3}': 3,
    "<answer>Audio 2</answer>": 2,
    "[ANSWER] 4": 4,
    "[PERCEPTION] Clip 1 is a dog. [ANSWER]\nAudio 4": 4,
    "I choose the second.": 2,
    "It is not the second clip but the fourth clip.": 4,
    "It's not Audio 2. The answer is Audio 4.": 4,
    "Audio 2, not Audio 3.": 2,
    "The correct option is the third one, not the first one.": 3,
    "The third clip is the angriest.": 3,
    "Only clip 4 contains a dog bark.": 4,
    "Speaker in clip 3 matches the reference audio": 3,
    "A dog barks in the second recording": 2,
    "The third longest audio is Audio 2.": 2,
    "Audio 1 lasts 3 seconds. Audio 2 lasts 5 seconds. Therefore, the longest is Audio 2.": 2,
    "First, Audio 1 is calm. Second, Audio 2 is neutral. Third, Audio 3 is angry.\nAnswer: Audio 3": 3,
    "I hear five clips. The second clip has the highest pitch.": 2,
    "B. Audio 2": 2,
    "The correct option is 2": 2,
    "The right clip is the second.": 2,
    "The best one is number 4": 4,
    "The correct audio is the last one.": 5,
    "I think clip 4 matches best. The voice is sharper than the reference.": 4,
    "I'd say the third clip. A dog barks in it.": 3,
    "In my opinion it is Audio 2. The tempo is steady.": 2,
    "I choose Audio 4. I would not choose Audio 3.": 4,
    "Audio 4 is correct. I did not select Audio 3.": 4,
    "I would not pick the second clip; the fourth clip is my choice.": 4,
    "I would not choose Audio 3 but Audio 4.": 4,
    "It does not bark, so I choose Audio 3.": 3,
    "No, I choose Audio 3.": 3,
    "Not only is it loud, I choose Audio 3.": 3,
    "I choose Audio 3 and do not choose Audio 4.": 3,
    "the second-to-last clip": 4,
    "The third from last clip": 3,
    "the last but one clip": 4,
    "It is not the second but the fourth.": 4,
    "not the second clip but the fourth": 4,
    "The answer is the second clip, in my opinion, not the third.": 2,
    "Clip 2 most likely not clip 3": 2,
    "It is not the second clip, but rather the last.": 5,
    "<answer>3</answer>": 3,
    "<answer>three</answer>": 3,
    "Answer: the fourth, not the second": 4,
    "clip 4 not clip 3": 4,
    "position 3": 3,
    "Answer: not 2 but 4": 4,
    "Audio 3. No other clip barks.": 3,
    "Audio 3 stands out.": 3,
    "Audio 3 is the least noisy.": 3,
    "I reject Audio 1 and choose Audio 3.": 3,
    "Answer: 3, not 2": 3,
    "I would say the best of the clips provided is Audio 3.": 3,
    "Audio-3": 3,
    "Audio - 3": 3,
    "Audio 3 - the dog": 3,
    "I would pick Audio 3, if I had to choose.": 3,
    "I would choose Audio 3 if forced.": 3,
    "I would go with Audio 3 even if it is quiet.": 3,
    "Answer: Audio 3, if any.": 3,
}

REFUSED = {
    "Answer: 3 or none": "several_choices",
    "Audio 3 or nothing": "several_choices",
    "Answer: Audio 3 (or none)": "several_choices",
    "I would pick Audio 3 if it barked.": "no_choice_named",
    "I would have picked Audio 3 if it barked.": "no_choice_named",
    "I'd say Audio 3, but if it barked I'd say Audio 2.": "no_choice_named",
    "Had it barked, I would pick Audio 3.": "no_choice_named",
    "I would pick Audio 3 provided it barks": "no_choice_named",
    "I would pick Audio 3 were it louder": "no_choice_named",
    "Audio -1": "no_choice_named",
    "[ANSWER] Audio -3": "no_choice_named",
    "Audio \u22121": "no_choice_named",
    "Answer: -1": "no_choice_named",
    "Audio 1.5": "no_choice_named",
    "Audio 3,4": "no_choice_named",
    "Audio 3 seconds": "no_choice_named",
    "none of the clips": "none_of_the_choices",
    "I cannot listen to audio.": "refusal",
    "I am not sure, maybe Audio 2?": "refusal",
    "Audio 2 and Audio 4": "several_choices",
    "clips 2 and 4 are both angry": "several_choices",
    "the first and third clips": "several_choices",
    "Either Audio 2 or Audio 3": "several_choices",
    "All of them sound angry": "several_choices",
    "Audio 1-3": "several_choices",
    "B. Audio 3": "letter_and_text_disagree",
    "Audio 7": "option_out_of_range",
    "Audio 0": "option_out_of_range",
    "Audio 1 is loud. The answer is Audio 7.": "option_out_of_range",
    "Two clips contain speech.": "no_choice_named",
    "Audio 2 isn't it": "no_choice_named",
    "Audio 4 is definitely not the answer; Audio 1 is.": "no_choice_named",
    "<answer>2 and 3</answer>": "several_choices",
    "Let me listen. Audio 1 is a calm voice": "no_choice_named",
    "Audio 3 is quiet. Audio 3 is not the one.": "no_choice_named",
    "I think clip 4 matches best. But perhaps it does not.": "no_choice_named",
    "Clip 1 is the loudest so far. A man speaks.": "no_choice_named",
    "The correct option is 7": "option_out_of_range",
    "I would not choose Audio 3.": "no_choice_named",
    "I do not choose Audio 3": "no_choice_named",
    "I don't select Audio 3": "no_choice_named",
    "I would never pick the third clip.": "no_choice_named",
    "I would not pick C.": "no_choice_named",
    "Do not choose Audio 3": "no_choice_named",
    "I refuse to pick Audio 3": "no_choice_named",
    "I don't think I can choose Audio 3.": "no_choice_named",
    "I would not, under any circumstances, choose Audio 3.": "no_choice_named",
    "Nor would I pick Audio 3.": "no_choice_named",
    "I don't think the answer is Audio 3.": "no_choice_named",
    "The answer is not \\boxed{3}": "no_choice_named",
    "The wrong answer is Audio 3.": "no_choice_named",
    "Not selected: Audio 3": "no_choice_named",
    "I do not choose Audio 3. Audio 2 is quiet.": "no_choice_named",
    "I would rule out Audio 3.": "no_choice_named",
    "I reject Audio 3.": "no_choice_named",
    "Eliminate Audio 3.": "no_choice_named",
    "Audio 3 is excluded.": "no_choice_named",
    "Audio 3 is out.": "no_choice_named",
    "Audio 3 is unlikely to be correct.": "no_choice_named",
    "Audio 3 is the least likely.": "no_choice_named",
    "Audio 3 lacks a bark.": "no_choice_named",
    "I doubt it is Audio 3.": "no_choice_named",
    "The worst match is Audio 3.": "no_choice_named",
    "Avoid Audio 3.": "no_choice_named",
    "The only wrong one is Audio 3.": "no_choice_named",
    "Audio 3: no": "no_choice_named",
    "Answer: 3 clips": "no_choice_named",
    "Answer: three clips": "no_choice_named",
    "I pick one.": "no_choice_named",
    "Rather the fourth than the second clip.": "no_choice_named",
    "Reference audio 1": "no_choice_named",
    "4/4": "no_choice_named",
    "The answer is 4/4.": "no_choice_named",
    "Answer: 3 and 4": "several_choices",
    "Answer: 3, 4": "several_choices",
    "Answer: 1-3": "several_choices",
    "Answer: 2/4": "several_choices",
    "Answer: 2, 3 and 4": "several_choices",
    "Answer: second and third": "several_choices",
    "The answer is 3 and 4.": "several_choices",
    "I choose 3 and 4": "several_choices",
    "\\boxed{2, 3}": "several_choices",
    '{"answer": [2, 3]}': "several_choices",
    "Answer: 3, maybe 4": "several_choices",
    "Answer: 3 as well as 4": "several_choices",
    "[ANSWER] 3 and 4": "several_choices",
    "A B": "several_choices",
    "I can't choose Audio 3": "refusal",
    "Audio 2. No wait, Audio 3.": "statements_disagree",
    "": "empty_response",
    " \n": "empty_response",
}


@pytest.mark.parametrize("response", CHOSEN)
def test_every_way_of_naming_one_option(response):
    found = extract_option(response, 5)
    assert found.index == CHOSEN[response] - 1, found
    assert found.stage and found.reason is None


@pytest.mark.parametrize("response", REFUSED)
def test_anything_else_is_refused_with_a_reason(response):
    found = extract_option(response, 5)
    assert (found.index, found.stage, found.reason) == (None, None, REFUSED[response])


def test_no_response_and_too_few_options():
    assert extract_option(None, 5).reason == "no_response"
    with pytest.raises(ValueError, match="at least 2 options"):
        extract_option("Audio 1", 1)


def test_numbers_of_two_digits_are_not_cut():
    assert extract_option("Audio 10", 12).index == 9
    assert extract_option("Audio 1", 12).index == 0
    assert extract_option("Audio 10", 5).reason == "option_out_of_range"


@pytest.mark.parametrize(
    "text",
    [
        "It lasts 3 seconds",
        "at 2.5 kHz",
        "the third longest sound is missing",
        "5 people",
        "The right clip is 3 seconds long",
        "The best clip is the second longest",
    ],
)
def test_quantities_are_not_places(text):
    assert "Audio" not in canonical(text, 5)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.integers(2, 12))
def test_no_text_raises_and_no_position_is_invented(text, n):
    found = extract_option(text, n)
    assert (found.index is None) == (found.reason is not None)
    assert found.index is None or 0 <= found.index < n


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.data())
def test_a_label_always_reads_as_itself(n, data):
    place = data.draw(st.integers(0, n - 1))
    forms = (
        labels(n)[place],
        f"The answer is {labels(n)[place]}.",
        f"Answer: clip {place + 1}",
        f"{place + 1}",
    )
    assert [extract_option(form, n).index for form in forms] == [place] * 4


def test_the_rule_reader_reads_each_response_with_its_own_number_of_options():
    read = RuleReader().read([Asked("q", 5, "Audio 4"), Asked("q", 3, "Audio 4"), Asked("q", 5, None)])
    assert [one.index for one in read] == [3, None, None]
    assert [one.reason for one in read] == [None, "option_out_of_range", "no_response"]
