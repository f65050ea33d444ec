"""Makes the collection `conversation`: turns of made-up chats, and questions of an assistant that is to remember them.

Run it here: it writes corpus.jsonl, queries.jsonl and qrels.tsv, the same each time. Every sentence was written for it.
"""

import json
import random

PEOPLE = ["Mira", "Jonas", "Priya", "Tomek", "Aisha", "Luca", "Hanne", "Kofi", "Yuki", "Elena", "Ravi", "Nora"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]

# For each fact: ways to say it, values, and questions in other words. {n} is who speaks, {v} the value, {d} a day.
FACTS = [
    (["we finally have the keys, so from {d} on I live in {v}", "packed the last box, {v} is home now since {d}", "signed the lease in {v}, moving there on {d}"],
     ["Lisbon", "Gdansk", "Oslo", "Nagoya", "Leeds", "Turin", "Accra", "Pune", "Basel", "Ghent", "Tartu", "Porto"],
     ["Which city did {n} move to?", "Where does {n} live these days?"]),
    (["got a puppy, he is called {v} and chews everything", "our cat {v} slept on my keyboard again", "the rabbit is fine, {v} just hates carrots"],
     ["Biscuit", "Pixel", "Moss", "Waffle", "Juno", "Otto", "Pepper", "Zuko", "Nala", "Fig", "Momo", "Clover"],
     ["What is the name of {n}'s pet?", "How is {n}'s animal called?"]),
    (["I handed in my notice, starting as {v} on {d}", "they made me {v}, effective {d}", "new badge, new title: {v} from {d}"],
     ["a nurse", "head of support", "a pastry chef", "team lead", "a translator", "data engineer", "a gardener", "site manager", "a paramedic", "an archivist", "product owner", "a carpenter"],
     ["What job did {n} take?", "What is {n}'s occupation now?"]),
    (["no dessert for me, {v} makes my throat swell", "please keep {v} away from my plate, I end up in hospital otherwise", "the doctor confirmed it: I cannot have {v}"],
     ["peanuts", "shellfish", "sesame", "walnuts", "eggs", "soy", "celery", "mustard", "kiwi", "almonds", "lupin", "milk"],
     ["What is {n} allergic to?", "Which food must {n} avoid?"]),
    (["booked it! flying to {v} on {d}", "tickets are bought, two weeks of {v} beginning {d}", "on {d} we take the night train to {v}"],
     ["Crete", "Patagonia", "Kyoto", "Madeira", "Tunis", "Iceland", "Corsica", "Zanzibar", "Quebec", "Jordan", "Vienna", "Hanoi"],
     ["Where is {n} going on holiday?", "What is the destination of {n}'s trip?"]),
    (["third lesson on the {v} and my fingers hurt", "I practise the {v} at night with the windows shut", "sold the piano and picked up a {v} instead"],
     ["cello", "banjo", "harp", "trumpet", "oboe", "drums", "ukulele", "violin", "accordion", "flute", "sitar", "clarinet"],
     ["Which instrument does {n} play?", "What is {n} learning to play?"]),
    (["my old car died, drove home in a {v}", "the {v} failed its inspection again", "charging the {v} takes all night"],
     ["Fiat Panda", "Volvo 240", "Nissan Leaf", "Skoda Fabia", "Mazda 3", "Renault Zoe", "Dacia Duster", "Kia Niro", "Opel Corsa", "Honda Jazz", "Seat Leon", "Mini"],
     ["What car does {n} drive?", "Which vehicle belongs to {n}?"]),
    (["remember, I turn {v} on {d} and want no party", "cake on {d} please, it is number {v}", "{d}: {v} candles, bring water"],
     ["30", "41", "28", "55", "33", "47", "39", "60", "25", "36", "44", "52"],
     ["When is {n}'s birthday?", "On which day was {n} born?"]),
    (["could not put {v} down, finished at four in the morning", "halfway through {v} and I already want to read it again", "gave up on {v} after fifty pages"],
     ["the lighthouse novel", "a history of salt", "that memoir of a diver", "the robot poems", "a book on moss", "the tunnel thriller", "letters from a ship", "a guide to clouds", "the bread essays", "a saga of bees", "the chess story", "notes on paint"],
     ["What was {n} reading?", "Which book did {n} talk about?"]),
    (["the surgeon looks at my {v} on {d}", "physio for the {v} starts {d}", "slipped on ice, the {v} is in plaster until {d}"],
     ["knee", "shoulder", "ankle", "wrist", "hip", "elbow", "thumb", "back", "jaw", "heel", "collarbone", "neck"],
     ["Which body part did {n} injure?", "What is wrong with {n} medically?"]),
]

CHATTER = [
    "ha, same here", "ok, talk tomorrow", "did anybody see the match last night?", "the coffee machine is broken again",
    "sounds good to me", "no idea, ask somebody else", "it rains here since Monday", "thanks, that helped a lot",
    "I will send the pictures later", "lunch at noon?", "sorry, was in a meeting all day", "what a week",
    "the train was late, as always", "let us decide on {d}", "happy to help, just call me", "who has the spare charger?",
]


def day(rng):
    return f"{rng.randint(1, 28)} {rng.choice(MONTHS)}"


def main():
    rng = random.Random(7)
    turns, queries, judgements = [], [], []
    for fact, (ways, values, questions) in enumerate(FACTS):
        rng.shuffle(values)
        for place, (name, value) in enumerate(zip(PEOPLE, values)):
            key = f"f{fact}-{place}"
            turns.append((key, f"{name}: {ways[place % len(ways)].format(v=value, d=day(rng))}"))
            if (fact + place) % 2 == 0:
                queries.append({"id": f"q{len(queries)}", "text": questions[place % len(questions)].format(n=name)})
                judgements.append((queries[-1]["id"], key))
    for number in range(240):
        turns.append((f"c{number}", f"{rng.choice(PEOPLE)}: {rng.choice(CHATTER).format(d=day(rng))}"))
    rng.shuffle(turns)
    with open("corpus.jsonl", "w") as corpus:
        for key, text in turns:
            corpus.write(json.dumps({"id": key, "text": f"[2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}] {text}"}) + "\n")
    with open("queries.jsonl", "w") as file:
        file.writelines(json.dumps(query) + "\n" for query in queries)
    with open("qrels.tsv", "w") as file:
        file.writelines(f"{query}\t{document}\t1\n" for query, document in judgements)


main()
