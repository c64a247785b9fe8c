"""Small sums, counting and comparing: questions with a short and a full answer."""

from random import Random

from . import cast
from .cast import NUMBER_WORDS, count_of
from .story import Fact

MAX_NUMBER = 20


def draw_sum(rng: Random) -> tuple[int, str, int, int]:
    """left, sign, right, result; all within 0..20."""
    if rng.random() < 0.55:
        total = rng.randint(0, MAX_NUMBER)
        left = rng.randint(0, total)
        return left, "+", total - left, total
    left = rng.randint(0, MAX_NUMBER)
    right = rng.randint(0, left)
    return left, "-", right, left - right


def plain_sum(rng: Random) -> Fact:
    left, sign, right, result = draw_sum(rng)
    word = "plus" if sign == "+" else "minus"
    if rng.random() < 0.3:
        name = NUMBER_WORDS
        one, two, out = name[left], name[right], name[result]
        question = rng.choice((f"What is {one} {word} {two}?", f"How much is {one} {word} {two}?",
                               f"{cast.upper_first(one)} {word} {two}?"))
        return Fact((question,), out, f"{cast.upper_first(one)} {word} {two} is {out}.")
    question = rng.choice((
        f"What is {left} {sign} {right}?", f"What is {left} {sign} {right}?", f"{left} {sign} {right}",
        f"{left} {sign} {right} = ?",
        f"{left} {sign} {right} =", f"What is {left} {word} {right}?", f"How much is {left} {sign} {right}?",
        f"Can you tell me what {left} {sign} {right} is?",
        f"{left}{sign}{right}", f"{left}{sign}{right}=?",
        f"Please add {left} and {right}." if sign == "+" else f"Please take {right} away from {left}.",
        f"What is the sum of {left} and {right}?" if sign == "+" else f"Take {right} from {left}."))
    return Fact((question,), str(result), f"{left} {sign} {right} = {result}.")


def word_problem(rng: Random) -> Fact:
    left, sign, right, result = draw_sum(rng)
    h, f = (cast.draw_character(rng, animal=rng.random() < 0.2) for _ in range(2))
    while f.name == h.name:
        f = cast.draw_character(rng)
    one = rng.choice(tuple(cast.COUNTABLES))
    many = cast.COUNTABLES[one]
    as_word = rng.random() < 0.4
    count = lambda n: count_of(n, one, many, as_word)
    number = lambda n: NUMBER_WORDS[n] if as_word else str(n)
    if sign == "+":
        text = rng.choice((f"{h.name} has {count(left)}. {f.name} gives {h.him} {number(right)} more.",
                           f"{h.name} has {count(left)}. {h.He} finds {number(right)} more.",
                           f"{h.name} had {count(left)}. Then {h.he} got {number(right)} more from {f.name}."))
        question = f"How many {many} does {h.name} have now?"
    else:
        text = rng.choice((f"{h.name} has {count(left)}. {h.He} gives {number(right)} to {f.name}.",
                           f"{h.name} has {count(left)}. {h.He} loses {number(right)} of them.",
                           f"{h.name} had {count(left)}. Then {f.name} took {number(right)} of them."))
        question = rng.choice((f"How many {many} does {h.name} have now?", f"How many {many} are left?",
                               f"How many {many} does {h.name} have left?"))
    if rng.random() < 0.15 and sign == "+":
        text = f"{h.name} has {count(left)} and {f.name} has {count(right)}."
        question = f"How many {many} do they have together?"
        return Fact((f"{text} {question}",), number(result), f"Together they have {count(result)}.")
    ending = " left" if question.endswith("left?") else " now"
    return Fact((f"{text} {question}",), number(result),
                f"{h.name} has {count(result)}{ending}." if "are left" not in question
                else f"There {'is' if result == 1 else 'are'} {count(result)} left.")


def counting(rng: Random) -> Fact:
    first = rng.randint(0, 15)
    last = rng.randint(first + 2, min(first + 12, MAX_NUMBER))
    up = rng.random() < 0.7
    numbers = list(range(first, last + 1)) if up else list(range(last, first - 1, -1))
    if rng.random() < 0.2:
        listed = ", ".join(NUMBER_WORDS[n] for n in numbers)
        return Fact((f"Count from {NUMBER_WORDS[numbers[0]]} to {NUMBER_WORDS[numbers[-1]]}.",), None,
                    cast.upper_first(listed) + ".")
    listed = ", ".join(map(str, numbers)) + "."
    if numbers[0] == 1 and rng.random() < 0.7:
        return Fact((f"Count to {last}.", f"Can you count to {last}?", f"Please count to {last}."), None, listed)
    return Fact((f"Count from {numbers[0]} to {numbers[-1]}.", f"Please count from {numbers[0]} to {numbers[-1]}."),
                None, listed)


def comparing(rng: Random) -> Fact:
    n = rng.randint(0, MAX_NUMBER - 1)
    kind = rng.randrange(5)
    if kind == 0:
        return Fact((f"What comes after {n}?", f"Which number comes after {n}?"), str(n + 1),
                    f"{n + 1} comes after {n}.")
    if kind == 1:
        return Fact((f"What comes before {n + 1}?", f"Which number comes before {n + 1}?"), str(n),
                    f"{n} comes before {n + 1}.")
    other = cast.other(rng, range(MAX_NUMBER + 1), n)
    big, small = max(n, other), min(n, other)
    if kind == 2:
        return Fact((f"Which is more, {n} or {other}?", f"Which number is bigger, {n} or {other}?"), str(big),
                    f"{big} is more than {small}.")
    if kind == 3:
        return Fact((f"Which is less, {n} or {other}?", f"Which number is smaller, {n} or {other}?"), str(small),
                    f"{small} is less than {big}.")
    left, sign, right, result = draw_sum(rng)
    if rng.random() < 0.5:
        return Fact((f"Is {left} {sign} {right} = {result}?", f"Is it true that {left} {sign} {right} = {result}?"),
                    "Yes", f"Yes, {left} {sign} {right} = {result}.")
    wrong = cast.other(rng, range(MAX_NUMBER + 1), result)
    return Fact((f"Is {left} {sign} {right} = {wrong}?", f"Is it true that {left} {sign} {right} = {wrong}?"), "No",
                f"No, {left} {sign} {right} = {result}.")


TOO_BIG = ("That sum is too big for me. I can only do small sums up to 20.",
           "I am sorry, I can only do small sums with numbers up to 20.",
           "That is too hard for me. I know small sums up to 20.")


def too_big(rng: Random) -> Fact:
    left, right = rng.randint(21, 2000), rng.randint(2, 900)
    sign = rng.choice(("+", "-", "+", "*", "/", "x", "times"))
    if sign in "*/x" or sign == "times":
        left = rng.randint(2, 200)
        right = rng.randint(2, 50)
    question = rng.choice((f"What is {left} {sign} {right}?", f"{left} {sign} {right}",
                           f"How much is {left} {sign} {right}?"))
    answer = rng.choice(TOO_BIG) if sign in "+-" else rng.choice(
        ("I can only add and take away small numbers up to 20.", "I am sorry, I only know how to add and take away."))
    return Fact((question,), None, answer)


def any_sum(rng: Random) -> Fact:
    roll = rng.random()
    if roll < 0.52:
        return plain_sum(rng)
    if roll < 0.76:
        return word_problem(rng)
    if roll < 0.84:
        return counting(rng)
    if roll < 0.95:
        return comparing(rng)
    return too_big(rng)
