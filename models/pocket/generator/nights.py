"""Story shapes of seeds, strange sounds, sleepless nights, greed and the way home."""

from . import cast
from .cast import a, other
from .story import Story


def garden(s: Story) -> None:
    h, f = s.hero, s.friend
    plant = s.one("sunflower", "rose", "pumpkin", "apple tree", "tulip", "bean", "cherry tree", "carrot", "lily",
                  "pear tree")
    n_weeks = s.rng.randint(2, 8)
    weeks = cast.count_of(n_weeks, "week", "weeks", True)
    colour = s.rng.choice(cast.COLOURS)
    s.open()
    s.say(f"One spring day, {s.meet(f)} gave {h.name} a tiny seed.",
          f"One day, {h.name} got a tiny seed from {s.meet(f)}.")
    s.say(f"{h.name} put it into {cast.a(colour)} pot and gave it some water.",
          f"{h.name} planted it in {cast.a(colour)} pot.")
    s.say(f"Every morning, {h.he} looked at the pot, but nothing happened.",
          f"{h.He} waited and waited, but there was only brown earth.")
    s.say(f'"It does not grow," said {h.name} sadly.', f'"Maybe the seed is bad," {h.he} thought and was sad.')
    s.new_paragraph()
    s.say(f'"Be patient," said {f.name}. "A seed needs water, sun and time."',
          f'"Wait a little more," said {f.name}. "Good things need time."')
    s.also(f"So {h.name} put the pot into the sun.", f"So {h.name} sang to the seed every evening.",
           f"{h.name} gave it water every day.")
    s.say(f"After {weeks}, a small green leaf came out!",
          f"{cast.upper_first(weeks)} went by. Then there was a little green leaf!")
    s.say(f"It grew and grew and became a beautiful {plant}.", f"In summer, it was a big {plant}.")
    s.ask(plant, f"The seed became {a(plant)}.", "What did the seed become?", "What grew in the pot?",
          f"What did {h.name} grow?")
    s.ask(f.name, f"{f.name} gave {h.name} the seed.", f"Who gave {h.name} the seed?", "Who had the seed?")
    s.ask(None, f"It took {weeks}.", "How long did it take?", "When did the leaf come out?")
    s.ask(cast.NUMBER_WORDS[n_weeks], f"It took {weeks}.", "How many weeks did it take?")
    s.ask(None, "A seed needs water, sun and time.", "What does a seed need?")
    s.ask(colour, f"The pot was {colour}.", "What colour was the pot?")
    s.ask(None, f"{h.name} was sad because the seed did not grow.", f"Why was {h.name} sad?")
    s.record.update(plant=plant, colour=colour)
    s.close(f"The seed became a beautiful {plant}.", s.one("good things need time", "it is good to be patient"),
            f"{h.name} showed it to everyone.",
            f'"You were right," {h.name} said to {f.name}. They sat beside it and smiled.',
            f"{h.name} was so proud of the {plant}.")
    s.title = s.one("The Tiny Seed", f"The {plant.title()} of {h.name}")
    s.topics += ["a garden", "a seed", f"{h.name} and the {plant}", "being patient", f"{a(h.kind)} with a garden",
                 f"{a(plant)}", f"{h.name} and {f.name}", "waiting", f"{a(h.kind)} and {a(plant)}"]


def mystery(s: Story) -> None:
    h, f = s.hero, s.friend
    sound = s.one("a strange noise", "a soft knock", "a funny squeak", "a long howl", "a deep hum",
                  "a scratching sound")
    where = s.one("in the attic", "in the cellar", "outside the window", "behind the barn", "in the kitchen",
                  "under the floor")
    doing = s.one("looking for something to eat", "singing to the moon", "building a bed of leaves", "dancing alone",
                  "hiding from the cold", "cooking soup", "playing an old flute")
    lamp = s.one("a candle", "a lantern", "a small lamp")
    s.open()
    s.say(f"One dark night, {h.he} heard {sound} {where}.",
          f"In the middle of the night, {h.name} woke up. There was {sound} {where}.")
    s.say('"What can it be?" ' + f"{h.name} whispered.", f'"Is it a ghost?" {h.he} thought.',
          f'{h.name} sat up in bed. "Who is there?"')
    s.also("The moon was full.", "It was very quiet for a moment.", f"{h.His} heart went boom, boom, boom.")
    s.say(f"{h.He} took {lamp} and went to look.", f"{h.name} was scared, but {h.he} took {lamp} and went to see.")
    s.new_paragraph()
    s.say(f"Step by step, {h.he} came closer. Then {h.he} saw it!",
          f"{h.He} looked around the corner, and what did {h.he} see?")
    s.say(f"It was only {f.name} the {f.kind}, {doing}." if not f.is_child
          else f"It was only {h.his} friend {f.name}, {doing}.")
    s.say(f'"You scared me!" said {h.name}. "I am sorry," said {f.name}. "I could not sleep."',
          f'"Oh, it is only you!" {h.name} laughed.')
    s.say(f"{h.name} gave {f.name} some warm milk and a biscuit.", "Then they both laughed and drank warm milk.")
    s.ask(None, f"{h.name} heard {sound} {where}.", f"What did {h.name} hear?",
          f"What did {h.name} hear in the night?")
    s.ask(None, f"The sound was {where}.", f"Where was the sound?", f"Where did {h.name} hear it?")
    s.ask(f.name, f"It was {f.name}.", "Who was it?", "Who made the sound?", "Who made the noise?")
    s.ask(None, f"{f.name} was {doing}.", f"What was {f.name} doing?")
    s.ask(None, f"{h.name} took {lamp}.", f"What did {h.name} take?", f"What did {h.name} carry?")
    s.close(f"It was only {f.name}, and {h.name} was not scared any more.",
            s.one("many things are not as scary as they seem", "it is good to look before you are afraid"),
            f"After that, {h.name} slept very well.", "They looked at the stars until they were tired.",
            f"Now {h.name} is not afraid of sounds in the night.")
    s.title = s.one("The Strange Sound", f"{h.name} in the Night")
    s.topics += ["a strange sound", "the night", f"{h.name} and {f.name}", "a mystery",
                 f"{a(h.kind)} who hears something", "something strange", f"{a(h.kind)} and {a(f.kind)}",
                 "a little secret", f"a brave {h.kind}"]


def sleepless(s: Story) -> None:
    h, f = s.hero, s.friend
    why = s.one("the moon was too bright", "the wind was so loud", "the bed was too cold",
                f"{h.he} was thinking about the next day", f"{h.he} had slept all afternoon")
    counted = s.one("stars", "sheep", "clouds", "drops of rain", "leaves")
    n = s.rng.randint(5, 20)
    number = cast.NUMBER_WORDS[n]
    s.open()
    s.say(f"One night, {h.name} could not sleep because {why}.",
          f"It was late, but {h.name} could not sleep, because {why}.")
    s.say(f"{h.He} turned to the left. {h.He} turned to the right. It did not help.",
          f"{h.He} closed {h.his} eyes, but sleep did not come.")
    s.also(f"{h.He} drank some water.", f"{h.He} hugged {h.his} pillow.", "The clock went tick, tock.")
    s.say(f"So {h.he} got up and went outside. There was {s.meet(f)}.", f"Then {s.meet(f)} looked in at the window.")
    s.say(f'"I cannot sleep," said {h.name}. "Then let us count {counted}," said {f.name}.',
          f'"Try to count {counted}," said {f.name}. "That always helps me."')
    s.new_paragraph()
    s.say(f"{h.name} began to count. One, two, three, four...", f"They counted together, very slowly.")
    s.say(f"After {number} {counted}, {h.name} was fast asleep.",
          f"At {number}, {h.name} closed {h.his} eyes and fell asleep.")
    s.ask(None, f"{h.name} could not sleep because {why}.", f"Why could {h.name} not sleep?",
          f"Why was {h.name} awake?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?", f"Who said to count {counted}?")
    s.ask(counted if " " not in counted else None, f"{h.name} counted {counted}.", f"What did {h.name} count?",
          "What did they count?")
    s.ask(number, f"{h.name} counted {number} {counted}.", f"How many {counted} did {h.name} count?")
    s.close(f"{h.name} counted {number} {counted} and fell asleep.",
            s.one("a calm friend can help you rest", "counting helps you sleep"),
            f"{f.name} smiled and whispered, \"Good night, {h.name}.\"",
            f"{f.name} put a blanket over {h.him} and went home.", "And the moon shone over the quiet world.")
    s.title = s.one(f"{h.name} Cannot Sleep", f"Good Night, {h.name}")
    s.topics += ["sleeping", "a good night", "going to bed", f"{a(h.kind)} who cannot sleep",
                 f"{h.name} and {f.name}", "the moon and the stars", "bedtime", f"{a(h.kind)} and {a(f.kind)}"]


def greed(s: Story) -> None:
    h, f = s.hero, s.friend
    one = s.one("berry", "cookie", "plum", "cherry", "pancake", "muffin", "pear", "nut")
    many = cast.FOODS[one]
    n = s.rng.randint(7, 20)
    number = cast.NUMBER_WORDS[n]
    s.open()
    s.say(f"{h.name} loved {many} more than anything.", f"There was nothing that {h.name} liked more than {many}.")
    s.say(f"One day, {h.he} found a whole basket of {many}.",
          f"One day, there was a big bowl of {many} on the table.")
    s.say(f'"Do not eat too many," said {s.meet(f)}.',
          f'{cast.upper_first(s.meet(f))} said, "Please do not eat them all."')
    s.say(f"But {h.name} did not listen. {h.He} ate {number} {many}!",
          f"But {h.name} ate and ate. {h.He} ate {number} of them!")
    s.also("They were so sweet.",
           f"{h.His} face was full of crumbs." if one in ("cookie", "pancake", "muffin")
           else f"{h.His} mouth was sticky.")
    s.new_paragraph()
    s.say(f"Soon {h.his} tummy hurt very much.", f'"Oh, my tummy hurts!" cried {h.name}.')
    s.say(f"{h.He} lay down and could not play.", f"{h.He} felt sick and went to bed.")
    s.say(f"{f.name} came with a cup of warm tea. \"Drink this,\" {f.he} said.",
          f"{f.name} brought some tea and sat down beside {h.him}.")
    s.say(f'"You were right. Next time, I will share," said {h.name}.',
          f'"I am sorry that I did not listen," {h.name} said.')
    s.ask(many, f"{h.name} ate {many}.", f"What did {h.name} eat?", f"What did {h.name} love?")
    s.ask(number, f"{h.name} ate {number} {many}.", f"How many {many} did {h.name} eat?",
          f"How many did {h.name} eat?")
    s.ask(None, f"{h.His} tummy hurt because {h.he} ate too many {many}.", f"Why was {h.name} sick?",
          f"Why did {h.name} feel sick?", f"Why did {h.his} tummy hurt?")
    s.ask(f.name, f"{f.name} brought some tea.", "Who brought the tea?")
    s.ask("tea", f"{f.name} brought tea.", f"What did {f.name} bring?")
    s.close(f"{h.name} felt better and promised to share.",
            s.one("too much of a good thing is not good", "it is better to share than to eat everything",
                  "it is good to listen to a friend"),
            f"The next day, {h.name} felt better and gave the rest of the {many} to {f.name}.",
            f"Soon {h.he} felt better, and they shared the rest of the {many}.")
    s.title = s.one(f"Too Many {many.title()}", f"{h.name} and the {many.title()}")
    s.topics += ["eating too much", f"{h.name} and the {many}", f"{many}", f"{a(h.kind)} who eats too much",
                 f"{a(h.kind)} and {many}", "food", f"{h.name} and {f.name}", "listening to a friend"]


def way_home(s: Story) -> None:
    h, f = s.hero, s.friend
    place = s.one("forest", "market", "fields", "hills", "big town", "snow")
    chased = s.one("a butterfly", "a little bird", "a rolling ball", "a funny cloud", "a falling leaf")
    sign = s.one("a tall tower", "an old mill", "a red roof", "a crooked tree", "a white bridge",
                 "the smoke of a chimney")
    relative, she = s.rng.choice(cast.RELATIVES[:4])
    s.open()
    s.say(f"One afternoon, {h.he} ran after {chased} and did not look where {h.he} went.",
          f"One day, {h.name} followed {chased} for a long, long time.")
    s.say(f"When {h.he} stopped, {h.he} was lost in the {place}.",
          f"Then {h.he} stopped and looked around. {h.He} was lost in the {place}!")
    s.say(f'"I want to go home," cried {h.name}.', f"{h.name} was scared and did not know the way home.")
    s.new_paragraph()
    s.say(f"Then {s.meet(f)} heard {h.him}.", f"{cast.upper_first(s.meet(f))} came along the path.")
    s.say(f'"Are you lost?" asked {f.name}. "What can you see from your home?"',
          f'"Do not cry. Tell me about your home," said {f.name}.')
    s.say(f'"I can see {sign}," said {h.name}.', f'{h.name} thought hard. "There is {sign} near my home."')
    s.say(f'"I know where that is!" said {f.name}. "Come with me."',
          f'"Then I know the way," said {f.name}, and they walked together.')
    s.also("They walked hand in hand." if h.is_child and f.is_child else "They walked side by side.",
           "The sun was going down.", f"On the way, {f.name} told funny stories.")
    s.say(f"At last, {h.name} saw {sign}. {h.He} was home!", f"Soon they saw {sign}.")
    s.ask(None, f"{h.name} ran after {chased}.", f"Why did {h.name} get lost?", f"What did {h.name} follow?",
          f"What did {h.name} run after?")
    s.ask(None, f"{h.name} was lost in the {place}.", f"Where was {h.name} lost?", f"Where did {h.name} get lost?")
    s.ask(f.name, f"{f.name} showed {h.name} the way.", f"Who knew the way?", f"Who showed {h.name} the way?")
    s.ask(f.name, f"{f.name} helped {h.name}.", f"Who helped {h.name}?")
    s.ask(None, f"There was {sign} near the home of {h.name}.", f"What was near the home of {h.name}?",
          f"What could {h.name} see from home?")
    s.ask(relative, f"The {relative} of {h.name} was waiting.", f"Who was waiting at home?",
          f"Who was waiting for {h.name}?")
    s.close(f"{f.name} showed {h.name} the way home.",
            s.one("it is good to look where you go", "it is good to ask for help", "a friend can show you the way"),
            f"{h.His} {relative} was waiting at the door and hugged {h.him}.",
            f"{h.His} {relative} was waiting with hot soup for everyone.")
    s.title = s.one(f"{h.name} Finds the Way", "The Way Home")
    s.topics += ["getting lost", "the way home", f"{h.name} and {f.name}", f"{a(h.kind)} who gets lost",
                 f"{h.name} in the {place}", f"{a(h.kind)} and {a(f.kind)}", f"{a(h.kind)} in the {place}",
                 "coming home"]


SHAPES = (garden, mystery, sleepless, greed, way_home)
