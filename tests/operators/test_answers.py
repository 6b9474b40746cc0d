"""Which choice a response names: the paper's rule literally, the robust rule habit by habit, and real outputs."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.answers import Extraction, extract_answer
from tests.shared_data import shared

U = ("dog", "cat", "bird", "rain")
SEX = ("male", "female")
HORN = ("dog barking", "cat meowing", "car", "car horn")
NUMBERS = ("4", "14", "2", "3")
WORDS = ("two", "three", "four", "five")
YES = ("Yes", "No", "Maybe", "Perhaps not")
WHO = ("first speaker", "second speaker", "both speakers", "none of the speakers")
KEYS = ("C major", "G major", "A minor", "D minor")
NOTES = ("C", "C#", "D", "D#")

# habit: (response, choices, index that the response gives, or None)
HABITS = {
    "bare letter or text": [
        ("A", U, 0),
        ("b", U, 1),
        ("(B)", U, 1),
        ("[B]", U, 1),
        ("B)", U, 1),
        ("B.", U, 1),
        ("**B**", U, 1),
        ("dog", U, 0),
        ("'cat'", U, 1),
        ("['cat']", U, 1),
        ("A dog", U, 0),
        ("A cat", U, 1),
        ("cat</answer>", U, 1),
        ("Option B", U, 1),
        ("**B. cat**", U, 1),
        ("(B) cat", U, 1),
        ("B: cat", U, 1),
    ],
    "a denial with how sure it is, or with an aside": [
        *(
            (f"The dog {said} the answer.", U, None)
            for said in (
                *("is definitely not", "is clearly not", "clearly isn't", "is in fact not", "is by no means"),
                *("is most certainly not", "is, in my opinion, not", ", clearly, is not", "is by far not"),
            )
        ),
        ("The dog is certainly not the right option", U, None),
        ("[ANSWER] the dog is definitely not right", U, None),
        ("A is anything but right; it is B", U, None),
        ("Everything but the dog", U, None),
        ("All but the dog", U, None),
        ("Nothing but the dog", U, 0),
        ("You might think it's the dog, but no", U, None),
        ("It may sound like a dog but definitely not.", U, None),
        ("I considered the cat, but no other sound fits, so dog", U, 0),
        ("A is absolutely not correct. B is.", U, None),
        ("The dog is clearly not the answer. The cat is.", U, 1),
        ("The dog is, in my opinion, not the answer. It is the cat", U, 1),
        ("Dog: definitely not. Cat: definitely.", U, 1),
        ("dog: probably not, cat: probably", U, None),
        ("A is most likely wrong and B is most likely right", U, 1),
        ("A and B are definitely wrong, D is right", U, 3),
        ("dog, definitely not cat", U, 0),
        ("It is a dog, clearly not a cat", U, 0),
        ("The dog is the most likely, and definitely not the cat", U, 0),
        ("The sound is very likely a dog and really not a cat", U, 0),
        ("I choose dog and certainly not cat", U, 0),
        ("A is right and certainly B is not", U, 0),
        *(
            (said, U, 0)
            for said in (
                "The answer is A, in my opinion, not B.",
                "It is a dog, I think, not a cat.",
                "The answer is dog, of course, not cat",
                "The answer is A, for sure, not C.",
                "[ANSWER] A, of course, not B",
                "dog - definitely not cat",
                "[ANSWER] A - certainly not C",
                "dog most likely not cat",
                "It is a dog most probably not a cat.",
                "I eliminated everything but the dog",
                "The clues exclude all but dog",
                "There is nothing at all but dog.",
            )
        ),
        ("I considered them all but B is the best answer.", U, 1),
    ],
    "turned down": [
        *(
            (f"[ANSWER] {said}", U, None)
            for said in (
                "least likely: cat",
                "unlikely: cat",
                "ruled out: cat",
                "eliminated: cat",
                "absent: cat",
                "false: cat",
                "cat: no",
                "cat (incorrect)",
                "cat - no",
                "cat = false",
                "cat ❌",
                "❌ cat",
                "lack of cat",
                "nothing like a cat",
                "far from a cat",
                "The worst option is B",
                "The incorrect option is B",
                "B is the worst",
                "Incorrect answer: cat",
                "the opposite of cat",
                "I refuse to answer about the cat.",
            )
        ),
        ("I decline to say cat.", U, None),
        ("I abstain from choosing cat", U, None),
        ("I choose to abstain; a cat might be there.", U, None),
        ("[ANSWER] ليس كلب", ("كلب", "قطة"), None),
        ("[ANSWER] at least a cat", U, 1),
        ("[ANSWER] cat instead of dog", U, 1),
        ("[ANSWER] cat, no dog", U, 1),
        ("[ANSWER] B (not A)", U, 1),
        ("[ANSWER] The absent sound is the cat", U, 1),
    ],
    "taken back": [
        *(
            (said, U, None)
            for said in (
                "[ANSWER] B, no wait, C",
                "[ANSWER] cat, wait no, dog",
                "The answer is B, no, C.",
                "The answer is B - sorry, C.",
                "[ANSWER] B, correction: C",
                "[ANSWER] B (I mean C)",
                "[ANSWER] A to D",
                "[ANSWER] A-D",
            )
        ),
    ],
    "a letter that stands for another text": [
        *(
            (said, U, None)
            for said in (
                "The answer is B, which is dog",
                "[ANSWER] B, i.e. dog",
                "[ANSWER] B, as it is a dog",
                "[ANSWER] B, that is, the dog.",
            )
        ),
        ("[ANSWER] B, as it is a cat", U, 1),
        ("[ANSWER] B, because the dog is far away", U, 1),
    ],
    "end tokens and maths": [
        *(
            (f"[ANSWER] {said}", U, 1)
            for said in (
                "B<|im_end|>",
                "(B)<|endoftext|>",
                "B<eos>",
                "B<end_of_turn>",
                "cat[/INST]",
                "$B$",
                "\\(B\\)",
                "$\\text{B}$",
                "<u>B</u>",
                "{'answer': 'B'}",
                "B\\nExplanation: dog",
            )
        ),
    ],
    "choices that are letters, under their labels": [
        *(
            (form.format(label="ABCD"[place], text=text), choices, place)
            for choices in (
                ("C", "F", "G7", "Am"),
                ("T", "F"),
                ("I", "II", "III", "IV"),
                ("D", "C", "B", "A"),
                ("Bb", "C", "F"),
            )
            for place, text in enumerate(choices)
            for form in (
                "[ANSWER] ({label}) {text}",
                "[ANSWER] {text}",
                "[ANSWER] {label}. {text}",
                "The answer is ({label}) {text}.",
            )
        ),
        ("[ANSWER] (B)", ("C", "F", "G7", "Am"), 1),
        ("The chord is D.", ("C", "F", "G7", "Am"), None),
        ("[ANSWER] (B) C", ("C", "F", "G7", "Am"), None),
    ],
    "to the letter": [
        *(
            (form.format(label="AB"[place], text=text), choices, place)
            for choices in (
                ("1.0", "1"),
                ("dog", "Dog."),
                ("x", "X"),
                ("hi there", "hi, there"),
                ("The Who", "Who"),
                ("a!", "a?"),
                ("5×", "5÷"),
            )
            for place, text in enumerate(choices)
            for form in ("[ANSWER] {text}", "[ANSWER] ({label}) {text}", "{text}")
        ),
        ("dog", ("dog", "dog"), None),
        ("[ANSWER] A. dog", ("cat", "dog"), None),
    ],
    "shares and suppositions": [
        ("[ANSWER] cat, 60%; dog, 40%", U, None),
        ("[ANSWER] cat: 0%", U, None),
        ("[ANSWER] cat, 90% sure", U, 1),
        ("[ANSWER] If it had meowed, cat", U, None),
        ("[ANSWER] If I had to choose, cat", U, 1),
        ("[ANSWER] I pass on cat", U, None),
        ("[ANSWER] declined: cat", U, None),
        ("[ANSWER] dog, no: cat", U, None),
        ("[ANSWER] B/dog", U, None),
        ("[ANSWER] A B", U, None),
        ("No.1 is loud", YES, None),
    ],
    "signs and pictures": [
        *(
            (f"[ANSWER] {text}", choices, place)
            for choices in (("<100 Hz", ">100 Hz"), ("< 5 s", "> 5 s"), ("≤5", "≥5"), ("😀", "😢"))
            for place, text in enumerate(choices)
        ),
        ("[ANSWER] >100 Hz", ("100 Hz", "200 Hz"), None),
        ("[ANSWER] 100 Hz", ("<100 Hz", ">100 Hz"), None),
        ("The pitch falls -> 100 Hz", ("100 Hz", "200 Hz"), 0),
    ],
    "article read as A": [
        ("The answer is a mystery.", U, None),
        ("The answer is a cat.", U, 1),
        ("[ANSWER] A cat is heard", U, 1),
        ("Answer: A dog is barking", U, 0),
        ("The answer is a car horn.", HORN, 3),
        ("The answer is A.", U, 0),
        ("The answer is A because it barks", U, 0),
    ],
    "denial first": [
        ("not B, the answer is D", U, 3),
        ("It isn't B; the answer is D.", U, 3),
        ("The answer is not A, B, or C. It is D.", U, 3),
        ("Neither dog nor cat; the answer is bird.", U, 2),
        ("Both A and B are wrong, so C.", U, 2),
        ("Not A. Not B. Not C.", U, None),
        ("The answer isn't B.", U, None),
        ("The answer is not male.", SEX, None),
        ("B is not the correct answer.", U, None),
        ("It can't be a dog because it meows; it must be a cat.", U, 1),
        ("I don't think it's a dog, I think it's a cat.", U, 1),
        ("It is not a dog. It is a cat.", U, 1),
        ("The sound is not a dog but a cat", U, 1),
        ("It's definitely not the dog.", U, None),
        ("Everything except B.", U, None),
        ("The answer is anything but A", U, None),
        ("Rather than A, the answer is B", U, 1),
    ],
    "rejected letters after the answer": [
        ("The answer is D. A, B and C are wrong.", U, 3),
        ("The answer is D (not A, B or C).", U, 3),
        ("The answer is D because A, B, and C are incorrect.", U, 3),
        ("[ANSWER] D\nRejected: A, B, C", U, 3),
        ("The answer is B, not A.", U, 1),
        ("The answer is B (cat), not A (dog).", U, 1),
        ("I'd go with cat rather than dog.", U, 1),
        ("<answer>C</answer> The others (A, B, D) are wrong.", U, 2),
        ("[ANSWER] dog, not cat", U, 0),
        ("The speaker's voice is male, not female.", SEX, 0),
    ],
    "one choice inside another": [
        ("female", SEX, 1),
        ("[ANSWER] female", SEX, 1),
        ("The speaker is female.", SEX, 1),
        ("car", HORN, 2),
        ("[ANSWER] car horn", HORN, 3),
        ("The answer is car horn", HORN, 3),
        ("hotdog", U, None),
        ("The answer is caterpillar.", U, None),
        ("The answer is train", ("rain", "raining", "train"), 2),
        ("15 seconds", ("5 seconds", "15 seconds"), 1),
        ("C#", NOTES, 1),
        ("C", NOTES, 0),
        ("The chord is C#:maj/1.", ("C:maj/1", "C#:maj/1"), 1),
        ("The answer is between male and female", SEX, None),
    ],
    "single letters and numbers as choices": [
        ("A", ("B", "A"), 1),
        ("[ANSWER] B", ("B", "A"), 0),
        ("The answer is A", ("B", "A"), 1),
        ("E", ("G", "D", "E", "C"), 2),
        ("14", NUMBERS, 1),
        ("The answer is 4.", NUMBERS, 0),
        ("It is in 4/4 time", ("4", "3"), None),
        ("4/4", ("3/4", "4/4", "4"), 1),
        ("Option 2", NUMBERS, None),
        ("3", WORDS, 1),
        ("The answer is 4 (four).", WORDS, 2),
        ("at least two", WORDS, None),
        ("[ANSWER] 2.0", WORDS, 0),
        ("-3", ("3", "-3"), 1),
        ("The answer is 1,000.", ("1000", "100"), 0),
        ("94 beats per minute", ("94.0 beats per minute", "9.4 beats per minute"), 0),
        ("50%", ("5%", "50%"), 1),
        ("The answer is A minor", KEYS, 2),
        ("The answer is B minor", KEYS, None),
        ("A:7/1", ("E:7/1", "A:7/1"), 1),
        ("The chord is G:7/1", ("E:7/1", "A:7/1"), None),
        ("The chord is A:7/1", ("E:7/1", "A:7/1"), 1),
        ("The answer is A", KEYS, 0),
        ("Vitamin B", ("Vitamin A", "Vitamin B"), 1),
    ],
    "duplicated and empty choices": [
        ("four", ("one", "six", "four", "four"), None),
        ("[ANSWER] four", ("one", "six", "four", "four"), None),
        ("C", ("one", "six", "four", "four"), 2),
        ("(C) four", ("one", "six", "four", "four"), 2),
        ("dog.", ("dog", "Dog!", "cat"), None),
        ("B", ("dog", "", "cat"), None),
        ("cat", ("dog", "", "cat"), 2),
    ],
    "letters beyond D": [
        ("E", U, None),
        ("[ANSWER] E", ("dog", "cat", "bird", "rain", "snow"), 4),
        ("The answer is F.", ("dog", "cat", "bird", "rain", "snow"), None),
        (
            "(J)",
            (
                "thing a",
                "thing b",
                "thing c",
                "thing d",
                "thing e",
                "thing f",
                "thing g",
                "thing h",
                "thing i",
                "thing j",
            ),
            9,
        ),
    ],
    "several letters": [
        ("A and B", U, None),
        ("B, C", U, None),
        ("[ANSWER] B/C", U, None),
        ("either A or C", U, None),
        ("The answer is either A or C.", U, None),
        ("A or B? I think B", U, 1),
        ("[ANSWER] dog or cat", U, None),
        ("It could be B or C. The final answer is C.", U, 2),
        ("Male/Female", SEX, None),
        ("the answer is dog or wolf", U, None),
        ("A) dog\nB) cat\nC) bird\nD) rain", U, None),
        ('{"answer": ["A", "B"]}', U, None),
    ],
    "tag and body": [
        ("[REASONING] so the answer is A [ANSWER] B", U, 1),
        ("[ANSWER] B [ANSWER] C", U, 2),
        ("[ANSWER] I cannot tell. [REASONING] The answer is A", U, None),
        ("the answer is dog [ANSWER]", U, 0),
        ("[ANSWER] B\n\nExplanation: A is wrong because the dog is far. C is a bird.", U, 1),
        ("[ANSWER] B\nFinal answer: C", U, None),
        ("<think>dog? answer is A</think>\nB", U, 1),
        ("[ANSWER] <your choice>", U, None),
    ],
    "punctuation on one side": [
        ("dog.", U, 0),
        ("Dog", ("dog.", "cat."), 0),
        ("[ANSWER] The dog.", ("The dog barks.", "The dog"), 1),
        ("entertaining telling", ("entertaining, telling", "miles,acted"), 0),
        ("rain_falling", ("rain falling", "car"), 0),
    ],
    "other languages": [
        ("La respuesta es C", U, 2),
        ("La respuesta no es A, es B.", U, 1),
        ("答案是B", U, 1),
        ("正确答案是C。", U, 2),
        ("答案不是A,而是B", U, 1),
        ("答案：猫。", ("狗", "猫"), 1),
        ("Antwort: B", U, 1),
        ("Die richtige Antwort lautet: Katze", ("Hund", "Katze"), 1),
        ("La bonne réponse est la D.", U, 3),
        ("A resposta correta é B", U, 1),
        ("La risposta è C", U, 2),
        ("Ответ: кошка", ("собака", "кошка"), 1),
        ("정답은 B입니다", U, 1),
        ("答えはCです", U, 2),
        ("الإجابة هي B", U, 1),
        ("我选择D。", U, 3),
    ],
    "unclosed tag": [
        ("[ANSWER B", U, 1),
        ("<answer>B", U, 1),
        ("[ANSWER: B]", U, 1),
        ("ANSWER] cat", U, 1),
    ],
    "refusal": [
        ("I cannot determine the answer.", U, None),
        ("I cannot determine which animal it is, dog or cat.", U, None),
        ("I'm sorry, but I cannot listen to audio. If it were a dog, the answer would be A.", U, None),
        ("[ANSWER] unknown", U, None),
        ("The answer is unknown. It might be a dog.", U, None),
        ("It is hard to tell, but I'd say cat.", U, 1),
        ("Without more context I cannot choose between A and B.", U, None),
    ],
    "letter and text disagree": [
        ("(A) cat", U, None),
        ("A. cat", U, None),
        ("cat (A)", U, None),
        ("[ANSWER] A) cat", U, None),
        ("dog (A)", U, 0),
        ("A. dog", U, 0),
        ("(B) dog", U, None),
        ("[ANSWER] (B) dog", U, None),
        ("[ANSWER] (B) male", SEX, None),
        ("Therefore, the source is a dog. The answer is B.", U, None),
        ("Therefore, the source is a cat. The answer is B.", U, 1),
    ],
    "options by number": [
        ("Option 2", U, 1),
        ("the second option", U, 1),
        ("The answer should be the third option.", U, 2),
        ("The second speaker is louder than the rest", U, None),
    ],
    "structured": [
        ('{"answer": "B"}', U, 1),
        ("{'answer': 'bird', 'confidence': 0.9}", U, 2),
        ('{"answer": null}', U, None),
        ("\\boxed{B}", U, 1),
        ("$\\boxed{\\text{B}}$", U, 1),
        ("The final answer is $\\boxed{C}$.", U, 2),
        ("Final Answer: **C) bird**", U, 2),
    ],
    "restated list": [
        ("A) dog B) cat C) bird D) rain. Answer: C", U, 2),
        ("Choices: A. dog\nB. cat\nC. bird\nD. rain\n\nThe sound is a meow.\n\nAnswer: B. cat", U, 1),
        ("Option A: dog. Option B: cat. I choose option B.", U, 1),
    ],
    "unusual characters": [
        ("Ｂ", U, 1),
        ("Ⓑ", U, 1),
        ("𝐁", U, 1),
        ("В", U, 1),
        ("\u202eB\u202c", U, 1),
        ("B\u200b", U, 1),
        ("🐶 B 🎉", U, 1),
        ("ｄｏｇ", U, 0),
        ("ANSWER\tB", U, 1),
        ("\ud800B\0", U, 1),
        ("\u200fcat\u200f", U, 1),
    ],
    "all and none": [
        ("all of the above", U, None),
        ("[ANSWER] all of the above", U, None),
        ("none", U, None),
        ("None of the above.", U, None),
        ("[ANSWER] None of these", U, None),
        ("All of the above", ("dog", "cat", "bird", "rain", "all of the above"), 4),
        ("None of the above", ("dog", "cat", "bird", "rain", "none of the above"), 4),
        ("[ANSWER] none of the speakers", WHO, 3),
        ("[ANSWER] None", WHO, None),
        ("The answer is no.", YES, 1),
        ("No, I don't hear it.", YES, 1),
    ],
    "opinions, questions and stories": [
        ("I think the dog is far away.", U, None),
        ("I think it's B", U, 1),
        ("I believe there is a dog in the background but the main sound is rain.", U, None),
        ("[ANSWER] Unlike a dog, this is a cat", U, 1),
        ("The answer: dog? No: cat.", U, None),
        ("This answer is based on the dog barking.", U, None),
        ("The speaker says 'the answer is dog'. So the answer is cat.", U, 1),
        ("I would rule out dog and cat. The bird is also unlikely. So the answer is rain.", U, 3),
        ("Selected option: C", U, 2),
        ("Choose the best answer: A) dog B) cat C) bird D) rain", U, None),
    ],
    "no conclusion": [
        ("The audio has a dog and a cat. The dog is louder.", U, None),
        ("The dog barks over the rain.", U, None),
        ("I can hear a dog. There is also rain.", U, None),
        ("The sound is a cat.", U, 1),
        ("The voice sounds like a female.", SEX, 1),
        ("Is the answer A?", U, None),
        ("Therefore, the answer is vacuum cleaner.\n</answer>", ("vacuum cleaner", "piano"), 0),
    ],
    "turns to another choice": [
        ("The answer could be A, but it is more likely B", U, 1),
        ("The answer seems to be A but is actually B", U, 1),
        ("The answer may be A, though I would lean towards B", U, 1),
        ("It seems to be A but is actually B", U, None),
        ("One might say the answer is A; however, it is B", U, 1),
        ("It could be B, but I think it's C", U, 2),
        ("I think it's B, but it could be C", U, None),
        ("The answer is A, though it may be B", U, None),
        ("A or possibly B", U, None),
        ("A, or perhaps B", U, None),
        ("A (or B)", U, None),
        ("A (wait, B)", U, None),
        ("The answer is A (wait, B)", U, None),
        ("The answer is A. Or perhaps B.", U, None),
        ("[ANSWER] B\nbut maybe C", U, None),
        ("The answer is dog, or perhaps cat", U, None),
        ("A (or dog)", U, 0),
        ("The answer is A, but not B", U, 0),
        ("The answer is A, but B is wrong", U, 0),
        ("The answer is C because A or B would be louder", U, 2),
        ("The answer is dog, although rain can be heard too.", U, 0),
        ("The answer is B. But perhaps it is not.", U, None),
    ],
    "denied choice": [
        ("I do not choose B.", U, None),
        ("I don't pick the dog", U, None),
        ("I can't choose B.", U, None),
        ("I refuse to pick the dog.", U, None),
        ("I doubt that the answer is B.", U, None),
        ("I choose C. I would not choose A.", U, 2),
        ("I do not choose the dog; I choose the cat.", U, 1),
        ("I do not choose the dog. It is a bird.", U, 2),
        ("I do not choose A. C is loud.", U, None),
        ("It's not A, choose B.", U, 1),
        ("It does not bark, I choose B.", U, 1),
        ("The wrong answer is B.", U, None),
        ("Not \\boxed{A} but \\boxed{B}", U, 1),
        ("No elijo B", U, None),
        ("我不选B", U, None),
        ("A. No wait, B.", U, None),
        ("A not B", U, 0),
    ],
    "weak denial": [
        ("I doubt it is a dog", U, None),
        ("[ANSWER] I doubt it is a dog", U, None),
        ("hardly a dog", U, None),
        ("[ANSWER] hardly a dog", U, None),
        ("It is anything but a dog", U, None),
        ("[ANSWER] anything but a dog", U, None),
        ("[ANSWER] without dog", U, None),
        ("no doubt it is a dog", U, 0),
        ("Without a doubt, the answer is dog.", U, 0),
        ("nothing but a dog", U, 0),
        ("[ANSWER] dog, without rain", U, 0),
    ],
    "part of another phrase": [
        ("hot dog", U, None),
        ("[ANSWER] hot dog", U, None),
        ("[ANSWER] dog whistle", U, None),
        ("The answer is a dog whistle.", U, None),
        ("The sound is a hot dog.", U, None),
        ("The answer is dog-like", U, None),
        ("[ANSWER] A barking dog", U, 0),
        ("[ANSWER] male voice", SEX, 0),
        ("[ANSWER] bird or plane", U, None),
        ("plane or bird", U, None),
        ("[ANSWER] dog (or perhaps wolf)", U, None),
        ("I have no idea", YES, None),
        ("[ANSWER] I have no idea", YES, None),
        ("There is no dog. Yes.", ("yes", "no"), None),
        ("Yes, there is no dog", ("yes", "no"), 0),
        ("No, there is no dog", ("yes", "no"), 1),
        ("The answer is no because it is silent", ("yes", "no"), 1),
        ("The right answer is left", ("left", "right"), 0),
        ("The right answer is right", ("left", "right"), 1),
    ],
    "numbers of several words": [
        ("minus 3", ("3", "-3"), 1),
        ("The answer is minus three.", ("3", "-3"), 1),
        ("minus 3", ("3", "5"), None),
        ("one hundred", ("1", "100"), 1),
        ("one hundred", ("1", "2"), None),
        ("The answer is two hundred.", ("2", "100", "200"), 2),
        ("two hundred", ("2", "100"), None),
        ("one hundred and five", ("100", "105", "5"), 1),
        ("two thousand three", ("2000", "2003"), 1),
        ("twenty-one", ("20", "21", "1"), 1),
        ("seventy", ("17", "70"), 1),
        ("twenty-first", ("20", "21"), None),
        ("1 of 3", ("1", "3"), None),
        ("[ANSWER] 1 of 3", ("3", "4"), None),
        ("[ANSWER] two thirds", WORDS, None),
        ("two thirds", ("two thirds", "one third"), 0),
        ("1 of 3", ("1 of 3", "2 of 3"), 0),
        ("(2) cat", U, 1),
        ("(3) cat", U, None),
        ("[ANSWER] (3) cat", U, None),
    ],
    "not listed, and questions": [
        ("The correct answer is not listed, but the closest is rain.", U, None),
        ("The correct answer isn't listed. The closest option is rain.", U, None),
        ("None of the other options fit, so the answer is B", U, 1),
        ("a bird?", U, None),
        ("[ANSWER] a bird?", U, None),
        ("Who is it?", ("Who is it?", "a dog"), 0),
    ],
    "choices that fit": [
        ("Option C is correct because option A is incorrect", U, 2),
        ("Option A is not correct. Option B is correct.", U, 1),
        ("If option B is correct, then it barks.", U, None),
        ("It is option D that fits best.", U, 3),
        ("The sound matches option B.", U, 1),
        ("The sound does not match option B.", U, None),
        ("Ans. B", U, 1),
        ("A. dog\nB. cat\nC. bird\nD. rain\nThe answer is B.", U, 1),
        ("A. dog\nB. cat\nC. bird\nD. car horn\nThe answer is B.", ("dog", "cat", "bird", "car horn"), 1),
    ],
    "a condition or a way out": [
        ("B or none", U, None),
        ("Answer: B or none", U, None),
        ("Answer: cat or nothing", U, None),
        ("Answer: B, if anything", U, 1),
        ("I would pick B if it barked.", U, None),
        ("I would choose B if the dog were louder", U, None),
        ("Answer: I would choose the cat if it meowed.", U, None),
        ("Therefore, I would pick B if it barked.", U, None),
        ("I'd say the cat, but if it barked I'd say the dog.", U, None),
        ("Had it meowed, I would pick B.", U, None),
        ("I would pick the cat assuming it meows.", U, None),
        ("If I had to pick, I would choose B.", U, 1),
        ("I'd go with B, if I must choose.", U, 1),
        ("We would expect a meow if it were a cat, so the answer is A.", U, 0),
        ("The answer is B. It would be A if it barked.", U, 1),
        ("neither A or B but C", U, 2),
    ],
    "last word counts": [
        ("The answer is cat. Wait, the answer is dog.", U, 0),
        ("The answer is dog. The answer is dog.", U, 0),
        ("The answer is B... wait, no, it's C.", U, None),
        ("The answer is B. So B is my final answer. A, C and D are ruled out.", U, 1),
    ],
}


@pytest.mark.parametrize(
    ("response", "choices", "expected"), [case for cases in HABITS.values() for case in cases]
)
def test_robust_reads_or_refuses(response, choices, expected):
    found = extract_answer(response, choices)
    assert found.index == expected
    assert (found.index is None) == (found.stage is None) == (found.reason is not None)


@pytest.mark.parametrize(
    ("response", "choices", "reason"),
    [
        ("(3) cat", U, "letter_and_text_disagree"),
        ("The correct answer is not listed, but the closest is rain.", U, "none_of_the_choices"),
        ("A, or perhaps B", U, "several_choices"),
        ("Answer: B or none", U, "several_choices"),
        ("I would pick B if it barked.", U, "no_choice_named"),
        (None, U, "no_response"),
        ("", U, "empty_response"),
        ("dog", (), "no_choices"),
        ("none of the above", U, "none_of_the_choices"),
        ("I cannot determine the answer.", U, "refusal"),
        ("either A or C", U, "several_choices"),
        ("four", ("four", "four"), "duplicated_choice"),
        ("B", ("dog", ""), "empty_choice"),
        ("The answer is F.", U, "letter_out_of_range"),
        ("(B) male", SEX, "letter_and_text_disagree"),
        ("Therefore, it is a dog. The answer is B.", U, "letter_and_text_disagree"),
        ("The answer is B. Actually, it is A.", U, "statements_disagree"),
        ("What a lovely day", U, "no_choice_named"),
        ("I heard all of it.\ndog\ncat", U, "several_choices"),  # a list, not a last word
        ("Is it one of these?\n\ncat", U, "no_choice_named"),
        ("I heard it all, so it is not\n\ncat", U, "no_choice_named"),
        ("I listened to the clip.\n\ncat:", U, "no_choice_named"),  # a heading that was cut off
        (
            "Let me go through the options one by one.\n\nB. cat",
            U,
            "no_choice_named",
        ),  # a list that was cut off
        ("The possible sources are listed below.\n\nB", U, "no_choice_named"),
        ("The clip is quiet. I would rule out the following.\n\ncat", U, "no_choice_named"),
        ("Here is the worst match.\n\nB", U, "no_choice_named"),
        # What the sentence before rejects is only pointed at: it may be the line below.
        ("These are incorrect.\n\nB", U, "no_choice_named"),
        ("The pitch is low. They are all wrong.\n\ncat", U, "no_choice_named"),
        ("Those options can be eliminated.\n\nB", U, "no_choice_named"),
        ("It doesn't fit.\n\nB", U, "no_choice_named"),
        ("Let me rule these out.\n\nB", U, "no_choice_named"),
        ("So this one is false.\n\n**B**", U, "no_choice_named"),
    ],
)
def test_robust_reasons(response, choices, reason):
    assert extract_answer(response, choices) == Extraction(None, None, reason)


@pytest.mark.parametrize(
    ("response", "stage"),
    [
        ("cat", "exact"),
        ("B", "letter"),
        ("[ANSWER] cat", "tag_exact"),
        ("[ANSWER] (B)", "tag_letter"),
        ("[ANSWER] It sounds like the cat", "tag_leading"),
        ("B. Because it meows.", "leading"),
        ("So the answer is cat", "declared"),
        ("Therefore, the source must be a cat.", "concluded"),
        ("The sound is a cat.", "mention"),
        ("The sound is low, and then it rises.\n\ncat", "last_line"),
        ("First there is a dog, then a cat.\n\n**(B)**", "last_line"),
        ("The pitch glides, which rules out an engine.\n\nB", "last_line"),
        # What is rejected has a name, and it is not the line below.
        ("The others are incorrect.\n\nB", "last_line"),
        ("All other options are wrong.\n\nB", "last_line"),
        ("An engine is ruled out.\n\nB", "last_line"),
        ("These fit.\n\nB", "last_line"),
        ("It is low, and an engine would be wrong.\n\nB", "last_line"),
    ],
)
def test_robust_stages(response, stage):
    assert extract_answer(response, U) == Extraction(1, stage, None)


@pytest.mark.parametrize(
    ("response", "choices", "expected"),
    [
        ("[ANSWER] cat", U, (1, "exact")),
        ("[ANSWER] Cat.", ("Dog.", "Cat."), (1, "exact")),
        ("[ANSWER] B. cat", U, (1, "exact")),
        ("[ANSWER] (B) cat\nor (A) dog", U, (1, "exact")),
        ("[ANSWER] dog [ANSWER] cat", U, (1, "exact")),
        ("[ANSWER]\ncat", U, (1, "exact")),
        ("[ANSWER] a cat, I think", U, (1, "substring")),
        ("[ANSWER] rain or bird", U, (2, "substring")),  # the first matching *choice*
        ("[ANSWER] the female voice", SEX, (0, "substring")),  # "male" lies inside "female": as published
        ("[ANSWER] [B]", U, (1, "letter")),
        ("[ANSWER] b", U, (1, "letter")),
        ("[ANSWER] E", (*U, "snow"), (4, "letter")),
        ("[ANSWER] I think the answer is D.", U, (3, "letter_in_sentence")),
        ("I think the answer is D.", U, (3, "letter_in_sentence")),
        ("[ANSWER] A:7/1", ("E:7/1", "A:7/1"), (1, "exact")),
        ("[ANSWER] dog", ("", "dog"), (1, "exact")),
        ("[ANSWER] four", ("four", "four"), (0, "exact")),
        ("[ANSWER] >100 Hz", ("<100 Hz", ">100 Hz"), (1, "exact")),
    ],
)
def test_paper_rule(response, choices, expected):
    assert extract_answer(response, choices, rule="paper") == Extraction(*expected, None)


@pytest.mark.parametrize(
    ("response", "choices", "reason"),
    [
        ("dog", U, "no_answer_tag"),
        ("The answer is a dog", U, "no_answer_tag"),
        ("[ANSWER] E", U, "no_match"),
        ("[ANSWER] ...", ("", "dog"), "no_match"),
        ("[ANSWER]", U, "no_match"),
        ("", U, "empty_response"),
    ],
)
def test_paper_rule_leaves_unanswered(response, choices, reason):
    assert extract_answer(response, choices, rule="paper") == Extraction(None, None, reason)


def test_choices_that_bring_their_letters():
    choices = ["(A) dog", "(B) cat", "(C) bird"]
    assert extract_answer("cat", choices).index == extract_answer("(B) cat", choices).index == 1


def test_unknown_rule_is_an_error():
    with pytest.raises(ValueError, match="rule must be"):
        extract_answer("B", U, rule="lenient")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "*",
        "A ",
        "the answer is not ",
        "dog\n",
        "a,",
        "(A) ",
        "answer",
        "A or ",
        "A, but B ",
        "one hundred ",
        "minus ",
        "hot dog ",
    ],
)
def test_adversarial_repetition_ends(unit):
    for rule in ("robust", "paper"):
        found = extract_answer(unit * (60_000 // len(unit)), U, rule=rule)
        assert found.index in (None, 0)


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(range(4)),
    st.sampled_from(["{}", "[ANSWER] {}", "Therefore, the answer is {}.", "**{}**", "I choose {}."]),
)
def test_text_answers_follow_the_order_of_the_choices(order, template):
    choices = [U[place] for place in order]
    for index, choice in enumerate(choices):
        assert extract_answer(template.format(choice), choices).index == index


# Our own reading of real outputs: the index that a person sees chosen, None where none or two are. No gold is used.
# Contradictions of text and letter ("a dancer. The answer is D.", D being a singer) are None.
LABELS = {
    ("Audio-Reasoner", "71460309-0334-4324-bca0-14af01b0bf67"): 2,
    ("Audio-Reasoner", "75c7d493-b07a-4ed1-9b9a-6a15bd51a00f"): 2,
    ("Audio-Reasoner", "ce3ee541-5ccd-43d5-b9b5-d2e8b2d77dfd"): 2,
    ("Audio-Reasoner", "62b58932-80b8-4c3b-8229-cf356ad7d059"): 2,
    ("Audio-Reasoner", "6daf1dda-fdac-44fc-bcea-a8d8ae5366af"): 2,
    ("Audio-Reasoner", "5c793ad0-ee27-4cd3-b311-1509fe746962"): 2,
    ("Audio-Reasoner", "5308aac0-d2df-439d-8a3b-93e6304df954"): 2,
    ("Audio-Reasoner", "e5f158b7-e5ac-4780-8d77-e171cd1a78a4"): 2,
    ("Audio-Reasoner", "0233567b-99c2-490c-b703-133592a711a4"): 2,
    ("Audio-Reasoner", "a2684a06-6eca-4aa8-8fdf-aa8f063e5492"): 2,
    ("Audio-Reasoner", "d7a38f80-0e1b-437f-bd7f-0eddb15758b4"): 2,
    ("Audio-Reasoner", "673c08cf-b06d-45cc-ba8e-f52b5a51b857"): 2,
    ("Audio-Reasoner", "255742c0-cc69-4be5-891e-a3c796904934"): 2,
    ("Audio-Reasoner", "660ec87b-c30a-4f38-a6b6-eac2beb8589d"): 2,
    ("Audio-Reasoner", "22ceec8a-7842-42da-bf59-3a2e6d115c62"): 2,
    ("Audio-Reasoner", "c4bf1b86-65d1-403f-98bd-921ac784e4a6"): 2,
    ("Audio-Reasoner", "f792a396-f8ef-42f9-b787-f6c937b100d1"): 2,
    ("Audio-Reasoner", "96ee5028-3ade-4356-bc7d-95108ceb7035"): 2,
    ("Audio-Reasoner", "ed934345-29e0-4511-b12f-a66d160b9fd5"): 2,
    ("Audio-Reasoner", "a61044e3-60c9-4580-abf3-fb8901f18594"): 0,
    ("Audio-Reasoner", "2cebba23-f719-48c0-8b66-5aceda2e5d61"): 0,
    ("Audio-Reasoner", "65e456b9-03ce-4bbf-aa60-7fecb38507b4"): 0,
    ("Audio-Reasoner", "891072c6-3e08-407f-8918-ae70d20a295d"): 0,
    ("Audio-Reasoner", "37422f25-c839-42ca-925b-2ec508640b7a"): 0,
    ("Audio-Reasoner", "0d68dd1e-9cf7-45cc-a348-9b45c2b9370d"): 0,
    ("Audio-Reasoner", "a4acdbd3-2d5d-43aa-bdc4-38eeff01731d"): 0,
    ("Audio-Reasoner", "e086523d-bcbb-4a1e-9dc8-8ab88759af84"): 0,
    ("Audio-Reasoner", "24ce381d-626d-438a-8b86-e6f18af16480"): 0,
    ("Audio-Reasoner", "b09b362f-110a-4829-b94a-8337cd1a906b"): 0,
    ("Audio-Reasoner", "18a3b8fb-0189-4ce3-ba31-ffed6150b4c5"): 0,
    ("Audio-Reasoner", "aeafb34d-6c51-4351-8b6e-16266b698fc0"): 0,
    ("Audio-Reasoner", "3eae1726-c9b4-4a08-9c93-9d432311f3a2"): 0,
    ("Audio-Reasoner", "526bc555-71e8-4a9a-974b-c02f2421eeac"): 0,
    ("Audio-Reasoner", "27e29e2e-28d8-45e2-be0c-697af91caa48"): 0,
    ("Audio-Reasoner", "78f299b4-49f8-4d5b-8b8f-fcd417e49ba4"): 0,
    ("Audio-Reasoner", "c5a92855-f0aa-4314-a326-c7373b429666"): 0,
    ("Audio-Reasoner", "96e42e6d-6d50-448a-b007-c2bcefba1466"): 0,
    ("Audio-Reasoner", "87946358-ad0d-4254-90cc-22b703b52932"): 1,
    ("Audio-Reasoner", "c88697d9-c243-4433-8def-abebc253a941"): 1,
    ("Audio-Reasoner", "577fecee-9f3a-498d-a4d9-7609c8d66998"): 1,
    ("Audio-Reasoner", "76efecea-a59e-482d-8036-6122740a7c95"): 1,
    ("Audio-Reasoner", "08dfeb6c-fc3a-4826-b847-1f5098daef70"): 1,
    ("Audio-Reasoner", "b72a68a9-8721-4722-9bb5-ce5e512642b9"): 1,
    ("Audio-Reasoner", "26273334-9d2d-4ae0-8d7a-a5a2d1314a83"): 1,
    ("Audio-Reasoner", "08f50803-118f-4af6-a755-116ce5e37151"): 1,
    ("Audio-Reasoner", "f13fab4f-5939-41bf-be26-d26605ee063c"): 1,
    ("Audio-Reasoner", "70c271b0-0a05-4e68-929a-4d0c1c393044"): 1,
    ("Audio-Reasoner", "a0125222-5e3e-4f96-86db-8a19f6782720"): 1,
    ("Audio-Reasoner", "e52ff5d2-0f86-4634-b2f8-a182d1afab82"): 1,
    ("Audio-Reasoner", "77175ed4-db9c-4ad3-b8cc-4b328e01d485"): 1,
    ("Audio-Reasoner", "64bf6371-ba11-45b4-aad5-27f53f7eaa17"): 1,
    ("Audio-Reasoner", "e40e7037-ed54-436d-967f-26382bf2617c"): 1,
    ("Audio-Reasoner", "3fab8a5c-b9b7-48d1-b486-c06021ff7cf1"): 1,
    ("Audio-Reasoner", "289380b9-3825-466d-874e-4e72b4a9cf84"): 1,
    ("Audio-Reasoner", "8f01714c-f555-4262-9558-0b07c59a5336"): 1,
    ("Audio-Reasoner", "1fe74624-ee85-4a25-b2ae-de1a894c2aaf"): 1,
    ("Audio-Reasoner", "4ed2355d-8998-4064-8e5c-82b9ac9b1dda"): 1,
    ("Audio-Reasoner", "c6b63855-21d1-4ac6-9c9e-84a7e8065806"): 1,
    ("Audio-Reasoner", "59a98d10-a56c-4ae3-9a8d-bd16b141a70c"): 1,
    ("Audio-Reasoner", "b79edaf7-c7f4-42f6-9535-69a68a425e8f"): 1,
    ("Audio-Reasoner", "bfabf761-fb41-4efd-b25b-31fbdaded37f"): 1,
    ("Audio-Reasoner", "ff8ea71a-63e2-4a59-9f4f-f7620c2b5bb6"): 1,
    ("Audio-Reasoner", "26e2a0d7-f0c1-472c-b289-3e788154fbca"): 1,
    ("Audio-Reasoner", "cf9af588-ec47-4295-ad22-70213d122dce"): 1,
    ("Audio-Reasoner", "fc224a87-54f8-4bed-9c3b-fd2190ec7bd2"): 1,
    ("Audio-Reasoner", "d9d16d50-d499-4d21-8e23-1e14df228565"): 1,
    ("Audio-Reasoner", "760e99b1-09aa-479b-b90d-c3c581076e0d"): None,
    ("Audio-Reasoner", "16964657-d35e-426a-8c3e-6aac228a2577"): None,
    ("Audio-Reasoner", "a22ec489-5c8b-4f94-bf34-7bb1c29597f2"): None,
    ("Audio-Reasoner", "c685bfea-a7aa-4df9-963a-ba8455596a0a"): None,
    ("Audio-Reasoner", "2a5d8660-2043-4d40-87ed-9d79d4468c75"): None,
    ("Audio-Reasoner", "de1aa451-b412-4ce9-919c-18f4bf5328ed"): None,
    ("Audio-Reasoner", "a9906024-7cb6-4e81-a4e8-fd212b3b8b6c"): None,
    ("Audio-Reasoner", "96eeaa87-57e0-4d63-a9b6-c50b4bda9e55"): None,
    ("Audio-Reasoner", "09247cc2-fb6a-43e0-ab58-e0c3f80a789b"): None,
    ("Audio-Reasoner", "7585ea53-954d-4653-b081-e7c9e97d370f"): None,
    ("Audio-Reasoner", "993e180c-73d6-4399-b2b2-49cd1b26ba75"): None,
    ("Audio-Reasoner", "91eb5cf6-e889-495e-81b6-8756eb629e59"): None,
    ("Audio-Reasoner", "fe2964fb-2aad-4a54-b82d-77e2b1f161d9"): None,
    ("Audio-Reasoner", "de811e5f-e709-4285-a544-73fd863aae6f"): None,
    ("Audio-Reasoner", "5f3fc487-26a8-4bfa-8e50-2a0550a8d50d"): None,
    ("Audio-Reasoner", "33c7e8e9-5ccb-402d-9d6a-abea75cbd782"): None,
    ("Audio-Reasoner", "85ca4722-71ec-47dd-b3e2-8337d376a513"): 3,
    ("Audio-Reasoner", "51283005-d039-4332-9619-3d3f4eef4734"): 3,
    ("Audio-Reasoner", "a31e08e3-7c8f-468c-a78c-64e6b5f2bdec"): 3,
    ("Audio-Reasoner", "263be5ec-f5e7-4ad2-9f51-f35dffc049da"): 3,
    ("Audio-Reasoner", "ebb0a52f-ee20-45f7-acba-1ba42d7f2d3c"): 3,
    ("Audio-Reasoner", "64f42db7-398c-4e15-b85d-ac5cfb6b3b86"): 3,
    ("Audio-Reasoner", "cc82c7fe-bd52-474d-8942-b65b42c848ef"): 3,
    ("Audio-Reasoner", "889e087d-9d50-4fc1-8769-465cae7140b6"): 3,
    ("Audio-Reasoner", "76c2a626-7e3c-4f2f-ad20-b07cd0890302"): 3,
    ("Audio-Reasoner", "fb318755-f1cf-4846-82e4-5e4e26d81ca0"): 3,
    ("Audio-Reasoner", "999ce71c-8934-4579-b5dc-6e3b3af735ec"): 3,
    ("gpt-4o-20241120", "5c7fb9ad-e18e-4a51-af0d-e8184bdb5819"): None,
    ("gpt-4o-20241120", "873aae70-0d9d-4449-b92e-da93c8d16932"): None,
    ("gpt-4o-20241120", "0f5bcfc8-06ff-4006-b281-e362a23a409e"): None,
    ("gpt-4o-20241120", "3169f037-a4b1-4b96-b0a0-94b26af56af7"): None,
    ("gpt-4o-20241120", "0a6102a6-d94b-49e0-8577-23ea8a611f00"): None,
    ("gpt-4o-20241120", "7333dffb-368f-44cc-adb4-b4e9805164a3"): None,
    ("gpt-4o-20241120", "676a6e29-5d80-4fef-b260-6a9cdfd51dd5"): None,
    ("gpt-4o-20241120", "21a2d606-90c3-46e5-bc53-7a9d9f458c04"): None,
    ("gpt-4o-20241120", "a31e08e3-7c8f-468c-a78c-64e6b5f2bdec"): None,
    ("gpt-4o-20241120", "a174da20-50b7-4fa1-81b0-56e40f58c5ed"): None,
    ("gpt-4o-20241120", "d7a38f80-0e1b-437f-bd7f-0eddb15758b4"): None,
    ("gpt-4o-20241120", "d9d7f111-da32-47cb-baa0-fd5ba4e4bca1"): None,
    ("gpt-4o-20241120", "adc2f2fd-9b3b-4e84-a745-ede485660b1b"): None,
    ("gpt-4o-20241120", "5a9a2b3f-9e2c-462b-91fc-608d98924923"): None,
    ("gpt-4o-20241120", "b9655f21-1124-42f1-be76-76d5d04051ef"): None,
    ("gpt-4o-20241120", "71460309-0334-4324-bca0-14af01b0bf67"): None,
    ("gpt-4o-20241120", "100bcc54-c059-427a-8d70-643fe9ee99e6"): None,
    ("gpt-4o-20241120", "0de9f80e-8070-4ede-845b-b41bfc9bdbf7"): 3,
    ("gpt-4o-20241120", "4aceabc5-9605-4b35-be07-4936379f0d6a"): 1,
    ("gpt-4o-20241120", "e7413501-4cda-4e0b-a56d-6b68a31c2f2e"): 0,
    ("gpt-4o-20241120", "7d445250-bd42-4c5f-ab92-0fb5f7515b87"): 2,
    ("qwen2", "2b6096e7-a66f-451f-886b-8210e362f84b"): None,
    ("qwen2", "4c4f7cc4-c7a0-4016-aa44-687132caa2eb"): None,
    ("qwen2", "3fab8a5c-b9b7-48d1-b486-c06021ff7cf1"): None,
    ("qwen2", "bd9c094b-12fb-4432-a384-a0b10f103d42"): None,
    ("qwen2", "6a908142-3150-4d8e-9704-8c987edfb0dc"): None,
    ("qwen2", "c685bfea-a7aa-4df9-963a-ba8455596a0a"): None,
    ("qwen2", "4282785a-d7f9-46a5-9c11-bec05ae4b7c2"): None,
    ("qwen2", "dfdab4a7-d9d3-4d94-9cff-4f83d065d537"): None,
    ("qwen2", "7045c825-5b6a-490d-96c2-75969c184b87"): 2,
    ("qwen2", "f10968cd-75ec-4279-896d-c911d0e8e57f"): 2,
    ("qwen2", "8f8ce566-7bad-458b-92b6-845654636a6d"): 2,
    ("qwen2", "c12dcf7e-311c-4aa4-b27a-0088e4599d51"): 2,
    ("qwen2", "c8537a60-3135-4716-aa93-a668e912ba14"): 2,
    ("qwen2", "8e0ce1c4-444b-4848-928f-c08708c456b5"): 2,
    ("qwen2", "55d94ea8-4867-44eb-ac0a-2f08c70b960d"): 2,
    ("qwen2", "aac54520-9762-4553-9799-02b832876790"): 2,
    ("qwen2", "94588e32-db48-45b7-af24-b50f26bdc6cd"): 2,
    ("qwen2", "58987ac8-0f11-41c2-9789-3efd40631a81"): 0,
    ("qwen2", "26476a60-839f-45cb-982f-ab3c59e1bf8e"): 0,
    ("qwen2", "b0985024-68f9-483f-b929-f7aaea2c6ffa"): 0,
    ("qwen2", "aa81404a-9653-4b73-8349-156c82c6a1fb"): 0,
    ("qwen2", "4ed2355d-8998-4064-8e5c-82b9ac9b1dda"): 0,
    ("qwen2", "837396db-6926-419c-9fff-9f6bd43bf9e1"): 0,
    ("qwen2", "a5a89c0c-5c74-46b4-b947-3dfe66667310"): 0,
    ("qwen2", "c5cab053-ac0e-40a8-94d1-16c8f38e1550"): 0,
    ("qwen2", "6c12307f-99d3-498f-8af4-e0a1f8b17be6"): 0,
    ("qwen2", "9e96587b-7aad-4f9f-8dd7-3d36a9a507bf"): 0,
    ("qwen2", "92277724-8e35-48c7-a911-0781ccfc963f"): 0,
    ("qwen2", "ef3f1d9d-1686-4fe1-b2a0-692d224c1d68"): 0,
    ("qwen2", "c32d5733-93f4-4bf7-8aac-2a0d19ead44f"): 0,
    ("qwen2", "e3f7c118-7eeb-43aa-9063-1d1a2b0b0a0a"): 0,
    ("qwen2", "6f3fcd14-fc82-4942-8e0e-60a7db6963b5"): 1,
    ("qwen2", "b79edaf7-c7f4-42f6-9535-69a68a425e8f"): 1,
    ("qwen2", "cff26024-d6b3-438c-901f-7339ea7b39be"): 1,
    ("qwen2", "004fd9c5-1f2b-4c16-939b-4c75e39c84ba"): 1,
    ("qwen2", "69d6594d-b582-4f98-9f20-0662ff891b3f"): 1,
    ("qwen2", "0d8da453-e59b-42bd-a0ff-8b533d9b2849"): 1,
    ("qwen2", "70680c3b-460e-43d3-81a7-40c0bc5d7c51"): 1,
    ("qwen2", "edcfc8ec-34ee-413c-bab6-84ee88d1b6ff"): 1,
    ("qwen2", "2add33b9-993d-46f7-bd28-355999084f8d"): 1,
    ("qwen2", "20cf7678-509c-41fc-9d1c-4a1f000513ee"): 1,
    ("qwen2", "e9b8bd2f-0fc3-4a9f-b75f-9c964628d02e"): 3,
    ("qwen2", "2ca780f9-e8fd-4575-aede-8232d76899e1"): 3,
    ("r1-aqa", "59623fb5-f9db-45dc-bf1e-f72d477feaf8"): 3,
    ("r1-aqa", "4282785a-d7f9-46a5-9c11-bec05ae4b7c2"): 2,
    ("r1-aqa", "69078f1d-b8de-4e06-8a76-e704d1b7b70f"): 0,
    ("r1-aqa", "5aa2de62-b811-4337-ae42-45ea9325a445"): 0,
    ("r1-aqa", "4e1f3018-a9c8-4bef-bc6f-bcfff2a4a87b"): 0,
    ("r1-aqa", "760e99b1-09aa-479b-b90d-c3c581076e0d"): 1,
    ("r1-aqa", "e1bfadc9-ba98-4730-88d6-a4e4bea011b2"): None,
    ("r1-aqa", "94588e32-db48-45b7-af24-b50f26bdc6cd"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "3c112ca5-dfaa-4e2e-859e-86e7d8973941"): 0,
    ("qwen2-caption-with-question-gpt4o-cot", "a5a89c0c-5c74-46b4-b947-3dfe66667310"): 0,
    ("qwen2-caption-with-question-gpt4o-cot", "8cbc0f29-4cf5-41e6-83ff-abcd70fbd96d"): 0,
    ("qwen2-caption-with-question-gpt4o-cot", "d36f3c53-149e-43ff-b08e-e68dc0f4319a"): 2,
    ("qwen2-caption-with-question-gpt4o-cot", "56c7b462-6f24-4572-ba96-21731f1c3d67"): 2,
    ("qwen2-caption-with-question-gpt4o-cot", "4a03c0d5-a1b5-4591-af7c-aa61aab10fb7"): 3,
    ("qwen2-caption-with-question-gpt4o-cot", "297c62ac-c711-4408-a2ea-6a067cd5f707"): 3,
    ("qwen2-caption-with-question-gpt4o-cot", "87946358-ad0d-4254-90cc-22b703b52932"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "3a9da33b-58c0-4d7d-842a-91673bcfd368"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "33c7e8e9-5ccb-402d-9d6a-abea75cbd782"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "8d99e9aa-2034-42c9-9c23-6adbf10759a1"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "f386c957-c4f4-40c9-828f-d14ab58a25f0"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "d789c9cd-bd32-4610-9a97-f4ab83959375"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "6785ccc4-2170-414b-86ac-b01360f369ff"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "30543d55-69f5-4b07-8f48-819aac8517d8"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "1c1ba2ae-bf4d-4654-8018-0a04749206f8"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "7ec92cd7-ef93-4bcd-b12a-33eea50be116"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "04fef74e-4e4e-4917-aeef-3a04ce10495d"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "fe6e7efc-ae09-4542-a19e-026c34abf721"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "3dbc2f3f-8cf8-4ae2-b2c6-4751aa4adab2"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "b49f6233-14d5-4821-9405-ab6a255b09b5"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "ff30f0ea-5c72-4fed-b339-a0bdc7f87a2d"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "6178fc72-13b5-4966-9433-d0dc522c8094"): None,
    ("qwen2-caption-with-question-gpt4o-cot", "453dfda1-4993-4fba-992d-3ef0ec47baf4"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "c6fb4e28-4581-4dff-9bfb-46d70ca7a8b1"): 0,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "68db66bc-ba09-4ac5-bd8a-0451d252e60b"): 1,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "ae25b579-7b19-478d-99b2-f7a0a0ddc873"): 1,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "c12dcf7e-311c-4aa4-b27a-0088e4599d51"): 1,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "30bc8aca-be42-484e-bb87-d61ba2068096"): 2,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "f0e1ff2d-d002-422a-b2fd-348273d731dd"): 2,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "f90bd163-fe58-4a18-bfdb-a75728c1fce8"): 3,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "8d99e9aa-2034-42c9-9c23-6adbf10759a1"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "43bac539-b249-4ad3-b923-b100e4134ac3"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "f0912958-a520-4a8e-989f-a1d674a01b86"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "22ceec8a-7842-42da-bf59-3a2e6d115c62"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "d31affa7-10fa-4c28-81e3-185e2cae9c51"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "b09b362f-110a-4829-b94a-8337cd1a906b"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "f0920d0d-791c-4c03-9f66-cffca5128aec"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "5c7fb9ad-e18e-4a51-af0d-e8184bdb5819"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "b8bb62d9-2324-47ab-976a-9dcc29344a84"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "e3254a02-d2eb-45b1-a810-eaf6998498bc"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "93502563-c3f3-411e-826b-5e3736d703e1"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "6e4953fb-1a8b-46ef-a7c8-fee3fe3b603e"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "a4c33b76-2125-4d39-a85c-2b459dfa7cb5"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "f209c3e9-c948-4cae-a3d1-2a9dbb08c609"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "d7654cd2-4b28-49a6-8bea-42fd0df8b73e"): None,
    ("r1-aqa-5-caption-with-question-gpt4o-cot", "fb444a47-feba-4daf-b8ef-e158c9000798"): None,
}
PARAPHRASED = {
    ("Audio-Reasoner", "6c327eac-b976-4536-94cf-2f42ccc8b786"): 2,
    ("Audio-Reasoner", "c12dcf7e-311c-4aa4-b27a-0088e4599d51"): 1,
    ("qwen2", "3b495f9c-af77-4ecf-8dc1-82d919b0af2f"): 1,
    ("qwen2", "f1134a7e-fe60-429c-a87c-b705852fe26e"): 1,
    ("qwen2", "5c444d20-7095-4e30-9776-d60c5a5cbd96"): 1,
    ("qwen2", "5d55f273-0cd5-4bb0-82fc-d98b659b1f02"): 1,
    ("qwen2", "629ba877-581b-4e93-92a5-201529389159"): 0,
    ("qwen2", "de47337d-2e03-4b96-aa16-58ad51323336"): 0,
    ("qwen2-caption-with-question-gpt4o-cot", "12ac8911-0751-4ce3-a1d4-9f9879fe3cff"): 1,
}


def _rows():
    with (shared("real_outputs") / "mmau_mini.jsonl").open(encoding="utf-8") as file:
        return {(row["model"], row["id"]): row for row in map(json.loads, file)}


def test_real_outputs_agree_with_our_labels():
    rows = _rows()
    found = {key: extract_answer(rows[key]["raw_output"], rows[key]["choices"]).index for key in LABELS}
    assert {key: index for key, index in found.items() if index != LABELS[key]} == {}
    assert len(LABELS) >= 200 and len({model for model, _ in LABELS}) == 6


def test_real_paraphrases_are_refused_or_right():
    """A choice in other words ("Accordian") is a person's guess: the extractor may refuse, never name another one."""
    rows = _rows()
    for key, label in PARAPHRASED.items():
        assert extract_answer(rows[key]["raw_output"], rows[key]["choices"]).index in (None, label)


def test_real_outputs_that_equal_a_choice_are_read():
    for row in _rows().values():
        equal = [i for i, choice in enumerate(row["choices"]) if choice.strip() == row["raw_output"].strip()]
        found = extract_answer(row["raw_output"], row["choices"])
        if len(equal) == 1:
            assert found.index == equal[0]
        elif equal:
            assert found.reason == "duplicated_choice"


def test_rules_differ_on_real_outputs_only_where_the_paper_misses():
    """On outputs without tags the paper's rule finds a letter or nothing; where both find one they agree."""
    both = 0
    for row in _rows().values():
        robust = extract_answer(row["raw_output"], row["choices"]).index
        paper = extract_answer(row["raw_output"], row["choices"], rule="paper").index
        if None not in (robust, paper):
            both += 1
            assert robust == paper
    assert both > 20
