"""Story shapes about friends: sharing, meeting, racing, surprising, quarrelling."""

from . import cast
from .cast import a, draw_thing, other
from .story import Story


def sharing(s: Story) -> None:
    h, f = s.hero, s.friend
    one = s.rng.choice(tuple(cast.FOODS))
    many = cast.FOODS[one]
    total = s.rng.randint(2, 12)
    gives = s.rng.randint(1, total - 1)
    as_word = s.rng.random() < 0.5
    count = lambda n: cast.count_of(n, one, many, as_word)
    number = lambda n: cast.NUMBER_WORDS[n] if as_word else str(n)
    s.open()
    s.say(f"One day, {h.name} had {count(total)}.", f"{h.name} had a basket with {count(total)}.",
          f"One morning, {h.name} picked {count(total)}."
          if one not in ("cookie", "sandwich", "pancake", "muffin", "biscuit", "bun", "egg")
          else f"One morning, {h.name} packed {count(total)} in a bag.")
    s.say(f"On the way home, {h.he} met {s.meet(f)}.", f"Then {s.meet(f)} came by.",
          f"{h.He} sat down to eat. Then {s.meet(f)} came along.")
    s.say(f"{f.name} looked sad and hungry.", f'"I am so hungry," said {f.name}.', f"{f.name} had nothing to eat.")
    s.new_paragraph()
    s.also(f"{h.name} thought about it for a moment.", f"At first, {h.name} wanted to keep all of them.",
           f"{h.name} looked at the {many} and then at {f.name}.")
    s.say(f'"You can have some of my {many}," said {h.name}.', f'"Here, take some of mine," {h.name} said.',
          f'"I have enough for two," said {h.name}.')
    s.say(f"{h.name} gave {f.name} {count(gives)} and kept {count(total - gives)}.",
          f"{h.He} gave {count(gives)} to {f.name}. Now {h.name} had {count(total - gives)} left.")
    s.say(f'"Thank you! You are very kind," said {f.name}.', f"{f.name} was so happy and said thank you.")
    s.ask(number(total), f"{h.name} had {count(total)} at first.", f"How many {many} did {h.name} have at first?",
          f"How many {many} did {h.name} have in the beginning?")
    s.ask(number(gives), f"{h.name} gave {f.name} {count(gives)}.", f"How many {many} did {h.name} give to {f.name}?",
          f"How many {many} did {f.name} get?")
    s.ask(number(total - gives), f"{h.name} had {count(total - gives)} left.", f"How many {many} did {h.name} keep?",
          f"How many {many} did {h.name} have left?", f"How many {many} were left?")
    s.ask(f.name, f"{f.name} was hungry.", "Who was hungry?")
    s.ask(h.name, f"{h.name} shared the {many}.", f"Who shared the {many}?", "Who was kind?")
    s.ask(many, f"{h.name} shared {many}.", f"What did {h.name} share?", f"What did {h.name} give to {f.name}?",
          "What did they eat?")
    s.record.update(food=many, count=str(total))
    s.close(f"{h.name} shared the {many} with {f.name}, and they became good friends." if not f.is_child
            else f"{h.name} shared the {many}, and both were happy.",
            s.one("sharing makes everyone happy", "it is good to share", "food tastes better with a friend"),
            f"They sat under a tree and ate together.", f"They ate together and talked until the evening.",
            f"The next day, {f.name} brought a little gift for {h.name}.")
    s.title = s.one(f"{h.name} Shares", f"The Basket of {many.title()}")
    s.topics += ["sharing", f"{h.name} and {f.name}", f"{a(h.kind)} who shares {many}", f"{h.name} and {a(one)}",
                 f"{many}", "being kind",
                 f"{a(h.kind)} and {a(f.kind)}"]


GAMES = ("hide and seek", "catch", "tag", "a clapping game", "a jumping game", "a guessing game", "knights",
         "a counting game")


def new_friend(s: Story) -> None:
    h, f = s.hero, s.friend
    game = s.rng.choice(GAMES)
    place = s.rng.choice(tuple(cast.PLACES))
    at = cast.PLACES[place]
    s.open()
    s.say(f"{h.name} was new and had no friends yet.",
          f"{h.He} often felt alone, because {h.he} had no one to play with.",
          f"{h.name} wished for a friend.")
    s.say(f"One day, {h.he} went to the {place} and saw {a(f.kind)} sitting all alone.",
          f"One afternoon {at} the {place}, {h.name} saw {a(f.kind)} who was all alone.")
    s.also(f"{h.name} felt shy.", f"{h.name} hid behind a tree at first.", f"{h.His} heart beat fast.")
    s.say(f'{h.name} went closer. "Hello, I am {h.name}. What is your name?"',
          f'"Hello! My name is {h.name}," said {h.name}. "Who are you?"')
    s.say(f'"I am {f.name}," said the {f.kind}.', f'"My name is {f.name}," the {f.kind} said with a shy smile.')
    s.new_paragraph()
    s.say(f'"Do you want to play {game} with me?" asked {h.name}.', f'"Shall we play {game}?" asked {h.name}.')
    s.say(f'"Yes, I would love to!" said {f.name}.', f'"Oh yes!" {f.name} said.', f"{f.name} nodded and jumped up.")
    s.say(f"They played {game} all afternoon.", f"They played {game} and laughed until the sun went down.")
    s.also(f"{f.name} was very good at it.", f"{h.name} fell down once, but it did not hurt.",
           "A little bird watched them from a branch.")
    s.ask(game, f"They played {game}.", "What did they play?", "Which game did they play?",
          f"What did {h.name} and {f.name} play?")
    s.ask(place, f"They met {at} the {place}.", "Where did they meet?", f"Where did {h.name} meet {f.name}?")
    s.ask(f.name, f"{h.name} met {f.name}.", f"Who did {h.name} meet?", f"Who was the new friend?",
          "Who was all alone?")
    s.ask(None, f"{h.name} had no friends at first.", f"Why was {h.name} alone?" , f"Why was {h.name} sad at first?")
    s.ask(f.kind, f"{f.name} was {a(f.kind)}.", f"What was {f.name}?")
    s.close(f"{h.name} and {f.name} became friends.",
            s.one("it is good to say hello first", "a new friend can be anywhere", "a kind word can make a friend"),
            f'"Will you come back tomorrow?" asked {f.name}. "Yes," said {h.name}, "and every day!"',
            f"From then on, {h.name} and {f.name} were best friends.", f"Now {h.name} was not alone any more.")
    s.title = s.one("A New Friend", f"{h.name} Meets {f.name}")
    s.topics += ["making a new friend", f"{h.name} and {f.name}", f"{a(h.kind)} and {a(f.kind)}", "friends",
                 "a new friend", f"{a(h.kind)} who is alone", "friendship"]


def contest(s: Story) -> None:
    h, f = s.hero, s.friend
    prize = draw_thing(s.rng)
    kind, verb = s.rng.choice((("running race", "run"), ("swimming race", "swim"), ("boat race", "row"),
                               ("sack race", "hop"), ("race around the lake", "run")))
    helps = s.rng.random() < 0.5
    s.open()
    s.say(f"One day, there was a big {kind} in the village.", f"Every summer, there was a {kind} near the village.")
    s.say(f"The prize was {prize.a_full}.", f"The winner would get {prize.a_full}.")
    s.say(f"{h.name} wanted to win, and so did {s.meet(f)}.",
          f"{h.name} wanted to take part, and so did {s.meet(f)}.")
    s.also(f"{h.name} practised every morning.", "Everyone came to watch.", f'"I am faster than you!" said {f.name}.')
    s.new_paragraph()
    s.say("One, two, three, go! The race began.", '"Ready, steady, go!" someone called.')
    s.say(f"{f.name} was very fast and was soon in front.", f"At first, {f.name} was in the lead.")
    if helps:
        s.say(f"But then {f.name} got hurt and could not go on.", f"But suddenly {f.name} stopped. {f.His} leg hurt.")
        s.say(f"{h.name} stopped to help {f.name} and did not think about the prize.",
              f"{h.name} could win now, but {h.he} stopped to help.")
        s.say(f"They finished the race together, last of all, but everyone clapped.")
        s.ask(None, f"{h.name} stopped to help {f.name}.", f"Why did {h.name} stop?",
              f"What did {h.name} do when {f.name} was hurt?")
        s.ask(f.name, f"{f.name} got hurt.", "Who got hurt?", "Who was hurt?")
        ending, moral = f"{h.name} helped {f.name}, and they finished together.", s.one("helping is better than winning", "a friend is worth more than a prize")
        s.say(f'"You both get a prize," said the judge, "because you are good friends."',
              f"The judge gave {h.name} the {prize.noun} for being so kind.")
    else:
        s.say(f"Then {f.name} sat down to rest and fell asleep.", f"But {f.name} stopped to eat some cake.",
              f"But {f.name} turned around to wave and got lost.")
        why = s.paragraphs[-1][-1]
        s.say(f"{h.name} was slow, but {h.he} did not stop.", f"{h.name} kept going, step by step.")
        s.say(f"In the end, {h.name} won the race!", f"At last, {h.name} came in first and won!")
        s.ask(h.name, f"{h.name} won the race.", "Who won the race?", "Who won?", "Who was the winner?")
        s.ask(f.name, f"{f.name} was fast at first.", "Who was in front at first?", "Who was in the lead at first?")
        s.ask(None, f"{h.name} did not stop.", f"Why did {h.name} win?", f"How did {h.name} win?")
        ending, moral = f"{h.name} won the race and got the {prize.noun}.", s.one("slow and steady can win",
                "you should never give up")
        s.also(f'"Well done," said {f.name}.', f"{f.name} was a little angry, but then {f.he} smiled.")
    s.ask(None, f"The prize was {prize.a_full}.", "What was the prize?", "What did the winner get?")
    s.ask_colour(prize)
    s.close(ending, moral, "That evening, there was a big party with music and cake.",
            f"{h.name} went home tired and happy.", "Everyone was glad that day.")
    s.title = s.one("The Big Race", f"{h.name} and the Race")
    s.topics += ["a race", f"{h.name} and {f.name}", f"{a(h.kind)} in a race", "a contest",
                 f"{a(h.kind)} and {a(f.kind)}", "winning"]


def surprise(s: Story) -> None:
    h, f = s.hero, s.friend
    gift = draw_thing(s.rng)
    age = s.rng.randint(4, 10)
    cake = s.one("apple", "honey", "berry", "plum", "carrot", "nut", "cherry")
    s.open()
    s.say(f"It was {h.his} birthday. {h.name} was now {cast.NUMBER_WORDS[age]} years old.",
          f"One day, {h.name} turned {cast.NUMBER_WORDS[age]}. It was {h.his} birthday.")
    s.say("But no one said a word about it.", f"But nobody came to see {h.him}.")
    s.say(f'"Everyone has forgotten me," {h.he} thought, and {h.he} felt sad.',
          f"{h.name} felt sad and went for a walk.")
    s.new_paragraph()
    s.say(f"In the evening, {s.meet(f)} knocked at the door.", f"Then {h.he} met {s.meet(f)}.")
    s.say(f'"Come with me, {h.name}," said {f.name}. "I want to show you something."',
          f'"Close your eyes and come along," {f.name} said.')
    where = s.one("in the barn", "in the garden", "under the big tree", "by the lake", "on the hill")
    s.say(f"They went to a place {where}. It was very quiet." if where != "in the barn"
          else "They went into the barn. It was dark and quiet.")
    s.say('"Surprise!" shouted all the friends.',
          'Suddenly, all the friends jumped out. "Happy birthday!" they shouted.')
    s.say(f"There was {a(cake)} cake, and {f.name} gave {h.name} {gift.a_full}.",
          f"They had made {a(cake)} cake. {f.name} had a gift, too. It was {gift.a_full}.")
    s.also("They danced and sang all night.", f"{h.name} blew out all the candles.",
           "There were little lights everywhere.")
    number = cast.NUMBER_WORDS[age]
    s.ask(number, f"{h.name} was {number} years old.", f"How old was {h.name}?", f"How old did {h.name} become?")
    s.ask(None, f"{f.name} gave {h.name} {gift.a_full}.", f"What did {f.name} give {h.name}?",
          f"What gift did {h.name} get?", "What was the gift?")
    s.ask(f.name, f"{f.name} gave {h.name} the {gift.noun}.", f"Who gave {h.name} the {gift.noun}?",
          "Who had a gift?")
    s.ask(cake, f"It was {a(cake)} cake.", "What kind of cake was it?", "Which cake did they eat?")
    s.ask(None, f"The party was {where}.", "Where was the party?")
    s.ask_feeling(h, "sad", "no one said a word", f"{h.he} thought that everyone had forgotten {h.his} birthday")
    s.ask_colour(gift)
    s.close(f"{h.name} had a surprise party with all {h.his} friends.",
            s.one("good friends do not forget you", "friends think of each other"),
            f'"Thank you all! This is the best birthday ever," said {h.name}.',
            f"{h.name} was the happiest {h.kind} in the world.",
            f"{h.name} laughed. Nobody had forgotten {h.him} at all.")
    s.title = s.one("The Surprise", f"The Birthday of {h.name}")
    s.topics += ["a birthday", "a surprise", f"{h.name} and {f.name}", "a birthday party",
                 f"{a(h.kind)} and {a(gift.noun)}", f"{h.name} and {a(gift.noun)}",
                 f"the birthday of {a(h.kind)}", "a party"]


def quarrel(s: Story) -> None:
    h, f, x = s.hero, s.friend, draw_thing(s.rng)
    place = s.rng.choice(tuple(cast.PLACES))
    at = cast.PLACES[place]
    s.open()
    s.say(f"{h.name} and {f.name} the {f.kind} were good friends.",
          f"{h.He} had a good friend, {a(f.kind)} named {f.name}.")
    s.say(f"One day, they found {x.a_full} {at} the {place}.",
          f"{cast.upper_first(at)} the {place}, they saw {x.a_full}.")
    s.say(f'"It is mine! I saw it first," said {h.name}. "No, it is mine," said {f.name}.',
          f'"I want the {x.noun}," said {h.name}. "No, I want it," said {f.name}.')
    s.say(f"They pulled and shouted, and then they both went home angry.",
          "They were both very angry and did not talk any more.")
    s.new_paragraph()
    s.say(f"At home, {h.name} felt bad. It was no fun to be alone.", f"Soon {h.name} missed {f.name} very much.")
    s.say(f"The next day, {h.name} went to {f.name}'s home.",
          f"So {h.he} took the {x.noun} and went to see {f.name}.")
    s.say(f'"I am sorry," said {h.name}. "A friend is better than {a(x.noun)}."',
          f'"You can have the {x.noun}," said {h.name}. "I am sorry that I shouted."')
    s.say(f'"I am sorry, too," said {f.name}. "Let us share it."',
          f"{f.name} smiled. \"We can both have it. One day you, one day me.\"")
    s.also("They shook hands.", "They hugged each other.", "Then they both laughed.")
    s.ask(None, f"They found {x.a_full}.", "What did they find?", f"What did {h.name} and {f.name} find?")
    s.ask(None, f"They found it {at} the {place}.", f"Where did they find the {x.noun}?", "Where was it?")
    s.ask(None, f"They were angry because they both wanted the {x.noun}.", "Why were they angry?",
          f"Why was {h.name} angry?", "Why did they shout?")
    s.ask(h.name, f"{h.name} said sorry first.", "Who said sorry first?", "Who said sorry?")
    s.ask_colour(x)
    s.close(f"{h.name} and {f.name} said sorry and shared the {x.noun}.",
            s.one("a friend is better than a toy", "saying sorry helps", "it is good to share"),
            f"After that, they shared the {x.noun} and never fought about it again.",
            "They played together until it was dark.", f"So they were friends again.")
    s.title = s.one(f"The {x.full.title()}", "Two Friends")
    s.topics += ["two friends who fight", f"{h.name} and {f.name}", "saying sorry",
                 f"{h.name}, {f.name} and {a(x.noun)}", f"{a(h.kind)} and {a(f.kind)}",
                 "being angry", f"{a(x.full)}", f"{h.name} and {a(x.noun)}"]


SHAPES = (sharing, new_friend, contest, surprise, quarrel)
