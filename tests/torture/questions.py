"""Random questions: by the grammar, damaged, of random characters, and much too large."""

from random import Random

from ..formulas import ENTITIES, RELATIONS

#: Names of the small graph whose formulas can be answered by trying everything, and of the toy run.
SMALL = ([f"e{i}" for i in range(ENTITIES)], [f"r{i}" for i in range(RELATIONS)])

VARIABLES = ("?", "?", "?", "?x", "?y", "?z")
SIGNS = [*'?!&|()=,"\\ \n\t', "!=", "∧", "∨", "¬", "≠", "?x", "r0", "e0", "é", "\0", "'", "\x1b"]

Names = tuple[list[str], list[str]]


def term(random: Random, names: Names) -> str:
    if random.random() < 0.65:
        return random.choice(VARIABLES)
    return quoted(random.choice(names[0]))


def quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def formula(random: Random, names: Names, depth: int) -> list[str]:
    """The words of a formula by the grammar."""
    way = random.random()
    if depth == 0 or way < 0.2:
        if random.random() < 0.15:
            sign = random.choice([" = ", " != "])
            return [term(random, names), sign, term(random, names)]
        relation = quoted(random.choice(names[1]))
        return [relation, "(", term(random, names), ", ", term(random, names), ")"]
    if way < 0.4:
        return ["!(", *formula(random, names, depth - 1), ")"]
    words: list[str] = []
    sign = " & " if way < 0.85 else " | "
    for _ in range(random.choice([2, 2, 3])):
        words += [*([sign] if words else []), "(", *formula(random, names, depth - 1), ")"]
    return words


def connected(random: Random, names: Names, size: int) -> list[str]:
    """A conjunction of a given size that hangs together, with negations in it."""
    reached, words = ["?"], []
    for number in range(size):
        here = random.choice(reached)
        there = random.choice([f"?v{number}", f"?v{number}", quoted(random.choice(names[0]))])
        ends = [here, there]
        random.shuffle(ends)
        if there.startswith("?"):
            reached.append(there)
        negated = "!" * (random.random() < 0.2)
        relation = quoted(random.choice(names[1]))
        words += [*([" & "] if words else []), f"{negated}{relation}({ends[0]}, {ends[1]})"]
    return words


def damaged(random: Random, words: list[str]) -> list[str]:
    """The words with some left out, repeated, exchanged or replaced."""
    words = list(words)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(words))
        words[place : place + 1] = random.choice(
            [[], [words[place]] * 2, [random.choice(SIGNS)], [random.choice(words), words[place]]]
        )
        words = words or ["?"]
    return words


def too_large(random: Random, names: Names) -> list[str]:
    """A formula that is larger than anybody needs, in one of several ways."""
    size = random.choice([70, 150, 300, 480, 600, 3000])
    relation, entity = quoted(random.choice(names[1])), quoted(random.choice(names[0]))
    atom = f"{relation}({entity}, ?)"
    match random.randrange(9):
        case 0:
            return [f"{relation}({entity}, ?x0)"] + [
                f" & {relation}(?x{i}, ?{f'x{i + 1}' if i < size - 1 else ''})" for i in range(size)
            ]
        case 1:
            return [atom, *[f" | {atom}"] * size]
        case 2:
            return [atom, *[f" & ?x{i} = ?{f'x{i - 1}' if i else ''}" for i in range(size)]]
        case 3:
            return ["!(" * size, atom, ")" * size]
        case 4:
            return [f"{relation}({'n' * size * 100}, ?)"]
        case 5:
            return [f"({atom} | {relation}(?, ?x{i}))" + " & " * (i < 40) for i in range(41)]
        case 6:
            return [f"{relation}(?, ?x{i}) & !(" for i in range(90)] + [atom, ")" * 90]
        case 7:
            return [atom, *[f" & ? != ?x{i}" for i in range(min(size, 150))]]
        case _:
            parts = [f"({atom} & {relation}(?x{i}, ?) | {relation}(?, ?x{i}))" for i in range(9)]
            return ["!(", " & ".join(parts), ")"]


def question(random: Random, names: Names) -> list[str]:
    """The words of a question of any kind."""
    way = random.random()
    if way < 0.4:
        return formula(random, names, random.choice([1, 2, 2, 3]))
    if way < 0.65:
        return connected(random, names, random.randint(1, 7))
    if way < 0.85:
        return damaged(random, formula(random, names, 2))
    if way < 0.97:
        return [random.choice(SIGNS) for _ in range(random.randint(0, 40))]
    return too_large(random, names)
