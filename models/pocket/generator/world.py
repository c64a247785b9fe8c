"""Documents of the small world: one seed, one document.

A document is a story, or a conversation in the chat template's markup. The
same seed gives the same text on every machine; stdlib only.
"""

from random import Random

from . import adventures, cast, friends, nights, small_talk, sums, things
from .story import Story

END = "<|end|>"
SHAPES = things.SHAPES + friends.SHAPES + adventures.SHAPES + nights.SHAPES


def make_story(rng: Random, short: bool) -> Story:
    hero = cast.draw_character(rng)
    friend = cast.draw_character(rng, taken=(hero.name,))
    while friend.kind == hero.kind and not hero.is_child:
        friend = cast.draw_character(rng, taken=(hero.name,))
    story = Story(rng, short, hero, friend)
    rng.choice(SHAPES)(story)
    return story


def raw_story(rng: Random) -> str:
    story = make_story(rng, rng.random() < 0.25)
    text = story.text()
    roll = rng.random()
    if roll < 0.08:
        text = f"{story.title}\n\n{text}"
    elif roll < 0.14:
        text += "\n\nThe end."
    elif roll < 0.20:
        fact = rng.choice(story.facts)
        text += f"\n\nQuestion: {rng.choice(fact.questions)}\nAnswer: {fact.sentence}"
    return text + END


def raw_sums(rng: Random) -> str:
    lines = []
    for _ in range(rng.randint(2, 8)):
        left, sign, right, result = sums.draw_sum(rng)
        lines.append(f"{left} {sign} {right} = {result}")
    return "\n".join(lines) + END


def document(seed: int) -> str:
    """The text of one document, without the leading bos."""
    rng = Random(seed)
    roll = rng.random()
    if roll < 0.24:
        return raw_story(rng)
    if roll < 0.26:
        return raw_sums(rng)
    if roll < 0.58:
        return small_talk.story_chat(rng, make_story)
    if roll < 0.72:
        return small_talk.reading_chat(rng, make_story)
    return small_talk.small_talk(rng)


def talk_document(seed: int) -> str:
    """A short document: small talk, sums, or questions about a story that the user brings."""
    rng = Random(seed)
    roll = rng.random()
    if roll < 0.06:
        return raw_sums(rng)
    if roll < 0.22:
        return small_talk.reading_chat(rng, make_story)
    return small_talk.small_talk(rng)


def drill_document(seed: int) -> str:
    """Many short questions, each with one right answer."""
    return small_talk.drill(Random(seed), make_story)
