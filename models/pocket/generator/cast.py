"""The people, animals, things and places of the small world."""

from dataclasses import dataclass
from random import Random

GIRLS = ("Mia Ann Lily Zoe Ella Rosa Nora Ivy Lucy Maya Anna Sara Eva Ruby Clara Emma Grace Lina "
         "Amy Kate Jane Alice Molly Nina Sofia Tara Julia Leah").split()
BOYS = ("Tom Ben Sam Max Leo Jack Finn Noah Hugo Oscar Theo Adam Luke Ravi Omar Eli Nico Paul "
        "Tim Peter Bob Dan Henry Alex Jonas Felix Will Simon").split()
SHE_ANIMALS = ("Hazel Dot Poppy Fern Clover Willow Pepper Daisy Bella Olive Maple Honey Luna Coco "
               "Penny Plum").split()
HE_ANIMALS = ("Pip Bruno Moss Rusty Nibbles Biscuit Milo Bramble Barnaby Otto Ollie Teddy Rocky "
              "Buttons Gus Toby").split()

# animal or fairy-tale figure -> where it lives; "in" unless said otherwise
ANIMALS = {
    "fox": "a den under the hill", "rabbit": "a burrow in the meadow", "bear": "a cave in the forest",
    "mouse": "a hole in the wall", "owl": "an old oak tree", "frog": "a green pond",
    "duck": "a nest by the lake", "cat": "a cosy cottage", "dog": "a house on the farm",
    "hedgehog": "a pile of leaves", "squirrel": "a tall tree", "turtle": "a quiet pond",
    "hen": "a warm barn", "pig": "on a muddy farm", "pony": "a stable on the farm",
    "lamb": "a green field", "deer": "the deep forest", "goat": "on the side of a hill",
    "penguin": "on the snowy shore", "lion": "on the dry grassland", "elephant": "near the river",
    "monkey": "a tree full of fruit", "dragon": "a cave on the mountain", "robot": "a small workshop",
    "beaver": "a house of sticks in the river", "badger": "a home under the roots",
    "donkey": "a shed near the village", "goose": "a nest by the pond", "otter": "a home by the stream",
    "mole": "a tunnel under the garden", "bird": "a nest in the tree", "kitten": "a basket by the fire",
    "puppy": "a kennel in the garden", "panda": "a forest of bamboo", "tiger": "a warm forest",
    "horse": "a stable on the farm", "cow": "a green field", "sheep": "a field near the hill",
    "wolf": "the dark forest", "snail": "a wet garden", "seal": "on a rock by the sea",
    "crab": "a hole in the sand", "parrot": "a tall palm tree", "hamster": "a box full of straw",
    "giraffe": "on the wide grassland", "zebra": "on the dry grassland", "crow": "an old tower",
    "swan": "on the quiet lake", "bee": "a hive in the orchard", "butterfly": "a garden full of flowers",
    "unicorn": "a valley of flowers", "princess": "a castle on the hill", "prince": "a castle by the sea",
    "king": "a great castle", "queen": "a white castle", "knight": "an old castle",
    "pirate": "on a ship in the harbour", "wizard": "a tall tower", "witch": "a hut in the forest",
    "fairy": "a house made of leaves", "giant": "a cave in the mountains", "farmer": "on a farm near the village",
    "baker": "a house that smells of bread", "snowman": "a snowy garden", "mermaid": "a palace under the sea",
}
SHE_KINDS = ("princess", "queen", "witch", "fairy", "mermaid", "hen", "cow")
HE_KINDS = ("prince", "king", "wizard", "snowman")

COLOURS = "red blue green yellow white brown orange purple pink black silver golden grey".split()
THINGS = ("kite ball boat hat drum bell cup key book doll scarf lantern balloon wagon bucket blanket "
          "ring box whistle crayon basket flag coat ribbon umbrella button necklace flute spade cap "
          "bag pencil mitten feather marble stone shell puppet top mask lamp bottle sled").split()
PLACES = {  # place -> preposition used for being there
    "park": "in", "garden": "in", "beach": "at", "forest": "in", "farm": "on", "market": "at",
    "river": "by", "meadow": "in", "lake": "by", "village": "in", "hill": "on", "pond": "by",
    "playground": "in", "field": "in", "orchard": "in", "library": "in", "mill": "by", "harbour": "at",
}
SPOTS = ("under the bed", "behind the door", "in the tall grass", "under a bench", "in an old box",
         "behind a tree", "under a bush", "in the mud", "between two rocks", "inside an old boot",
         "on a low branch", "under a pile of leaves", "behind the barn", "next to the well",
         "near the gate", "in a flower pot", "under the stairs", "behind the shed", "on the bridge",
         "inside a hollow log", "by the fence", "under the table")
FOODS = {  # one -> many
    "apple": "apples", "pear": "pears", "cookie": "cookies", "carrot": "carrots", "berry": "berries",
    "plum": "plums", "nut": "nuts", "egg": "eggs", "cherry": "cherries", "peach": "peaches",
    "sandwich": "sandwiches", "pancake": "pancakes", "muffin": "muffins", "biscuit": "biscuits",
    "orange": "oranges", "potato": "potatoes", "tomato": "tomatoes", "bun": "buns",
}
COUNTABLES = dict(FOODS, **{thing: thing + "s" for thing in
                            "shell stone marble button feather pencil crayon balloon ribbon book "
                            "kite ball cup hat flower star coin".split()})
TRAITS = "kind shy brave clever cheerful curious gentle quiet playful careful funny patient lively".split()
HOBBIES = ("sing", "paint", "read books", "climb trees", "dance", "look at the stars", "pick flowers",
           "splash in puddles", "tell jokes", "draw animals", "bake bread", "watch the clouds",
           "collect stones", "run fast", "play hide and seek", "swim", "make things", "whistle tunes")
HOMES = ("a small house by the river", "a little village", "a house near the forest",
         "a cottage on a hill", "a house by the sea", "a small town", "a house with a blue door",
         "on a farm near the lake", "a house next to the park", "a flat above the bakery")
RELATIVES = (("mother", "she"), ("father", "he"), ("grandmother", "she"), ("grandfather", "he"),
             ("aunt", "she"), ("uncle", "he"), ("sister", "she"), ("brother", "he"))
NUMBER_WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen "
                "fourteen fifteen sixteen seventeen eighteen nineteen twenty").split()

_ONSETS = "b d f g h j k l m n p r s t v w z br dr kr st tr fl pl sh ch th".split()
_VOWELS = "a e i o u ai ee oo".split()
_CODAS = ("", "", "", "n", "l", "r", "s", "m", "ck", "x", "t", "nd")


def a(phrase: str) -> str:
    """The phrase with its indefinite article."""
    has_vowel = phrase[0] in "aeiouAEIOU" and not phrase.startswith("uni")
    return ("an " if has_vowel else "a ") + phrase


def upper_first(text: str) -> str:
    return text[0].upper() + text[1:]


def count_of(n: int, one: str, many: str, as_word: bool = False) -> str:
    return f"{NUMBER_WORDS[n] if as_word else n} {one if n == 1 else many}"


def made_up_name(rng: Random) -> str:
    """A name outside the lists, so that the model learns to copy any name."""
    syllables = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.choice((1, 2, 2)))]
    return upper_first("".join(syllables) + rng.choice(_CODAS))


@dataclass(frozen=True)
class Character:
    name: str
    kind: str       # girl, boy, or an animal
    he: str         # he or she
    trait: str
    home: str

    @property
    def at_home(self) -> str:
        """Where the character lives, with its preposition."""
        return self.home if self.home.startswith(("on ", "near ")) else "in " + self.home

    @property
    def He(self) -> str:
        return upper_first(self.he)

    @property
    def his(self) -> str:
        return "his" if self.he == "he" else "her"

    @property
    def His(self) -> str:
        return upper_first(self.his)

    @property
    def him(self) -> str:
        return "him" if self.he == "he" else "her"

    @property
    def self_(self) -> str:
        return self.him + "self"

    @property
    def is_child(self) -> bool:
        return self.kind in ("girl", "boy")


@dataclass(frozen=True)
class Thing:
    noun: str
    colour: str

    @property
    def full(self) -> str:
        return f"{self.colour} {self.noun}"

    @property
    def a_full(self) -> str:
        return a(self.full)


def draw_character(rng: Random, taken: tuple[str, ...] = (), animal: bool | None = None) -> Character:
    """A character whose name is not in taken."""
    he = rng.choice(("he", "she"))
    if animal is None:
        animal = rng.random() < 0.45
    if animal:
        kind = rng.choice(tuple(ANIMALS))
        he = "she" if kind in SHE_KINDS else "he" if kind in HE_KINDS else he
        names, home = (HE_ANIMALS if he == "he" else SHE_ANIMALS), ANIMALS[kind]
    else:
        kind = "boy" if he == "he" else "girl"
        names, home = (BOYS if he == "he" else GIRLS), rng.choice(HOMES)
    name = made_up_name(rng) if rng.random() < 0.12 else rng.choice(names)
    while name in taken:
        name = rng.choice(names)
    return Character(name, kind, he, rng.choice(TRAITS), home)


def draw_thing(rng: Random) -> Thing:
    return Thing(rng.choice(THINGS), rng.choice(COLOURS))


def other(rng: Random, options, *taken):
    """An option that is not in taken."""
    choice = rng.choice(options)
    while choice in taken:
        choice = rng.choice(options)
    return choice
