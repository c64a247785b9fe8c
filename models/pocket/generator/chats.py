"""Conversations: system, user and assistant turns about the small world."""

import json
from random import Random

from . import cast, facts, sums
from .cast import a
from .story import Fact, Story

PLAIN_SYSTEMS = ("You are a helpful assistant.", "You are Pocket, a small and friendly helper.",
                 "You are a helpful storyteller.", "You are a friendly assistant.",
                 "Be kind and helpful.", "You tell stories and answer questions.", "You are Pocket.")
ONE_WORD = ("Answer in one word.", "Use only one word.", "You answer in one word.", "Answer with one word only.",
            "You are a helpful assistant. Answer in one word.", "Be very brief. Answer in one word.")
SENTENCE = ("Answer with a full sentence.", "Answer in full sentences.",
            "You are a helpful assistant. Answer with a full sentence.", "Always answer with a whole sentence.")
JSON_ONLY = ("Answer in JSON.", "You answer in JSON.", "Always answer with JSON.", "Answer with a JSON object.")
VERY_SHORT = ("Tell very short stories.", "Keep your stories short.", "You tell short stories.", "Be brief.")
GOOD_NIGHT = ("Say good night at the end.", "End every answer with good night.", "Always say good night at the end.")
STORYTELLER = ("You are a storyteller.", "You love to tell stories.", "You are a helpful storyteller.")


class Chat:
    """A conversation under construction; system decides how turns are answered."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.turns: list[tuple[str, str]] = []
        self.style = "plain"
        roll = rng.random()
        if roll < 0.52:
            return
        for limit, style, systems in ((0.64, "plain", PLAIN_SYSTEMS), (0.76, "word", ONE_WORD),
                                      (0.83, "sentence", SENTENCE), (0.88, "json", JSON_ONLY),
                                      (0.92, "short", VERY_SHORT), (0.95, "night", GOOD_NIGHT),
                                      (0.97, "teller", STORYTELLER)):
            if roll < limit:
                self.style = style
                self.turns.append(("system", rng.choice(systems)))
                return
        self.style = "named"
        self.name = cast.made_up_name(rng) if rng.random() < 0.4 else rng.choice(cast.GIRLS + cast.BOYS)
        self.turns.append(("system",
                           rng.choice((f"Your name is {self.name}.", f"You are {self.name}.",
                                       f"You are {self.name}, a friendly helper.", f"You are called {self.name}."))))

    def add(self, question: str, answer: str) -> None:
        if len(question) < 80 and self.rng.random() < 0.08:
            question = question[0].lower() + question[1:].rstrip("?.!")
        if self.style == "night":
            answer += " Good night!"
        if self.style == "json" and answer[0] not in "{[":
            answer = json.dumps({"answer": answer})
        self.turns += [("user", question), ("assistant", answer)]

    def answer(self, fact: Fact, prefix: str = "") -> None:
        """Asks the fact's question and answers in the style of the system turn."""
        question = prefix + self.rng.choice(fact.questions)
        style = self.style
        if style in ("plain", "short", "teller", "named") and fact.word and self.rng.random() < 0.06:
            question += self.rng.choice((" Answer in one word.", " Use one word.", " One word, please."))
            style = "word"
        if style == "word" and fact.word:
            self.add(question, cast.upper_first(fact.word))
        elif style == "json":
            value = fact.word if fact.word else fact.sentence
            self.add(question, json.dumps({"answer": int(value) if value.isdigit() else value}))
        else:
            self.add(question, fact.sentence)

    def text(self) -> str:
        return "\n".join(f"<|{role}|>\n{content}<|end|>" for role, content in self.turns)


STORY_REQUESTS = ("Tell me a story about {x}.", "Tell me a story about {x}.", "Tell me a short story about {x}.",
                  "Can you tell me a story about {x}?", "Write a story about {x}.",
                  "Write a short story about {x}.", "I want to hear a story about {x}.",
                  "Please tell me a story about {x}.", "A story about {x}, please.", "Make up a story about {x}.",
                  "tell me a story about {x}", "Do you know a story about {x}?", "Tell a story about {x}.",
                  "Could you write a story about {x}?", "story about {x}", "About {x}, please.",
                  "Let it be about {x}.")
OPEN_REQUESTS = ("Tell me a story.", "Tell me a short story.", "Can you tell me a story?", "I want to hear a story.",
                 "A story, please.", "Tell me a bedtime story.", "tell me a story",
                 "Please tell me a story.", "Yes, please tell me a story.", "Write a story.", "Yes, please.",
                 "Do you know a story?")
MORE_REQUESTS = ("Tell me another story.", "Another one, please.", "Tell me another one.", "One more story, please.",
                 "Another story!", "Yes, tell me another one.")
BEGINNINGS = ("Continue this story: {x}", "How does this story go on? {x}", "Please continue: {x}", "{x}", "{x}",
              "{x}", "Go on with this story. {x}")


def request_for(rng: Random, story: Story) -> str:
    topic = rng.choice(story.topics)
    h = story.hero
    roll = rng.random()
    if roll < 0.2:
        topic = rng.choice((f"{a(h.kind)} named {h.name}", f"{a(h.kind)}", f"{a(h.kind)}", h.name,
                            f"{a(h.kind)} called {h.name}",
                            f"{a(h.trait)} {h.kind}" if h.trait in story.text() else a(h.kind)))
    text = rng.choice(STORY_REQUESTS).format(x=topic)
    return text.replace(" a story", " a short story", 1) if story.short and rng.random() < 0.5 else text


def tell(chat: Chat, story: Story, first: bool = True) -> None:
    rng = chat.rng
    roll = rng.random()
    text = story.text()
    if roll < 0.62:
        chat.add(request_for(rng, story), text)
    elif roll < 0.72:
        chat.add(rng.choice(OPEN_REQUESTS if first else MORE_REQUESTS), text)
    elif roll < 0.82 and text.startswith("Once upon a time"):
        chat.add(rng.choice(("Once upon a time", "Once upon a time", "Once upon a time...", "once upon a time",
                             "Once upon a time,")), text)
    else:
        sentences = story.paragraphs[0]
        n_given = min(rng.randint(1, 3), len(sentences) - 1)
        given = " ".join(sentences[:n_given])
        rest = "\n\n".join([" ".join(sentences[n_given:])] + [" ".join(p) for p in story.paragraphs[1:] if p])
        chat.add(rng.choice(BEGINNINGS).format(x=given), rest)


READ_REQUESTS = ("{x}\n\n", "Read this story. {x}\n\n", "Story: {x}\n\nQuestion: ", "Here is a story: {x}\n\n",
                 "{x} ")


def ask_about(chat: Chat, story: Story, n_questions: int) -> None:
    rng = chat.rng
    for fact in rng.sample(story.facts, min(n_questions, len(story.facts))):
        chat.answer(fact)
    if rng.random() < 0.1:
        chat.answer(unknown_fact(rng, story))
    elif rng.random() < 0.25:
        chat.answer(about_whole(rng, story))


UNKNOWN = (("What did {n} eat for breakfast?",), ("How old is the mother of {n}?",),
           ("What colour were the shoes of {n}?",), ("How tall was {n}?",), ("What did {n} dream about?",),
           ("What was the name of the teacher?",), ("Which day of the week was it?",),
           ("What is the phone number of {n}?",))


def unknown_fact(rng: Random, story: Story) -> Fact:
    question = rng.choice(UNKNOWN)[0].format(n=story.hero.name)
    return Fact((question,), "Unknown",
                rng.choice(("The story does not say.", "I do not know. The story does not say.")))


def about_whole(rng: Random, story: Story) -> Fact:
    h, f = story.hero, story.friend
    pick = rng.randrange(4)
    if pick == 0:
        return Fact(("Who was in the story?", "Who was the story about?", "Name the characters.",
                     "Who are the characters?"), None, f"The story was about {h.name} and {f.name}.")
    if pick == 1:
        return Fact(("Give the story a title.", "What is the title of the story?", "What would be a good title?",
                     "Make up a title."), None, story.title)
    if pick == 2:
        return Fact(("What was the name of the friend?", "Who was the friend?", f"Who was the friend of {h.name}?"),
                    f.name, f"The friend was {f.name}.")
    return Fact(("Who is the hero of the story?", "Who was the main character?", "What was the name of the hero?"),
                h.name, f"The hero was {h.name}.")


def json_turn(rng: Random, story: Story) -> tuple[str, str]:
    """Facts of the story as a JSON object."""
    record = {"hero": story.hero.name, "friend": story.friend.name,
              "animal" if not story.hero.is_child else "kind": story.hero.kind}
    record |= {k: v for k, v in story.record.items() if k in ("object", "colour", "food", "plant")}
    keys = rng.sample(tuple(record), rng.randint(1, min(3, len(record))))
    listed = ", ".join(keys[:-1]) + " and " + keys[-1] if len(keys) > 1 else keys[0]
    question = rng.choice(("Give me the {x} as JSON.", "Give me the {x} of the story as JSON.",
                           "Write the {x} as JSON.", "Answer in JSON: {x}.", "{x} as JSON, please."))
    return cast.upper_first(question.format(x=listed)), json.dumps({k: record[k] for k in keys})


def small_json(rng: Random) -> tuple[str, str]:
    """A JSON answer about one or two sentences."""
    pick = rng.randrange(6)
    name, he = (rng.choice(cast.GIRLS), "She") if rng.random() < 0.5 else (rng.choice(cast.BOYS), "He")
    if rng.random() < 0.2:
        name = cast.made_up_name(rng)
    animal, colour = rng.choice(tuple(cast.ANIMALS)), rng.choice(cast.COLOURS)
    if pick == 0:
        text = rng.choice((f"The {animal} is {colour}.", f"There is {a(colour)} {animal} in the garden.",
                           f"I see {a(colour)} {animal}.",
                           f"A {colour} {animal} sat under a tree." if colour != "orange"
                           else f"An orange {animal} sat under a tree."))
        return f"{text} {rng.choice(('Give me the animal and its colour as JSON.', 'Give the animal and the colour as JSON.', 'Write the animal and its colour as JSON.'))}", json.dumps({"animal": animal, "colour": colour})
    if pick == 1:
        age = rng.randint(3, 12)
        text = rng.choice((f"{name} is {age} years old.", f"My name is {name} and I am {age} years old.",
                           f"This is {name}. {he} is {age}."))
        return f"{text} Give me the name and the age as JSON.", json.dumps({"name": name, "age": age})
    if pick == 2:
        thing = cast.draw_thing(rng)
        return f"{name} has {thing.a_full}. Give me the name, the object and the colour as JSON.", json.dumps({"name": name, "object": thing.noun, "colour": thing.colour})
    if pick == 3:
        left, sign, right, result = sums.draw_sum(rng)
        return f"What is {left} {sign} {right}? {rng.choice(('Answer in JSON.', 'Answer as JSON.'))}", json.dumps({"answer": result})
    if pick == 4:
        kind = rng.choice(("animal", "fruit", "colour", "toy"))
        n = rng.randint(2, 4)
        return f"Give me {cast.NUMBER_WORDS[n]} {kind}s as JSON.", json.dumps(rng.sample(facts._KINDS[kind], n))
    return rng.choice(("Give me an animal and its colour as JSON.", "Make up an animal as JSON.",
                       "Give me the animal and its colour as JSON.")), json.dumps({"animal": animal,
                               "colour": colour})
