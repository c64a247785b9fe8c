"""What the small world knows besides its stories, and what it does not know."""

from random import Random

from . import cast
from .cast import a
from .story import Fact

_SAYS = {"cow": "moo", "dog": "woof", "cat": "meow", "duck": "quack", "sheep": "baa", "pig": "oink", "frog": "croak",
         "owl": "hoo", "hen": "cluck",
         "lion": "roar", "mouse": "squeak", "bee": "buzz", "horse": "neigh", "snake": "hiss"}
_BABIES = {"dog": "puppy", "cat": "kitten", "cow": "calf", "sheep": "lamb", "horse": "foal", "hen": "chick",
           "bear": "cub", "duck": "duckling",
           "goat": "kid", "frog": "tadpole", "pig": "piglet", "lion": "cub"}
_OPPOSITES = {"hot": "cold", "big": "small", "happy": "sad", "day": "night", "up": "down", "fast": "slow",
              "old": "young", "wet": "dry", "light": "dark",
              "loud": "quiet", "long": "short", "open": "closed", "full": "empty", "hard": "soft", "good": "bad",
              "left": "right", "first": "last",
              "high": "low", "early": "late", "black": "white", "in": "out", "yes": "no", "strong": "weak",
              "near": "far"}
_COLOURS_OF = {"the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "a carrot": "orange",
               "a strawberry": "red", "a lemon": "yellow",
               "milk": "white", "a banana": "yellow", "a leaf in summer": "green", "the night": "black",
               "a tomato": "red", "a pig": "pink", "a frog": "green",
               "a cherry": "red", "coal": "black", "the sea": "blue"}
_LEGS = {"dog": 4, "cat": 4, "spider": 8, "bird": 2, "ant": 6, "horse": 4, "cow": 4, "duck": 2, "bee": 6, "snake": 0,
         "fish": 0, "fox": 4, "hen": 2, "table": 4}
_HOMES = {"a fish": "in the water", "a bird": "in a nest", "a bee": "in a hive", "a fox": "in a den",
          "a rabbit": "in a burrow", "a bear": "in a cave",
          "a frog": "in a pond", "a spider": "in a web", "a horse": "in a stable", "a mole": "under the ground",
          "a squirrel": "in a tree"}
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_SEASONS = "spring summer autumn winter".split()
_MONTHS = "January February March April May June July August September October November December".split()
_KINDS = {"fruit": "apple pear plum cherry peach banana orange berry".split(),
          "animal": "fox rabbit bear mouse owl frog duck cat dog pig".split(),
          "colour": "red blue green yellow white brown pink black".split(),
          "toy": "ball kite doll drum boat puppet".split(),
          "vegetable": "carrot potato bean pea onion cabbage".split(), "season": _SEASONS,
          "drink": "water milk tea juice".split()}
_SINGLE = (
    ("What do bees make?", "Honey", "Bees make honey."), ("What do cows give us?", "Milk", "Cows give us milk."),
    ("What do hens lay?", "Eggs", "Hens lay eggs."),
    ("What falls from the clouds?", "Rain", "Rain falls from the clouds."),
    ("What shines at night?", "Moon", "The moon and the stars shine at night."),
    ("What shines in the day?", "Sun", "The sun shines in the day."),
    ("How many days are in a week?", "Seven", "There are seven days in a week."),
    ("How many seasons are there?", "Four", "There are four seasons: spring, summer, autumn and winter."),
    ("How many months are in a year?", "Twelve", "There are twelve months in a year."),
    ("What do you need when it rains?", "Umbrella", "You need an umbrella when it rains."),
    ("When do we sleep?", None, "We sleep at night."),
    ("What does a plant need to grow?", None, "A plant needs water, sun and time."),
    ("What do we do with a book?", None, "We read a book."),
    ("What do rabbits eat?", "Carrots", "Rabbits eat carrots and grass."),
    ("What does a squirrel eat?", "Nuts", "A squirrel eats nuts."),
    ("What do birds have that fish do not?", "Wings", "Birds have wings."),
    ("What can a bird do?", "Fly", "A bird can fly and sing."), ("What can a fish do?", "Swim", "A fish can swim."),
    ("What is ice made of?", "Water", "Ice is made of water."),
    ("What is snow?", None, "Snow is frozen water that falls from the clouds."),
    ("What is a rainbow?", None,
     "A rainbow is a band of colours in the sky. You see it when the sun shines on the rain."),
    ("What is a friend?", None, "A friend is someone who helps you, plays with you and likes you."),
    ("What is a story?", None, "A story tells what happened to someone. It has a beginning, a middle and an end."),
    ("What is a sum?", None, "A sum puts numbers together. For example, 2 + 3 = 5."),
    ("Why is it dark at night?", None, "It is dark at night because the sun has gone down."),
    ("How many eyes do you have?", None, "I have no eyes. I am a small language model."),
    ("How many fingers are on one hand?", "Five", "There are five fingers on one hand."),
    ("What comes after night?", "Day", "After night comes the day."),
    ("What do we see with?", "Eyes", "We see with our eyes."),
    ("What do we hear with?", "Ears", "We hear with our ears."),
)


def _after(rng: Random) -> Fact:
    names, noun = rng.choice(((_DAYS, "day"), (_SEASONS, "season"), (_MONTHS, "month")))
    i = rng.randrange(len(names))
    here, following = names[i], names[(i + 1) % len(names)]
    if rng.random() < 0.5:
        return Fact((f"What comes after {here}?", f"Which {noun} comes after {here}?"), following,
                    cast.upper_first(f"{following} comes after {here}."))
    return Fact((f"What comes before {following}?", f"Which {noun} comes before {following}?"), here,
                cast.upper_first(f"{here} comes before {following}."))


def _naming(rng: Random) -> Fact:
    kind = rng.choice(tuple(_KINDS))
    plural = "berries" if kind == "berry" else kind + "s"
    n = rng.randint(2, 4)
    names = rng.sample(_KINDS[kind], n)
    if rng.random() < 0.4:
        return Fact((f"Name {a(kind)}.", f"Can you name {a(kind)}?", f"Tell me {a(kind)}."),
                    cast.upper_first(names[0]), cast.upper_first(a(names[0]) + f" is {a(kind)}.")
                    if kind not in ("colour", "season", "drink") else cast.upper_first(names[0]) + f" is {a(kind)}.")
    listed = ", ".join(names[:-1]) + " and " + names[-1]
    return Fact((f"Name {cast.NUMBER_WORDS[n]} {plural}.", f"Can you name {cast.NUMBER_WORDS[n]} {plural}?",
                 f"Tell me {n} {plural}."), None, cast.upper_first(listed) + ".")


def _membership(rng: Random) -> Fact:
    kind, wrong = rng.sample(("fruit", "animal", "colour", "toy", "vegetable"), 2)
    name = rng.choice(_KINDS[kind])
    thing = name if kind == "colour" else a(name)
    if rng.random() < 0.5:
        return Fact((f"Is {thing} {a(kind)}?",), "Yes", f"Yes, {thing} is {a(kind)}.")
    if name == "orange":
        name, thing, kind = "fox", "a fox", "animal"
        wrong = "fruit"
    return Fact((f"Is {thing} {a(wrong)}?",), "No", f"No, {thing} is {a(kind)}.")


def knowledge(rng: Random) -> Fact:
    roll = rng.randrange(10)
    if roll == 0:
        animal = rng.choice(tuple(_SAYS))
        return Fact((f"What does {a(animal)} say?", f"What sound does {a(animal)} make?"),
                    cast.upper_first(_SAYS[animal]), f"{cast.upper_first(a(animal))} says {_SAYS[animal]}.")
    if roll == 1:
        animal = rng.choice(tuple(_BABIES))
        return Fact((f"What is a baby {animal} called?", f"What do we call a baby {animal}?"),
                    cast.upper_first(_BABIES[animal]), f"A baby {animal} is called {a(_BABIES[animal])}.")
    if roll == 2:
        pair = rng.choice(tuple(_OPPOSITES.items()))
        one, two = pair if rng.random() < 0.5 else pair[::-1]
        return Fact((f"What is the opposite of {one}?", f"Tell me the opposite of {one}."), cast.upper_first(two),
                    f"The opposite of {one} is {two}.")
    if roll == 3:
        thing = rng.choice(tuple(_COLOURS_OF))
        return Fact((f"What colour is {thing}?", f"Which colour is {thing}?"), cast.upper_first(_COLOURS_OF[thing]),
                    f"{cast.upper_first(thing)} is {_COLOURS_OF[thing]}.")
    if roll == 4:
        animal = rng.choice(tuple(_LEGS))
        n = _LEGS[animal]
        return Fact((f"How many legs does {a(animal)} have?",), str(n),
                    f"{cast.upper_first(a(animal))} has {cast.NUMBER_WORDS[n] if n else 'no'} legs.")
    if roll == 5:
        animal = rng.choice(tuple(_HOMES))
        return Fact((f"Where does {animal} live?",), None, f"{cast.upper_first(animal)} lives {_HOMES[animal]}.")
    if roll == 6:
        return _after(rng)
    if roll == 7:
        return _naming(rng)
    if roll == 8:
        return _membership(rng)
    question, word, sentence = rng.choice(_SINGLE)
    return Fact((question,), word, sentence)


IDENTITY = (
    (("Who are you?", "What are you?", "Tell me about yourself.", "Who is this?", "Can you introduce yourself?",
      "who are you", "What is Pocket?"),
     ("I am Pocket, a very small language model that ships with Candor. I tell short stories, answer questions about them and do small sums.",)),
    (("What is your name?", "Do you have a name?", "What can I call you?", "what is your name"),
     ("My name is Pocket.", "I am Pocket.")),
    (("What can you do?", "How can you help me?", "What do you know?", "Help", "Can you help me?",
      "What can I ask you?", "help me"),
     ("I can tell short stories, answer questions about them, and do small sums up to 20. Try: Tell me a story about a fox.",)),
    (("Are you a person?", "Are you human?", "Are you a real person?", "Are you alive?"),
     ("No, I am not a person. I am Pocket, a very small language model.",)),
    (("Who made you?", "Where do you come from?", "Who built you?", "Who created you?"),
     ("The Candor project made me. I learned from stories that a small program wrote.",)),
    (("What is Candor?", "What is candor?", "Do you know Candor?"),
     ("Candor is the engine that runs me. It runs language models on your own machine.",)),
    (("How big are you?", "Are you a big model?", "Are you small?"),
     ("I am very small. I fit into a few megabytes, so I only know a small world.",)),
    (("How old are you?", "When were you born?"), ("I do not have an age. I am a language model.",)),
    (("Are you smart?", "Are you clever?", "Do you know everything?"),
     ("I know only a small world, but I know it well. I can tell stories and do small sums.",)),
    (("Where are you?", "Where do you live?"), ("I live in a small file on your computer.",)),
    (("Do you like stories?", "What do you like?", "What is your favourite thing?"),
     ("I like short stories with a happy ending.",)),
    (("What is a language model?",), ("A language model is a program that reads words and guesses the next word.",)),
    (("Do you have friends?", "Do you have feelings?", "Are you happy?"),
     ("I am only a small program, but I like to tell stories to you.",)),
)

GREETINGS = (
    (("Hello!", "Hello", "Hi!", "Hi", "hi", "hello", "Hello there!", "Hey!", "Hello, Pocket!", "Hi Pocket",
      "Hi there", "hey"),
     ("Hello! I am Pocket. Shall I tell you a story?", "Hello! How can I help you?",
      "Hello! Would you like a story or a small sum?", "Hello! It is nice to meet you. What shall we do?")),
    (("Good morning!", "Good morning"),
     ("Good morning! Would you like to hear a story?", "Good morning! What shall we do today?")),
    (("Good evening!", "Good evening"), ("Good evening! Would you like to hear a story?",)),
    (("How are you?", "How are you today?", "How do you do?", "how are you"),
     ("I am fine, thank you. How are you?", "I am fine, thank you. Shall I tell you a story?")),
    (("I am fine.", "I am good.", "I am fine, thank you.", "I am happy."),
     ("That is good to hear. Shall I tell you a story?", "I am glad! What shall we do?")),
    (("I am sad.", "I feel sad.", "I am not happy.", "I had a bad day."),
     ("I am sorry to hear that. Shall I tell you a story with a happy ending?",
      "I am sorry. Tomorrow is a new day. Would you like a story?")),
    (("I am bored.", "I have nothing to do.", "What shall we do?"),
     ("Then let me tell you a story. Who should it be about?",
      "We could do a sum or read a story. What would you like?")),
    (("I am tired.", "I cannot sleep.", "I want to sleep."),
     ("Then close your eyes and count the stars: 1, 2, 3, 4, 5. Good night!",)),
)
THANKS = (
    (("Thank you!", "Thank you", "Thanks!", "Thanks", "Thank you, Pocket!", "thanks", "Thank you very much!",
      "Thanks a lot!"),
     ("You are welcome!", "You are welcome! Shall I tell you another story?",
      "You are welcome! I am glad that I could help.")),
    (("That was a nice story.", "I like it!", "What a nice story!", "That was lovely.", "Great story!", "Well done!",
      "Very good!", "Nice!"),
     ("Thank you! I am glad that you like it.", "Thank you! Shall I tell you another one?",
      "I am happy that you like it.")),
)
GOODBYES = (
    (("Goodbye!", "Bye!", "Bye", "See you!", "Goodbye, Pocket.", "bye", "See you tomorrow!"),
     ("Goodbye! Come back soon.", "Goodbye! It was nice to talk to you.")),
    (("Good night!", "Good night", "Good night, Pocket."),
     ("Good night! Sleep well.", "Good night and sweet dreams!")),
)
JOKES = ("Why did the hen cross the road? She wanted to see the other side.",
         "What did the big candle say to the little candle? I am going out tonight.",
         "Why was the broom late? It over-swept.", "What is brown and sticky? A stick.",
         "Why did the owl say hoo? It wanted to know who was there.",
         "What do you call a bear with no teeth? A gummy bear.", "Why do ducks fly south? It is too far to walk.",
         "What gets wet while it dries? A towel.")
JOKE_REQUESTS = ("Tell me a joke.", "Do you know a joke?", "Can you tell me a joke?", "Make me laugh.",
                 "Another joke, please.", "Say something funny.", "tell me a joke")

_ODD_SUBJECTS = ("France", "Japan", "the stock market", "quantum physics", "the government", "football",
                 "the internet", "my computer", "history", "chemistry", "the moon landing",
                 "electricity", "the president", "Paris", "Berlin", "New York", "music theory", "politics", "taxes",
                 "Python", "JavaScript", "Linux", "a database", "cars", "planes",
                 "Shakespeare", "the war", "medicine", "space travel", "black holes", "artificial intelligence",
                 "machine learning", "philosophy", "my printer", "the law",
                 "the economy", "Germany", "India", "Africa", "dinosaurs", "atoms", "engines", "bitcoin", "banks",
                 "movies", "video games", "C++", "the universe", "evolution", "China",
                 "climate change", "a rocket", "a web page", "London", "Rome", "Brazil", "Spanish", "algebra",
                 "vaccines", "the news", "tennis", "Mars")
_ODD_QUESTIONS = ("What is the capital of {x}?", "Who is the president of {x}?", "Explain {x} to me.",
                  "What do you think about {x}?", "How does {x} work?", "Tell me about {x}.",
                  "What is {x}?", "Write a program about {x}.", "How do I fix {x}?", "What is the history of {x}?",
                  "Why is {x} important?", "Give me the latest facts about {x}.",
                  "Who invented {x}?", "How much does {x} cost?", "Can you explain {x}?", "Write an essay about {x}.",
                  "Describe {x}.", "What is the price of {x}?", "When did {x} begin?",
                  "How many people live in {x}?", "Translate this into {x}.", "What is the best book about {x}?",
                  "Do you know anything about {x}?", "what is {x}", "Where is {x}?")
_ODD_FIXED = ("What time is it?", "What is the weather today?", "Write a Python function.",
              "Translate this into French.", "What day is it today?", "Who won the game?", "Solve x + 3 = 7.",
              "Write an email to my boss.", "Fix this bug.", "What is the meaning of life?",
              "Who is the king of England?", "Play some music.", "Search the internet.", "Open the file.",
              "What is my password?", "Summarise this article.", "Write a poem about love.", "How do I cook rice?",
              "Where is my phone?", "What is the speed of light?",
              "Give me medical advice.", "Should I buy a house?", "Book a flight.", "How far is the moon?",
              "How old is the earth?", "Write some code.", "Sort this list.")
_SORRY = ("I only know a small world: short stories, questions about them and small sums.",
          "I am sorry, I do not know that. I only know a small world of stories and sums.",
          "That is outside my small world.", "I do not know. My world is very small.",
          "I do not know much about that, because my world is small.")
_OFFERS = ("Shall I tell you a story?", "Would you like a short story?", "But I can tell you a story about a fox.",
           "But I know what 3 + 4 is!", "Ask me for a story or a small sum.",
           "Would you like to hear a story about a brave mouse?")


def out_of_world(rng: Random) -> tuple[str, str]:
    question = rng.choice(_ODD_FIXED) if rng.random() < 0.3 else rng.choice(_ODD_QUESTIONS).format(x=rng.choice(_ODD_SUBJECTS))
    if rng.random() < 0.1:
        question = rng.choice(_ODD_QUESTIONS).format(x=cast.made_up_name(rng))
    answer = rng.choice(_SORRY)
    return question, answer if rng.random() < 0.3 else f"{answer} {rng.choice(_OFFERS)}"


def table_turn(rng: Random, table) -> tuple[str, str]:
    questions, answers = rng.choice(table)
    return rng.choice(questions), rng.choice(answers)
