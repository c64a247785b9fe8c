"""Story shapes of weather, fear, learning, journeys, rescues, gardens and nights."""

from . import cast
from .cast import a, draw_thing, other
from .story import Story

STORMS = (("rain", "It began to rain hard.", "wet"), ("snow", "It began to snow.", "cold"),
          ("fog", "A thick fog came up.", "lost"),
          ("thunder", "There was a loud thunder.", "scared"), ("wind", "A strong wind began to blow.", "cold"))
SHELTERS = ("a cave", "an old barn", "a hollow tree", "a little hut", "a windmill", "a boat house")


def bad_weather(s: Story) -> None:
    h, f = s.hero, s.friend
    weather, began, feeling = s.rng.choice(STORMS)
    shelter = s.rng.choice(SHELTERS)
    place = s.rng.choice(("forest", "meadow", "hill", "beach", "field", "lake", "river"))
    plan = s.one("have a picnic", "pick flowers", "catch fish", "look for shells", "fly a kite",
                 "read a book in the sun")
    s.open()
    s.say(f"One morning, {h.he} went to the {place} to {plan}.",
          f"It was a fine day, so {h.name} went to the {place} to {plan}.")
    s.also("The sky was blue.", "Birds were singing.", f"{h.He} took some bread along.")
    s.say(f"But soon dark clouds came. {began}", f"Then the sky turned grey. {began}")
    s.say(f"{h.name} was {feeling} and did not know where to go.", f'"Oh no," said {h.name}. {h.He} was {feeling}.')
    s.new_paragraph()
    s.say(f"Then {h.he} heard a voice. It was {s.meet(f)}.", f"Just then, {s.meet(f)} came by.")
    s.say(f'"Come with me! I know {shelter} near here," said {f.name}.',
          f'"Follow me, {h.name}!" {f.name} said. "There is {shelter} over there."')
    s.say(f"They ran to {shelter}. It was dry and warm inside.", f"Soon they sat in {shelter}, safe and dry.")
    s.say("They told stories and waited.", "They sang songs until it was over.",
          f"{f.name} made a small fire, and they told jokes.")
    s.also("Outside, the trees were bending.", "They were not afraid any more.")
    s.new_paragraph()
    s.say("At last, the sun came out again.", f"After a while, the {weather} stopped.")
    s.ask(None, f"{h.name} wanted to {plan}.", f"What did {h.name} want to do?",
          f"Why did {h.name} go to the {place}?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?", "Who knew the way?")
    s.ask(None, f"They went to {shelter}.", "Where did they go?", "Where did they wait?", "Where were they safe?")
    s.ask(place, f"{h.name} went to the {place}.", f"Where did {h.name} go?")
    s.ask(weather, f"The weather was bad. There was {weather}.", "How was the weather?", "What was the weather like?")
    s.close(f"The {weather} stopped, and {h.name} and {f.name} went home happy.",
            s.one("bad weather is not so bad with a friend", "it is good to help each other"),
            f"A big rainbow stood over the {place}. It was a good day after all." if weather == "rain"
            else "They walked home together. It was a good day after all.",
            f'"Thank you for your help," said {h.name}. Then they went home together.')
    s.title = s.one(f"{h.name} and the {weather.title()}", f"A Day at the {place.title()}")
    s.topics += [f"the {weather}", "bad weather", f"{h.name} and the {weather}", f"{h.name} and {f.name}",
                 f"{a(h.kind)} in the {weather}", "a storm",
                 f"a day at the {place}", f"{a(h.kind)} and {a(f.kind)}"]


FEARS = {"the dark": ("a small lantern", "The dark is only the day with its eyes closed"),
         "deep water": ("an old rope", "First put in one foot, then the other"),
         "thunder": ("a little drum", "Thunder is only a drum in the sky"),
         "high places": ("a strong rope", "Look at the sky and not at the ground"),
         "big dogs": ("a piece of bread", "Stand still and let them smell your hand"),
         "loud noises": ("a soft cap", "Take a deep breath and count to three"),
         "the forest": ("a whistle", "If you sing, the forest sings with you"),
         "spiders": ("a glass", "They are more afraid of you than you are of them"),
         "ghosts": ("a bright lamp", "There are no ghosts, only shadows"),
         "the wind": ("a paper windmill", "The wind only wants to play")}


def fear(s: Story) -> None:
    h, f = s.hero, s.friend
    scary = s.rng.choice(tuple(FEARS))
    gift, advice = FEARS[scary]
    s.open()
    s.say(f"{h.name} was afraid of {scary}.",
          f"{h.He} was not afraid of many things, but {h.he} was afraid of {scary}.",
          f"There was only one problem. {h.name} was afraid of {scary}.")
    s.also("The others laughed about it.", f"{h.He} did not tell anyone.",
           f"{h.He} often stayed at home because of it.")
    s.say(f"One day, {h.he} told {s.meet(f)} about it.", f"One evening, {s.meet(f)} saw that {h.name} was shaking.")
    s.say(f'"{advice}," said {f.name}.', f'"Do not be afraid," said {f.name}. "{advice}."')
    s.say(f"{f.name} gave {h.name} {gift}. \"This will help you,\" {f.he} said.",
          f"Then {f.name} gave {h.him} {gift}.")
    s.new_paragraph()
    s.say(f"The next day, {h.name} tried it.", f"{h.name} took a deep breath and tried.")
    s.say(f"At first, {h.his} knees were shaking. But step by step, it got better.",
          f"{h.He} held {gift.replace('a ', 'the ', 1).replace('an ', 'the ', 1) if gift[:2] in ('a ', 'an') else gift} and thought of {f.name}. It was not so bad!")
    s.also(f'"I can do it," {h.he} said.', f"{f.name} stood beside {h.him}.")
    s.say(f"Soon {h.name} was not afraid of {scary} any more.", f"And then {h.he} was not afraid any more.")
    s.ask(scary if " " not in scary else None, f"{h.name} was afraid of {scary}.", f"What was {h.name} afraid of?",
          f"What did {h.name} fear?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?", f"Who gave {h.name} {gift}?")
    s.ask(None, f"{f.name} gave {h.name} {gift}.", f"What did {f.name} give {h.name}?", f"What did {h.name} get?")
    s.ask(None, f'{f.name} said: "{advice}."', f"What did {f.name} say?", f"What was the advice?")
    s.ask("Yes", f"Yes, {h.name} was brave in the end.", f"Was {h.name} brave in the end?", f"Is {h.name} brave now?")
    s.close(f"{h.name} was not afraid of {scary} any more.",
            s.one("being brave means trying even when you are afraid", "a friend can make you brave",
                  "small steps can beat a big fear"),
            f'"I am proud of you," said {f.name}.', f"{h.name} was very proud.",
            f'"You were very brave," said {f.name}, and {h.name} smiled.')
    s.title = s.one(f"Brave {h.name}", f"{h.name} and {scary.title()}")
    s.topics += ["being brave", f"{a(h.kind)} who is afraid of {scary}", f"{h.name} and {f.name}", "being afraid",
                 f"{a(h.kind)} and {a(f.kind)}",
                 f"{h.name} and {scary}", f"a brave {h.kind}", "fear"]


SKILLS = {"swim": "sank", "ride a bicycle": "fell off", "whistle": "made no sound", "skate": "fell down",
          "climb a tree": "slid down", "swing high": "got stuck",
          "tie a knot": "made a mess", "juggle": "dropped the balls", "jump over the stream": "got wet feet",
          "row a boat": "went in circles", "bake bread": "burned it",
          "play the flute": "made an ugly sound", "read": "mixed up the letters", "draw a horse": "drew a potato"}


def learning(s: Story) -> None:
    h, f = s.hero, s.friend
    skill = s.rng.choice(tuple(SKILLS))
    failed = SKILLS[skill]
    n_days = s.rng.randint(3, 9)
    days = cast.NUMBER_WORDS[n_days]
    s.open()
    s.say(f"{h.name} wanted to learn to {skill}.", f"More than anything, {h.he} wanted to {skill}.",
          f'"I want to {skill}," said {h.name} one day.')
    s.say(f"{h.He} tried, but {h.he} {failed}.", f"The first time, {h.he} {failed}.")
    s.say(f"{h.He} tried again and {failed} again.", f"The second time, it was no better.")
    s.say(f'"I will never learn it," {h.he} said and sat down.', f'"It is too hard," {h.he} cried.')
    s.new_paragraph()
    s.say(f"{cast.upper_first(s.meet(f))} saw it and smiled.", f"Then {s.meet(f)} came and sat down next to {h.him}.")
    s.say(f'"I needed many days, too," said {f.name}. "Try a little every day."',
          f'"Do not give up," said {f.name}. "I will show you how."')
    s.say(f"So {h.name} tried every day. After {days} days, {h.he} could {skill}!",
          f"They practised for {days} days. Then, all at once, {h.name} could {skill}!")
    s.also(f'"Look at me!" {h.he} shouted.', "Everyone clapped.", f"{h.name} could not believe it.")
    s.ask(None, f"{h.name} wanted to {skill}.", f"What did {h.name} want to learn?", f"What did {h.name} want to do?")
    s.ask(days, f"It took {days} days.", "How long did it take?", "How many days did it take?",
          f"After how many days could {h.name} {skill}?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?",
          f"Who told {h.name} to try every day?" if "every day" in s.text() else f"Who showed {h.name} how to do it?")
    s.ask(None, f"{h.name} {failed}.", f"What happened when {h.name} tried?", "What happened the first time?")
    s.ask("Yes", f"Yes, {h.name} learned to {skill}.", f"Did {h.name} learn it?",
          f"Could {h.name} {skill} in the end?")
    s.close(f"After {days} days, {h.name} could {skill}.",
            s.one("you should never give up", "you need time to learn new things", "a little every day is enough"),
            f"Now {h.name} helps others who want to learn it.", f"{h.name} hugged {f.name} and was very proud.",
            f"That night, {h.name} went to bed tired and proud.")
    s.title = s.one(f"{h.name} Learns Something New", "Never Give Up")
    s.topics += ["learning something new", f"{a(h.kind)} who learns to {skill}", f"{h.name} and {f.name}",
                 "not giving up", f"learning to {skill}", f"{a(h.kind)} and {a(f.kind)}"]


OBSTACLES = {"a wide river": ("built a small raft", "raft"), "a high wall": ("found a little door", "door"),
             "a deep hole": ("laid a plank over it", "plank"),
             "a dark tunnel": ("lit a lamp", "lamp"), "a fallen tree": ("crawled under it", "tree"),
             "a muddy road": ("hopped from stone to stone", "stone")}


def journey(s: Story) -> None:
    h, f, x = s.hero, s.friend, draw_thing(s.rng)
    relative, she = s.rng.choice(cast.RELATIVES)
    goal = s.one("on the other side of the forest", "on top of the hill", "in the next village", "by the sea",
                 "near the old mill", "at the end of the valley")
    obstacle = s.rng.choice(tuple(OBSTACLES))
    solved, _ = OBSTACLES[obstacle]
    s.open()
    s.say(f"{h.His} {relative} lived {goal}.")
    s.say(f"One day, {h.name} wanted to bring {x.a_full} to {h.his} {relative}.",
          f'"I will visit my {relative} and bring a gift," said {h.name}. The gift was {x.a_full}.')
    s.say(f"{h.He} packed a bag and began to walk.", f"Early in the morning, {h.he} set off.")
    s.also(f"{h.He} walked past green fields.", "The road was long.", "A butterfly flew along for a while.")
    s.new_paragraph()
    s.say(f"On the way, there was {obstacle}. {h.name} could not go on.",
          f"After an hour, {h.he} came to {obstacle}.")
    s.say(f"There {h.he} met {s.meet(f)}.", f"{cast.upper_first(s.meet(f))} was there, too.")
    s.say(f'"I want to go the same way," said {f.name}. "Let us think."', f'"We can do it together," said {f.name}.')
    s.say(f"They {solved} and got past it.", f"Together they {solved}. It worked!")
    s.also(f'"That was fun," said {f.name}.', "Then they ate some bread and rested.")
    s.new_paragraph()
    s.say(f"In the evening, {h.name} came to {h.his} {relative}.",
          f"At last, {h.name} saw the house of {h.his} {relative}.")
    s.ask(relative, f"{h.name} wanted to visit {h.his} {relative}.", f"Who did {h.name} want to visit?",
          f"Who was the {x.noun} for?", f"Who got the {x.noun}?")
    s.ask(None, f"{h.name} brought {x.a_full}.", f"What did {h.name} bring?", "What was the gift?")
    s.ask(None, f"There was {obstacle} on the way.", "What was on the way?", f"What stopped {h.name}?",
          "What was the problem?")
    s.ask(None, f"They {solved}.", "How did they get past it?", "What did they do?",
          f"How did they get past {obstacle}?")
    s.ask(f.name, f"{h.name} met {f.name} on the way.", f"Who did {h.name} meet on the way?", f"Who helped {h.name}?",
          f"Who did {h.name} meet?")
    s.ask_colour(x)
    s.close(f"{h.name} came to {h.his} {relative} and gave {'her' if she == 'she' else 'him'} the {x.noun}.",
            s.one("together every road is shorter", "there is always a way", "it is good to think before you act"),
            f'"What a beautiful {x.noun}!" said {h.his} {relative}. They sat by the fire and drank warm milk.',
            f"{h.His} {relative} was so happy to see {h.him}.",
            f"{h.name} gave {'her' if she == 'she' else 'him'} the {x.noun}, and there was hot soup for everyone.")
    s.title = s.one(f"The Long Way of {h.name}", f"{h.name} and the {x.full.title()}")
    s.topics += ["a journey", f"{h.name} and {a(x.noun)}", f"{a(h.kind)} who goes on a journey", "a long walk",
                 f"{h.name} and {f.name}", f"{obstacle}", f"{a(x.full)}",
                 "an adventure",
                 f"a visit to a {relative}" if relative[0] not in "au" else f"a visit to an {relative}",
                 f"{a(h.kind)} and {a(x.noun)}"]


def rescue(s: Story) -> None:
    h, f = s.hero, s.friend
    trap = s.one("in a deep hole", "on a high rock", "in the thick mud", "in an old net", "under a fallen branch",
                 "on a small island", "on thin ice")
    tool = s.one("a long rope", "a strong branch", "a ladder", "a wooden board", "a little boat")
    place = s.one("forest", "meadow", "lake", "hill", "field", "river")
    s.open()
    s.say(f"One day, {h.name} was walking near the {place}.",
          f"One cold morning, {h.he} was on the way to the {place}.")
    s.say(f'Suddenly, {h.he} heard a small voice. "Help! Help!"', f'"Help me!" someone called.')
    s.say(f"{h.name} ran and saw {a(f.kind)}. It was stuck {trap}." if not f.is_child
          else f"{h.name} ran and saw {a(f.kind)} who was stuck {trap}.",
          f"It was {a(f.kind)} named {f.name}, stuck {trap}.")
    if f.name not in s.paragraphs[-1][-1]:
        s.say(f'"My name is {f.name}. I cannot get out," said the {f.kind}.')
    s.new_paragraph()
    s.say(f'"Do not be afraid. I will help you," said {h.name}.',
          f"{h.name} was a little scared, but {h.he} wanted to help.")
    s.say(f"{h.He} found {tool} and pulled as hard as {h.he} could.", f"{h.He} looked around and found {tool}.")
    s.also("One, two, three!", f'"Hold on!" {h.he} called.', "It was not easy at all.")
    s.say(f"At last, {f.name} was free.", f"With {tool}, {h.name} got {f.name} out.")
    s.say(f'"You saved me! Thank you, {h.name}," said {f.name}.', f'"Thank you! You are so brave," {f.name} said.')
    s.ask(f.name, f"{f.name} needed help.", "Who needed help?", "Who was stuck?", "Who called for help?")
    s.ask(h.name, f"{h.name} saved {f.name}.", f"Who saved {f.name}?", f"Who helped {f.name}?", "Who was brave?")
    s.ask(None, f"{f.name} was stuck {trap}.", f"Where was {f.name}?", f"Where was {f.name} stuck?")
    s.ask(None, f"{h.name} used {tool}.", f"What did {h.name} use?", f"How did {h.name} save {f.name}?",
          f"What did {h.name} find?")
    s.ask(f.kind, f"{f.name} was {a(f.kind)}.", f"What was {f.name}?")
    s.close(f"{h.name} saved {f.name} with {tool}.",
            s.one("everyone can be a hero", "it is good to help someone in need",
                  "even small ones can do big things"),
            f"From that day on, they were best friends.", f"{h.name} took {f.name} home and made some warm tea.",
            f"A week later, {f.name} brought a big cake to say thank you.")
    s.title = s.one(f"{h.name} to the Rescue", f"{h.name} Helps {f.name}")
    s.topics += ["helping someone", f"{h.name} and {f.name}", f"{a(h.kind)} who saves {a(f.kind)}", "a hero",
                 f"{a(h.kind)} and {a(f.kind)}", "a rescue", f"a brave {h.kind}"]


SHAPES = (bad_weather, fear, learning, journey, rescue)
