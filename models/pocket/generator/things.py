"""Story shapes about a thing: lost, broken, made, bought, stuck or carried."""

from . import cast
from .cast import a, draw_thing, other
from .story import Story


def lost_thing(s: Story) -> None:
    h, f, x = s.hero, s.friend, draw_thing(s.rng)
    place = s.rng.choice(tuple(cast.PLACES))
    at = cast.PLACES[place]
    first, second, found = s.rng.sample(cast.SPOTS, 3)
    s.open()
    s.say(f"{h.name} had {x.a_full}.", f"{h.He} had {x.a_full} and loved it very much.",
          f"{h.His} favourite thing was {x.a_full}.")
    s.say(f"One day, {h.he} went to the {place} with the {x.noun}.",
          f"One morning, {h.name} took the {x.noun} to the {place}.",
          f"One sunny day, {h.he} played with it {at} the {place}.")
    s.also("The sun was warm.", "The wind was soft.", "There was so much to see.",
           f"{h.He} ran and jumped all morning.")
    s.new_paragraph()
    s.say(f"But then the {x.noun} was gone.", f"When it was time to go home, the {x.noun} was gone.",
          f"Suddenly, {h.he} could not see the {x.noun} anywhere.", f"Then {h.he} saw that the {x.noun} was lost.")
    s.say(f"{h.name} was very sad.", f"{h.name} felt sad and began to cry.", f"{h.name} was so sad.")
    s.say(f"{h.He} looked {first}, but it was not there.", f"First {h.he} looked {first}. It was not there.")
    s.also(f"{h.He} looked {second}, but it was not there either.")
    s.new_paragraph()
    s.say(f"Then {s.meet(f)} came by.", f"Just then, {s.meet(f)} came along.", f"Soon {h.he} met {s.meet(f)}.")
    s.say(f'"Why are you sad, {h.name}?" asked {f.name}.', f'"What is wrong?" {f.name} asked.',
          f'"Can I help you?" asked {f.name}.')
    s.say(f'"I have lost my {x.noun}," said {h.name}.', f'"My {x.full} is gone," {h.name} said.')
    s.also(f'"Do not worry. We will find it together," said {f.name}.',
           f'"Two can look better than one," said {f.name}.')
    s.say(f"They looked and looked. At last, {f.name} found the {x.noun} {found}.",
          f"{f.name} looked {found}, and there was the {x.noun}!",
          f"{f.name} helped to look, and soon {f.he} found it {found}.")
    s.new_paragraph()
    s.say(f'"Thank you, {f.name}!" said {h.name}.', f'{h.name} hugged {f.name}. "Thank you so much!"',
          f"{h.name} was happy again and thanked {f.name}.")
    s.ask(f.name, f"{f.name} found the {x.noun}.", f"Who found the {x.noun}?", "Who found it?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?")
    s.ask(None, f"{f.name} found the {x.noun} {found}.", f"Where was the {x.noun}?",
          f"Where did {f.name} find the {x.noun}?",
          "Where was it found?")
    s.ask(x.noun, f"{h.name} lost the {x.noun}.", f"What did {h.name} lose?", "What was lost?")
    s.ask(None, f"{h.name} lost it {at} the {place}.", f"Where did {h.name} lose the {x.noun}?")
    s.ask_feeling(h, "sad", f"the {x.noun} was gone", f"the {x.noun} was lost")
    s.ask_colour(x)
    s.close(f"{f.name} found the {x.noun}, and {h.name} was happy again.",
            s.one("good friends help each other", "it is good to ask for help", "two can look better than one"),
            f"They walked home together, and {h.name} held the {x.noun} tight.",
            f"They played with the {x.noun} until the sun went down.",
            f"After that day, {h.name} always took good care of the {x.noun}.")
    s.title = s.one(f"The Lost {x.noun.title()}", f"{h.name} and the {x.full.title()}")
    s.topics += [f"{h.name} and {a(x.noun)}", f"a lost {x.noun}", f"{a(x.full)}", f"{a(h.kind)} and {a(x.noun)}",
                 f"{a(h.kind)} who loses {a(x.noun)}", "losing something", f"{a(x.noun)}"]


REPAIRS = {"wagon": ("wheel", "came off", "a small nail"), "kite": ("tail", "tore off", "some string"),
           "doll": ("arm", "came off", "a needle and thread"), "boat": ("sail", "tore", "a piece of cloth"),
           "drum": ("skin", "broke", "strong paper"), "sled": ("rope", "broke", "a new rope"),
           "bag": ("strap", "broke", "a needle and thread"), "box": ("lid", "broke", "glue"),
           "cup": ("handle", "broke off", "glue"), "umbrella": ("handle", "broke", "tape"),
           "lantern": ("handle", "came off", "a bit of wire"), "puppet": ("string", "broke", "new string")}


def broken_thing(s: Story) -> None:
    h, f = s.hero, s.friend
    noun = s.rng.choice(tuple(REPAIRS))
    part, broke, tool = REPAIRS[noun]
    x = cast.Thing(noun, s.rng.choice(cast.COLOURS))
    s.open()
    s.say(f"{f.name} the {f.kind} was {h.his} best friend." if not f.is_child
          else f"{f.name} was {h.his} best friend.",
          f"{h.His} best friend was {a(f.kind)} named {f.name}.")
    s.say(f"{f.name} had {x.a_full}.", f"One day, {f.name} brought {x.a_full}.")
    s.say(f'"May I play with it?" asked {h.name}. "Yes, but be careful," said {f.name}.',
          f"{f.name} let {h.name} play with the {x.noun}.")
    s.say(f"But {h.name} pulled too hard, and the {part} {broke}.",
          f"{h.name} was not careful. Crack! The {part} {broke}.",
          f"{h.name} dropped the {x.noun}, and the {part} {broke}.")
    s.new_paragraph()
    s.say(f"{h.name} was afraid that {f.name} would be angry.", f"At first, {h.name} wanted to hide the {x.noun}.",
          f"{h.name} did not know what to do.")
    s.say(f'But {h.he} told the truth. "I broke your {x.noun}. I am sorry," said {h.name}.',
          f'Then {h.he} took a deep breath. "I am sorry, {f.name}. I broke your {x.noun}," {h.he} said.')
    s.say(f'"Thank you for telling me," said {f.name}. "We can fix it."',
          f'{f.name} was sad, but not angry. "Let us fix it together," said {f.name}.')
    s.say(f"They used {tool} to fix the {part}.", f"{h.name} found {tool}, and together they fixed the {part}.")
    s.also("It took a long time, but they did not give up.", "They worked all afternoon.",
           f"{h.name} worked very carefully.")
    s.ask(h.name, f"{h.name} broke the {x.noun}.", f"Who broke the {x.noun}?", "Who broke it?")
    s.ask(f.name, f"The {x.noun} belonged to {f.name}.", f"Whose {x.noun} was it?")
    s.ask(part, f"The {part} {broke}.", f"Which part of the {x.noun} broke?", "What part broke?")
    s.ask(None, f"They used {tool} to fix it.", f"How did they fix the {x.noun}?", "What did they use to fix it?")
    s.ask(None, f"{h.name} told the truth and said sorry.", f"What did {h.name} do after the {x.noun} broke?")
    s.ask_colour(x)
    s.close(f"They fixed the {x.noun} together and stayed friends.",
            s.one("it is best to tell the truth", "telling the truth is brave", "saying sorry helps"),
            f"Soon the {x.noun} was as good as new, and they played together again.",
            f"The {x.noun} looked even better than before. The two friends laughed.",
            f"{f.name} smiled, and they were still best friends.")
    s.title = s.one(f"The Broken {x.noun.title()}", f"{h.name} Tells the Truth")
    s.topics += ["telling the truth", f"a broken {x.noun}", f"{h.name} and {a(x.noun)}", f"{a(x.full)}",
                 "saying sorry",
                 f"{h.name} and {f.name}", "a broken toy", f"{a(h.kind)} and {a(x.noun)}"]


RECIPES = {"an apple pie": ("apples", "bake"), "a pot of soup": ("carrots", "cook"),
           "a honey cake": ("honey", "bake"),
           "a berry pie": ("berries", "bake"), "a loaf of bread": ("flour", "bake"),
           "a paper boat": ("paper", "make"),
           "a birthday card": ("glue", "make"), "a bird house": ("nails", "build"), "a big kite": ("string", "make"),
           "a flower crown": ("flowers", "make"), "a warm scarf": ("wool", "make"), "a plum cake": ("plums", "bake"),
           "a little cart": ("wheels", "build"), "a paper lantern": ("paper", "make"),
           "a snow house": ("snow", "build")}
DONE = {"bake": "baked", "cook": "cooked", "make": "made", "build": "built"}


def making_thing(s: Story) -> None:
    h, f = s.hero, s.friend
    goal = s.rng.choice(tuple(RECIPES))
    missing, verb = RECIPES[goal]
    relative, _ = s.rng.choice(cast.RELATIVES)
    noun = goal.split()[-1]
    s.open()
    s.say(f"One day, {h.he} wanted to {verb} {goal} for {h.his} {relative}.",
          f"It was a special day for {h.his} {relative}, so {h.name} wanted to {verb} {goal}.",
          f'"I will {verb} {goal} for my {relative}," said {h.name} one morning.')
    s.also(f"{h.He} put on an old apron.", f"{h.He} sang a little song.", f"{h.He} cleaned the table first.")
    s.say(f"But there was a problem. {h.He} had no {missing}.",
          f"But {h.name} looked everywhere and found no {missing}.",
          f"Then {h.he} saw that there was no more of the {missing}."
          if missing in ("honey", "flour", "paper", "glue", "string", "wool", "snow")
          else f"Then {h.he} saw that there were no {missing} left.")
    s.new_paragraph()
    s.say(f"{h.name} went to {s.meet(f)}.", f"So {h.he} went out and met {s.meet(f)}.")
    s.say(f'"I need {missing}. Do you have some?" asked {h.name}.',
          f'"Can you give me some {missing}, please?" {h.name} asked.')
    s.say(f'"Yes, I have plenty," said {f.name}.', f'"Of course," said {f.name}. "Take as much as you need."')
    s.say(f"{f.name} came along to help, and they {DONE[verb]} {goal} together.",
          f"Together they {DONE[verb]} the {noun}. It was a lot of fun.")
    s.also("They made a big mess and laughed a lot.", "It was hard work, but they were happy.",
           "They cleaned up when they were done.")
    s.new_paragraph()
    s.say(f"{h.His} {relative} was very happy.", f'"What a lovely {noun}!" said {h.his} {relative}.',
          f"{h.His} {relative} smiled from ear to ear.")
    s.ask(None, f"{h.name} wanted to {verb} {goal}.", f"What did {h.name} want to {verb}?",
          f"What did {h.name} want to do?")
    s.ask(relative, f"{h.name} {DONE[verb]} it for {h.his} {relative}.", f"Who was the {noun} for?",
          f"For whom did {h.name} {verb} the {noun}?")
    s.ask(missing, f"{h.name} needed {missing}.", f"What did {h.name} need?", f"What was missing?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?")
    s.ask(f.name, f"{f.name} had {missing}.", f"Who had {missing}?", f"Who gave {h.name} some {missing}?")
    s.close(f"They {DONE[verb]} {goal} together, and {h.his} {relative} was very happy.",
            s.one("work is more fun with a friend", "it is good to make gifts for those we love",
                  "sharing makes everyone happy"),
            f"{f.name} stayed, and they all had a lovely evening.",
            f"{h.name} and {f.name} were proud of what they had {DONE[verb]}.",
            f"It was the best day of the year.")
    s.title = s.one(f"{h.name} and the {noun.title()}", f"A Gift for {relative.title()}")
    s.topics += [f"making {goal}", f"{h.name} and {goal}", "a special gift",
                 f"{goal}", f"{a(h.kind)} who {verb}s {goal}", "working together", f"{h.name} and {f.name}"]


def stuck_thing(s: Story) -> None:
    h, f = s.hero, s.friend
    x = cast.Thing(s.one("kite", "ball", "balloon", "hat", "flag", "scarf", "cap", "feather", "ribbon"),
                   s.rng.choice(cast.COLOURS))
    where = s.one("in a tall tree", "on the roof of the barn", "on top of a wall", "in an apple tree",
                  "on the roof of the mill")
    tool = s.one("a long ladder", "a long stick", "a rope", "a big box to stand on", "a fishing rod")
    s.open()
    s.say(f"It was a windy day, and {h.name} was out with {x.a_full}.",
          f"One windy morning, {h.name} went out with {h.his} new {x.full}.",
          f"{h.name} was playing outside with {x.a_full}.")
    s.say(f"A strong wind blew, and the {x.noun} got stuck {where}.",
          f"Whoosh! The wind took the {x.noun}, and it got stuck {where}.",
          f"The wind came and carried the {x.noun} away. It got stuck {where}.")
    s.say(f"{h.name} jumped and jumped, but {h.he} could not reach it.",
          f"{h.He} tried to reach it, but it was too high.")
    s.also(f"{h.He} threw a small stone, but it did not help.", f'"Oh no," said {h.name}. "What can I do?"')
    s.new_paragraph()
    s.say(f"Then {s.meet(f)} came to help.",
          f"Just then, {s.meet(f)} walked by.")
    s.say(f'"I have an idea," said {f.name}.', f'"I know what to do," {f.name} said.')
    s.say(f"{f.name} went away and came back with {tool}.", f"{f.name} ran home to get {tool}.")
    s.say(f"With {tool}, they got the {x.noun} down.", f"They used {tool}, and soon the {x.noun} was free.")
    s.new_paragraph()
    s.say(f'"Hooray!" shouted {h.name}.', f'"You are so clever, {f.name}!" said {h.name}.',
          f"{h.name} clapped and laughed.")
    s.ask(x.noun, f"The {x.noun} got stuck.", "What got stuck?", f"What did the wind take?")
    s.ask(None, f"The {x.noun} was stuck {where}.", f"Where was the {x.noun} stuck?", f"Where was the {x.noun}?")
    s.ask(f.name, f"{f.name} had the idea.", "Who had an idea?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?", f"Who came to help?")
    s.ask(None, f"They used {tool}.", f"How did they get the {x.noun} down?",
          f"What did they use to get the {x.noun}?")
    s.ask("wind", "The wind took it.", f"What carried the {x.noun} away?")
    s.ask_colour(x)
    s.close(f"They got the {x.noun} down with {tool}.",
            s.one("a clever idea can solve a problem", "friends can do more together",
                  "it is good to think before you act"),
            f"They played together for the rest of the day.",
            f"{h.name} held the {x.noun} with both hands all the way home." if h.is_child
            else f"{h.name} did not let go of the {x.noun} again.",
            f"Then they went home for supper.")
    s.title = s.one(f"{h.name} and the {x.full.title()}", f"The {x.noun.title()} and the Wind")
    s.topics += [f"{h.name} and {a(x.noun)}", "the wind", "a windy day", f"{a(x.full)}", f"{a(x.noun)}",
                 f"{a(h.kind)} and {a(x.noun)}",
                 f"{a(x.noun)} that gets stuck", "a clever idea"]


def market_trip(s: Story) -> None:
    h, f, x = s.hero, s.friend, draw_thing(s.rng)
    relative, _ = s.rng.choice(cast.RELATIVES)
    price = s.rng.randint(3, 15)
    has = s.rng.randint(1, price - 1)
    as_word = s.rng.random() < 0.5
    coins = lambda n: cast.count_of(n, "coin", "coins", as_word)
    job = s.one("carry wood", "sweep the floor", "water the flowers", "wash the windows", "pick apples",
                "feed the hens", "paint the fence")
    s.open()
    s.say(f"One day at the market, {h.he} saw {x.a_full}.",
          f"At the market, {h.name} saw {x.a_full}. It was so pretty!")
    s.say(f"{h.He} wanted to buy it for {h.his} {relative}.", f'"My {relative} would love this," {h.he} thought.')
    s.say(f"The {x.noun} cost {coins(price)}, but {h.name} had only {coins(has)}.",
          f"It cost {coins(price)}. {h.name} counted. {h.He} had only {coins(has)}.")
    s.also(f"{h.name} felt a little sad.", f"That was not enough.")
    s.new_paragraph()
    s.say(f"{f.name} the {f.kind} had a shop there." if not f.is_child else f"{h.His} friend {f.name} worked there.",
          f"Then {h.he} met {s.meet(f)}.")
    s.say(f'"If you help me to {job}, I will give you {coins(price - has)}," said {f.name}.')
    s.say(f"So {h.name} helped to {job} all day.", f"{h.name} was glad to help and worked very hard.")
    s.say(f"In the evening, {f.name} gave {h.him} {coins(price - has)}. Now {h.he} had {coins(price)}.")
    s.say(f"{h.name} bought the {x.full}.", f"{h.He} ran back and bought the {x.noun}.")
    number = lambda n: cast.NUMBER_WORDS[n] if as_word else str(n)
    s.ask(number(price), f"The {x.noun} cost {coins(price)}.", f"How much did the {x.noun} cost?",
          f"How many coins did the {x.noun} cost?")
    s.ask(number(has), f"{h.name} had {coins(has)} at first.", f"How many coins did {h.name} have at first?")
    s.ask(number(price - has), f"{f.name} gave {h.name} {coins(price - has)}.",
          f"How many coins did {f.name} give {h.name}?",
          f"How many coins did {h.name} get for the work?")
    s.ask(relative, f"{h.name} bought it for {h.his} {relative}.", f"Who was the {x.noun} for?")
    s.ask(None, f"{h.name} helped to {job}.", f"How did {h.name} earn the coins?", f"What work did {h.name} do?")
    s.ask_colour(x)
    s.close(f"{h.name} bought the {x.noun} for {h.his} {relative}.",
            s.one("hard work pays off", "good things are worth working for"),
            f"{h.His} {relative} was very happy with the {x.noun}.",
            f"When {h.his} {relative} saw the {x.noun}, they both smiled.",
            f'"Thank you! It is the best gift," said {h.his} {relative}.')
    s.title = s.one(f"{h.name} at the Market", f"The {x.full.title()}")
    s.topics += ["a day at the market", f"{h.name} and {a(x.noun)}", "hard work", f"{a(x.full)}", "coins",
                 f"{a(h.kind)} at the market",
                 f"{a(x.noun)}"]


SHAPES = (lost_thing, broken_thing, making_thing, stuck_thing, market_trip)
