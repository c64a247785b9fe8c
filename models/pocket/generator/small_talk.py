"""Conversations without a story, and the mix of all conversations."""

from random import Random
from typing import Callable

from . import cast, chats, facts, sums
from .chats import Chat
from .story import Fact, Story


def _named_identity(chat: Chat) -> None:
    question, _ = facts.table_turn(chat.rng, facts.IDENTITY[:2])
    if "name" in question or "call" in question:
        chat.add(question, f"My name is {chat.name}.")
    else:
        chat.add(question, f"I am {chat.name}. I can tell short stories and do small sums.")


def identity_turn(chat: Chat) -> None:
    if chat.style == "named":
        _named_identity(chat)
    elif chat.style == "word":
        chat.add(chat.rng.choice(("Who are you?", "What is your name?")), "Pocket")
    else:
        chat.add(*facts.table_turn(chat.rng, facts.IDENTITY[:1] if chat.rng.random() < 0.3 else facts.IDENTITY))


def memory_turns(chat: Chat) -> None:
    """The user tells something and asks for it later."""
    rng = chat.rng
    name = cast.made_up_name(rng) if rng.random() < 0.3 else rng.choice(cast.GIRLS + cast.BOYS)
    thing = cast.draw_thing(rng)
    animal = rng.choice(tuple(cast.ANIMALS))
    pick = rng.randrange(3)
    if pick == 0:
        chat.add(rng.choice((f"My name is {name}.", f"I am {name}.", f"Hello, I am {name}.",
                             f"Hi! My name is {name}.")),
                 rng.choice((f"Hello, {name}! It is nice to meet you.", f"Hello, {name}! Shall I tell you a story?")))
        later = Fact(("What is my name?", "Do you know my name?", "Who am I?"), name, f"Your name is {name}.")
    elif pick == 1:
        chat.add(rng.choice((f"I have {thing.a_full}.", f"I got {thing.a_full} today.")),
                 rng.choice((f"{cast.upper_first(thing.a_full)}! How nice.", f"How nice! I like your {thing.noun}.")))
        later = Fact((f"What colour is my {thing.noun}?",), thing.colour, f"Your {thing.noun} is {thing.colour}.")
    else:
        chat.add(rng.choice((f"I have {cast.a(animal)} named {name}.", f"My {animal} is called {name}.")),
                 rng.choice((f"{name} is a lovely name for {cast.a(animal)}.", f"Say hello to {name} from me!")))
        later = Fact((f"What is the name of my {animal}?", f"What is my {animal} called?"), name,
                     f"Your {animal} is called {name}.")
    if rng.random() < 0.4:
        chat.answer(sums.any_sum(rng))
    chat.answer(later)


def word_turn(chat: Chat) -> None:
    """A turn that one word can answer."""
    if chat.rng.random() < 0.1:
        return identity_turn(chat)
    draw = sums.any_sum if chat.rng.random() < 0.5 else facts.knowledge
    fact = draw(chat.rng)
    while not fact.word:
        fact = draw(chat.rng)
    chat.answer(fact)


def talk_turn(chat: Chat) -> None:
    """One turn that needs no story."""
    rng = chat.rng
    if chat.style == "word":
        return word_turn(chat)
    roll = rng.random()
    if roll < 0.40:
        chat.answer(sums.any_sum(rng))
    elif roll < 0.62:
        chat.answer(facts.knowledge(rng))
    elif roll < 0.72:
        identity_turn(chat)
    elif roll < 0.80:
        chat.add(*facts.out_of_world(rng))
    elif roll < 0.83:
        chat.add(rng.choice(facts.JOKE_REQUESTS), rng.choice(facts.JOKES))
    elif roll < 0.90:
        chat.add(*chats.small_json(rng))
    else:
        chat.add(*facts.table_turn(rng, facts.GREETINGS[2:]))


def greet(chat: Chat) -> None:
    rng = chat.rng
    if chat.style == "word":
        chat.add(facts.table_turn(rng, facts.GREETINGS[:1])[0], "Hello!")
    elif chat.style == "teller":
        question, _ = facts.table_turn(rng, facts.GREETINGS[:3])
        chat.add(question,
                 rng.choice(("Hello! Would you like to hear a story?", "Hello! Who should the story be about?")))
    elif chat.style == "named":
        question, _ = facts.table_turn(rng, facts.GREETINGS[:1])
        chat.add(question.replace(", Pocket", "").replace(" Pocket", ""),
                 f"Hello! I am {chat.name}. How can I help you?")
    else:
        chat.add(*facts.table_turn(rng, facts.GREETINGS[:4]))


def part(chat: Chat) -> None:
    rng = chat.rng
    if chat.style == "word":
        return chat.add(facts.table_turn(rng, facts.GOODBYES[:1])[0], "Goodbye!")
    if rng.random() < 0.7:
        chat.add(*facts.table_turn(rng, facts.THANKS[:1] if chat.style == "json" else facts.THANKS))
    if rng.random() < 0.4:
        chat.add(*facts.table_turn(rng, facts.GOODBYES))


def small_talk(rng: Random) -> str:
    chat = Chat(rng)
    if rng.random() < 0.3:
        greet(chat)
    if rng.random() < 0.15 and chat.style != "word":
        memory_turns(chat)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        talk_turn(chat)
    if rng.random() < 0.2:
        part(chat)
    return chat.text()


def story_chat(rng: Random, make_story: Callable[[Random, bool], Story]) -> str:
    chat = Chat(rng)
    if chat.style in ("word", "json"):
        return reading_chat(rng, make_story, chat)
    if rng.random() < 0.12:
        greet(chat)
    story = make_story(rng, chat.style == "short" or rng.random() < 0.35)
    chats.tell(chat, story)
    if rng.random() < 0.75:
        chats.ask_about(chat, story, rng.randint(1, 5))
    if rng.random() < 0.10:
        chat.add(*chats.json_turn(rng, story))
    roll = rng.random()
    if roll < 0.15:
        chats.tell(chat, make_story(rng, True), first=False)
    elif roll < 0.3:
        talk_turn(chat)
    if rng.random() < 0.25:
        part(chat)
    return chat.text()


def reading_chat(rng: Random, make_story: Callable[[Random, bool], Story], chat: Chat | None = None) -> str:
    """The user brings the story and asks about it."""
    chat = chat or Chat(rng)
    story = make_story(rng, rng.random() < 0.6)
    text = story.text().replace("\n\n", " ") if rng.random() < 0.5 else story.text()
    answerable = [fact for fact in story.facts if fact.word or chat.style != "word"]
    chosen = rng.sample(answerable, min(rng.randint(1, 5), len(answerable)))
    chat.answer(chosen[0], prefix=rng.choice(chats.READ_REQUESTS).format(x=text))
    for fact in chosen[1:]:
        chat.answer(fact)
    roll = rng.random()
    if roll < 0.12:
        chat.answer(chats.unknown_fact(rng, story))
    elif roll < 0.35 and chat.style != "word":
        chat.answer(chats.about_whole(rng, story))
    if rng.random() < (0.5 if chat.style == "json" else 0.12):
        chat.add(*chats.json_turn(rng, story))
    return chat.text()


def drill(rng: Random, make_story: Callable[[Random, bool], Story]) -> str:
    """Many short questions in one conversation: sums, JSON, or facts of a short story."""
    chat = Chat(rng)
    roll = rng.random()
    if roll < 0.35 and chat.style != "word":
        story = make_story(rng, True)
        chats.tell(chat, story)
        chats.ask_about(chat, story, 6)
        return chat.text()
    for _ in range(rng.randint(5, 9)):
        if roll < 0.5 and chat.style != "word":
            chat.add(*chats.small_json(rng))
        elif roll < 0.6 and chat.style != "word":
            memory_turns(chat)
        else:
            chat.answer(sums.any_sum(rng))
    return chat.text()
