"""A story under construction: its sentences and the facts that it makes true."""

from dataclasses import dataclass, field
from random import Random

from . import cast
from .cast import Character, Thing


@dataclass(frozen=True)
class Fact:
    questions: tuple[str, ...]
    word: str | None        # the shortest answer; None when one word cannot say it
    sentence: str           # the answer as a full sentence


@dataclass
class Story:
    """Collects what is told, so that every question has one answer.

    `say` adds one of several phrasings; `also` does so only in long stories
    and not always; `ask` records a fact that the text has stated.
    """

    rng: Random
    short: bool
    hero: Character
    friend: Character
    title: str = ""
    moral: str = ""
    ending: str = ""
    paragraphs: list[list[str]] = field(default_factory=lambda: [[]])
    facts: list[Fact] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    record: dict[str, str] = field(default_factory=dict)
    strangers: tuple[str, ...] = ()

    def one(self, *options: str) -> str:
        return options[int(self.rng.random() * len(options))]

    def say(self, *options: str) -> None:
        self.paragraphs[-1].append(self.one(*options))

    def also(self, *options: str) -> None:
        if not self.short and self.rng.random() < 0.6:
            self.say(*options)

    def new_paragraph(self) -> None:
        if self.paragraphs[-1] and not self.short:
            self.paragraphs.append([])

    def ask(self, word: str | None, sentence: str, *questions: str) -> None:
        self.facts.append(Fact(questions, word, sentence))

    def ask_colour(self, thing: Thing) -> None:
        sentence = f"The {thing.noun} was {thing.colour}."
        self.ask(thing.colour, sentence, f"What colour was the {thing.noun}?",
                 f"Which colour did the {thing.noun} have?", f"What was the colour of the {thing.noun}?")
        wrong = cast.other(self.rng, cast.COLOURS, thing.colour)
        self.ask("No", f"No, the {thing.noun} was {thing.colour}.", f"Was the {thing.noun} {wrong}?")
        self.ask("Yes", f"Yes, the {thing.noun} was {thing.colour}.", f"Was the {thing.noun} {thing.colour}?")
        self.record["object"] = thing.noun
        self.record["colour"] = thing.colour

    def ask_feeling(self, who: Character, feeling: str, when: str, why: str) -> None:
        """why completes "because ..."; when completes "when ..."."""
        sentence = f"{who.name} felt {feeling}."
        self.ask(feeling, sentence, f"How did {who.name} feel when {when}?")
        self.ask(None, f"{who.name} was {feeling} because {why}.", f"Why was {who.name} {feeling}?",
                 f"Why did {who.name} feel {feeling}?")

    def open(self, also_home: bool = True) -> None:
        """Introduces the hero."""
        h = self.hero
        size = self.one("little", "small", "young", h.trait, h.trait, "little")
        who = cast.a(f"{size} {h.kind}")
        self.say(f"Once upon a time, there was {who} named {h.name}.",
                 f"Once upon a time, there was {who} called {h.name}.",
                 f"Once upon a time, {who} named {h.name} lived {h.at_home}.",
                 f"There once was {who} named {h.name}.",
                 f"{h.name} was {who}.",
                 f"Once there was {who} whose name was {h.name}.",
                 f"{cast.upper_first(h.at_home)} lived {who} named {h.name}.")
        told_home = h.home[1:] in self.paragraphs[-1][-1]
        if also_home and not told_home and not self.short and self.rng.random() < 0.4:
            self.say(f"{h.He} lived {h.at_home}.", f"{h.name} lived {h.at_home}.")
            told_home = True
        if told_home:
            self.ask(None, f"{h.name} lived {h.at_home}.", f"Where did {h.name} live?",
                     f"Where was the home of {h.name}?")
        if not self.short and self.rng.random() < 0.4:
            hobby = self.rng.choice(cast.HOBBIES)
            self.say(f"{h.He} liked to {hobby}.", f"{h.He} loved to {hobby}.",
                     f"Every day, {h.he} liked to {hobby}.")
            self.ask(None, f"{h.name} liked to {hobby}.", f"What did {h.name} like to do?",
                     f"What did {h.name} love to do?")
        self.ask(h.kind, f"{h.name} was {cast.a(h.kind)}.", f"What was {h.name}?",
                 f"Who was {h.name}?", f"What kind of character was {h.name}?")
        self.record.update(hero=h.name, kind=h.kind)

    def meet(self, who: Character) -> str:
        """The first mention of a second character, as a noun phrase."""
        if who.is_child:
            return self.one(f"{self.hero.his} friend {who.name}", f"a {who.kind} named {who.name}")
        return self.one(f"{cast.a(who.kind)} named {who.name}", f"{self.hero.his} friend {who.name} the {who.kind}",
                        f"{who.name} the {who.kind}")

    def close(self, ending: str, moral: str, *last: str) -> None:
        """Ends the story; the ending is the answer to how it ended."""
        self.ending, self.moral = ending, moral
        self.say(*last)
        if self.rng.random() < (0.3 if self.short else 0.65):
            h = self.hero
            lead = self.one(f"{h.name} learned that", f"From that day on, {h.name} knew that",
                            f"That day, {h.name} learned that", "And so they learned that")
            self.say(f"{lead} {moral}.")
            self.ask(None, f"{h.name} learned that {moral}.", f"What did {h.name} learn?")
        self.ask(None, cast.upper_first(f"{moral}."), "What is the moral of the story?",
                 "What can we learn from the story?", "What does the story teach us?")
        self.ask(None, ending, "How did the story end?", "What happened at the end?", "How does it end?")

    def text(self) -> str:
        return "\n\n".join(" ".join(p) for p in self.paragraphs if p)
