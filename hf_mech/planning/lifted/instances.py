"""Instances of the domains, drawn by a seed: a small one to learn from, and one at least twice as large to judge on.

Generators add objects and true atoms to a `Draft`, so that random walks use every action: levels of fuel and counts
are few, things that are used up stand near, and roads lead both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product

from hf_mech.planning.lifted.draft import Draft, lines, neighbours

GENERATORS: dict[str, Callable[[Draft], None]] = {}


def generator(function: Callable[[Draft], None]) -> Callable[[Draft], None]:
    """Enters a generator under its name."""
    GENERATORS[function.__name__] = function
    return function


# ------------------------------------------------------------------------------------------------ the development set


@generator
def blocksworld(draft: Draft) -> None:
    """Towers of random heights."""
    blocks = draft.add("block", 4, 9, "b")
    draft.true("handempty")
    tops: list[str] = []
    for block in blocks:
        below = draft.die.below(len(tops) + 1)
        if below < len(tops):
            draft.true(f"on {block} {tops[below]}")
            tops[below] = block
        else:
            draft.true(f"ontable {block}")
            tops.append(block)
    draft.true(*(f"clear {top}" for top in tops))


@generator
def ferry(draft: Draft) -> None:
    """Cars at random ports."""
    ports, cars = draft.add("port", 3, 6, "l"), draft.add("car", 3, 6, "c")
    draft.each(cars, "at {} {}", ports)
    draft.true("empty-ferry", f"at-ferry {draft.one(ports)}")


@generator
def gripper(draft: Draft) -> None:
    """Balls in random rooms."""
    rooms, balls = draft.add("room", 3, 6), draft.add("ball", 4, 8)
    draft.each(balls, "at {} {}", rooms)
    draft.true(f"at-robot {draft.one(rooms)}", *(f"free {g}" for g in draft.add("gripper", 2, 4)))


@generator
def miconic(draft: Draft) -> None:
    """Passengers with two different floors."""
    floors = draft.add("floor", 4, 8, "f")
    draft.order("above", floors, every=True)
    for passenger in draft.add("passenger", 3, 6, "p"):
        origin, destination = draft.some(floors, 2)
        draft.true(f"origin {passenger} {origin}", f"destin {passenger} {destination}")
    draft.true(f"lift-at {draft.one(floors)}")


@generator
def logistics(draft: Draft) -> None:
    """Cities with an airport, other places and a truck."""
    places: list[str] = []
    for city in draft.add("city", 3, 6):
        own = draft.add("airport", 1, 1) + draft.add("place", 2, 4)
        draft.true(*(f"in-city {place} {city}" for place in own))
        for truck in draft.add("truck", 1, 1):
            draft.true(f"of-city {truck} {city}", f"truck-at {truck} {draft.one(own)}")
        places += own
    draft.each(draft.add("plane", 2, 4), "plane-at {} {}", draft.objects["airport"])
    draft.each(draft.add("package", 3, 6), "at {} {}", places)


@generator
def hanoi(draft: Draft) -> None:
    """All discs on the first peg."""
    discs, pegs = draft.add("disc", 4, 8, "d"), draft.add("peg", 3, 6)  # the smallest disc first
    draft.order("smaller", discs, every=True)
    draft.true(*(f"smaller {disc} {peg}" for disc, peg in product(discs, pegs)))
    tower = [*discs, pegs[0]]
    draft.true(*(f"on {disc} {below}" for disc, below in pairwise(tower)))
    draft.true(f"clear {discs[0]}", *(f"clear {peg}" for peg in pegs[1:]))


@generator
def driverlog(draft: Draft) -> None:
    """Links and paths, both connected."""
    places = draft.add("location", 3, 6, "s")
    draft.roads("link", places)
    draft.roads("path", places)
    trucks = draft.add("truck", 2, 4)
    draft.each([*draft.add("driver", 2, 4), *trucks, *draft.add("item", 2, 6)], "at {} {}", places)
    draft.true(*(f"empty {truck}" for truck in trucks))


# ------------------------------------------------------------------------------------------------- the other domains


@generator
def depots(draft: Draft) -> None:
    """A hoist and a pallet at every place, crates in random towers."""
    places = draft.add("depot", 1, 2) + draft.add("distributor", 2, 4)
    top: dict[str, str] = {}
    for place in places:
        (pallet,), (hoist,) = draft.add("pallet", 1, 1), draft.add("hoist", 1, 1)
        draft.true(f"at {pallet} {place}", f"at {hoist} {place}", f"available {hoist}")
        top[place] = pallet
    draft.each(draft.add("truck", 2, 4), "at {} {}", places)
    for crate in draft.add("crate", 3, 6):
        place = draft.one(places)
        draft.true(f"on {crate} {top[place]}", f"at {crate} {place}")
        top[place] = crate
    draft.true(*(f"clear {surface}" for surface in top.values()))


@generator
def rovers(draft: Draft) -> None:
    """Rovers with all equipment, samples at most places."""
    places, modes = draft.add("waypoint", 3, 6, "w"), draft.add("mode", 2, 4)
    objectives = draft.add("objective", 2, 4)
    draft.roads("visible", places, 2)
    sight = sorted(atom for atom in draft.initial if atom[0] == "visible")
    draft.each(draft.add("lander", 2, 4), "at-lander {} {}", places)
    draft.true(*(f"channel-free {lander}" for lander in draft.objects["lander"]))
    for kind in ("soil", "rock"):
        draft.true(*(f"at-{kind}-sample {place}" for place in draft.some(places, len(places) - 1)))
    for objective in objectives:
        draft.true(*(f"visible-from {objective} {place}" for place in draft.some(places, 2)))
    for rover in draft.add("rover", 2, 4):
        (store,), (camera,) = draft.add("store", 1, 1), draft.add("camera", 1, 1)
        draft.true(f"available {rover}", f"store-of {store} {rover}", f"empty {store}", f"on-board {camera} {rover}")
        draft.true(f"at {rover} {draft.one(places)}", f"calibration-target {camera} {draft.one(objectives)}")
        draft.true(*(f"equipped-for-{kind} {rover}" for kind in ("soil-analysis", "rock-analysis", "imaging")))
        draft.true(*(f"supports {camera} {mode}" for mode in draft.some(modes, max(1, len(modes) - 1))))
        draft.true(*(f"can-traverse {rover} {a} {b}" for _, (a, b) in sight))


@generator
def satellite(draft: Draft) -> None:
    """Two instruments on each satellite."""
    directions, modes = draft.add("direction", 3, 6, "d"), draft.add("mode", 2, 4)
    for satellite in draft.add("satellite", 2, 4):
        draft.true(f"power-avail {satellite}", f"pointing {satellite} {draft.one(directions)}")
        for instrument in draft.add("instrument", 2, 2):
            draft.true(f"on-board {instrument} {satellite}")
            draft.true(f"calibration-target {instrument} {draft.one(directions)}")
            draft.true(*(f"supports {instrument} {mode}" for mode in draft.some(modes, 1 + len(modes) // 3)))


@generator
def zenotravel(draft: Draft) -> None:
    """Every aircraft with some fuel."""
    cities, levels = draft.add("city", 3, 6), draft.add("flevel", 4, 8, "fl", first=0)
    draft.order("next", levels)
    aircraft = draft.add("aircraft", 3, 6, "plane")
    draft.each([*aircraft, *draft.add("person", 3, 6)], "at {} {}", cities)
    draft.each(aircraft, "fuel-level {} {}", levels)


@generator
def npuzzle(draft: Draft) -> None:
    """Tiles in random order."""
    cells = draft.grid("position", (3, 3), (5, 4))
    neighbours(draft, "neighbour", cells)
    empty, *others = draft.some(draft.objects["position"], len(draft.objects["position"]))
    tiles = draft.add("tile", len(others), len(others), "t")
    draft.true(f"empty {empty}", *(f"at {tile} {place}" for tile, place in zip(tiles, others, strict=True)))


@generator
def sokoban(draft: Draft) -> None:
    """Boxes away from the walls."""
    cells = draft.grid("cell", (4, 4), (7, 6))
    neighbours(draft, "next", cells)
    for line in lines(cells):
        for three in zip(line, line[1:], line[2:], strict=False):
            draft.true(f"line {' '.join(three)}", f"line {' '.join(reversed(three))}")
    inner = [cell for row in cells[1:-1] for cell in row[1:-1]]
    boxes = draft.add("box", 2, 4)
    taken = draft.some(inner, len(boxes))
    draft.true(*(f"box-at {box} {cell}" for box, cell in zip(boxes, taken, strict=True)))
    free = [cell for cell in draft.objects["cell"] if cell not in taken]
    here = draft.one(free)
    draft.true(f"here {here}", *(f"clear {cell}" for cell in free if cell != here))


@generator
def grid(draft: Draft) -> None:
    """Locked places around the robot, and keys that fit them where it stands or beside it."""
    cells = draft.grid("place", (3, 3), (5, 4))
    neighbours(draft, "conn", cells)
    places, beside = draft.objects["place"], sorted(atom[1] for atom in draft.initial)
    shapes, keys = draft.add("shape", 2, 4), draft.add("key", 3, 6)
    draft.true("arm-empty", *(f"key-shape {key} {shapes[i % len(shapes)]}" for i, key in enumerate(keys)))
    locked = draft.some(places, len(places) // 3)
    free = [place for place in places if place not in locked]
    here = max(free, key=lambda place: sum(a == place and b in locked for a, b in beside))
    for place in locked:
        draft.true(f"locked {place}", f"lock-shape {place} {draft.one(shapes)}")
    draft.true(f"at-robot {here}", *(f"open {place}" for place in free))
    draft.each(keys, "at {} {}", [here, *(b for a, b in beside if a == here and b in free)])


@generator
def parking(draft: Draft) -> None:
    """Cars at random curbs, two curbs free."""
    curbs, cars = draft.add("curb", 5, 10), draft.add("car", 5, 13)
    draft.true(*(f"curb-clear {curb}" for curb in curbs[-2:]))
    for curb, car in zip(curbs[:-2], cars, strict=False):
        draft.true(f"at-curb {car}", f"at-curb-num {car} {curb}")
    front, behind = cars[: len(curbs) - 2], cars[len(curbs) - 2 :]
    hidden = draft.some(front, len(behind))
    draft.true(*(f"behind-car {car} {before}" for car, before in zip(behind, hidden, strict=True)))
    draft.true(*(f"car-clear {car}" for car in cars if car not in hidden))


@generator
def barman(draft: Draft) -> None:
    """Cocktails of two ingredients each. The first shaker is in a hand, filled for the first cocktail."""
    ingredients, levels = draft.add("ingredient", 2, 4), draft.add("level", 3, 3, "l", first=0)
    draft.order("next", levels)
    hands = draft.add("hand", 2, 4)
    for ingredient, dispenser in zip(ingredients, draft.add("dispenser", 2, 4), strict=True):
        draft.true(f"dispenses {dispenser} {ingredient}")
    recipes = {cocktail: draft.some(ingredients, 2) for cocktail in draft.add("cocktail", 2, 4)}
    for cocktail, (first, second) in recipes.items():
        draft.true(f"cocktail-part1 {cocktail} {first}", f"cocktail-part2 {cocktail} {second}")
    full, *shakers = draft.add("shaker", 2, 4)
    draft.true(*(f"shaker-empty-level {shaker} {levels[0]}" for shaker in [full, *shakers]))
    draft.true(f"holding {hands[0]} {full}", f"unshaked {full}", *(f"handempty {hand}" for hand in hands[1:]))
    draft.true(f"shaker-level {full} {levels[2]}", *(f"contains {full} {part}" for part in recipes["cocktail1"]))
    draft.true(*(f"shaker-level {shaker} {levels[0]}" for shaker in shakers))
    others = [*shakers, *draft.add("shot", 2, 4)]
    draft.true(*(f"{state} {each}" for state, each in product(("ontable", "empty", "clean"), others)))


@generator
def floortile(draft: Draft) -> None:
    """Robots on a floor without paint."""
    cells = draft.grid("tile", (4, 4), (6, 6))
    for row in cells:
        for a, b in pairwise(row):
            draft.true(f"left {a} {b}", f"right {b} {a}")
    for column in zip(*cells, strict=True):
        for a, b in pairwise(column):
            draft.true(f"down {a} {b}", f"up {b} {a}")
    colors, robots = draft.add("color", 2, 4), draft.add("robot", 2, 4)
    draft.true(*(f"available-color {color}" for color in colors))
    places = draft.some(draft.objects["tile"], len(draft.objects["tile"]))
    draft.true(*(f"robot-at {robot} {place}" for robot, place in zip(robots, places, strict=False)))
    draft.true(*(f"clear {place}" for place in places[len(robots) :]))
    draft.each(robots, "robot-has {} {}", colors)


@generator
def transport(draft: Draft) -> None:
    """Vehicles with room for two packages or more."""
    places, numbers = draft.add("location", 3, 7, "l"), draft.add("capacity-number", 4, 8, "n", first=0)
    draft.roads("road", places)
    draft.order("capacity-predecessor", numbers)
    vehicles = draft.add("vehicle", 3, 6)
    draft.each([*vehicles, *draft.add("package", 3, 8)], "at {} {}", places)
    draft.each(vehicles, "capacity {} {}", numbers[2:])


@generator
def spanner(draft: Draft) -> None:
    """A corridor that leads both ways."""
    places = draft.add("location", 3, 6, "l")
    neighbours(draft, "link", [places])
    spanners, nuts = draft.add("spanner", 4, 8), draft.add("nut", 3, 6)
    draft.each([*draft.add("man", 2, 4), *spanners, *nuts], "at {} {}", places)
    draft.true(*(f"useable {each}" for each in spanners), *(f"loose {nut}" for nut in nuts))


@generator
def tpp(draft: Draft) -> None:
    """Goods on sale at every market."""
    depots, markets = draft.add("depot", 2, 4), draft.add("market", 2, 4)
    draft.roads("connected", [*depots, *markets])
    levels, goods = draft.add("level", 3, 6, first=0), draft.add("goods", 2, 4)
    draft.order("next", levels)
    draft.initial = {(p, o[::-1]) if p == "next" else (p, o) for p, o in draft.initial}  # (next ?more ?less)
    trucks = draft.add("truck", 2, 4)
    draft.each(trucks, "at {} {}", [*depots, *markets])
    for thing in goods:
        draft.true(f"stored {thing} {levels[0]}", *(f"loaded {thing} {truck} {levels[0]}" for truck in trucks))
        for market in markets:
            draft.true(f"ready-to-load {thing} {market} {levels[0]}")
            draft.true(f"on-sale {thing} {market} {draft.one(levels[1:])}")


@generator
def visitall(draft: Draft) -> None:
    """A grid."""
    neighbours(draft, "connected", draft.grid("place", (3, 3), (5, 4)))
    here = draft.one(draft.objects["place"])
    draft.true(f"at-robot {here}", f"visited {here}")


@generator
def elevators(draft: Draft) -> None:
    """Slow elevators stop at all floors, fast ones at every other."""
    counts = draft.add("count", 5, 10, "n", first=0)
    draft.order("next", counts)
    draft.order("above", counts, every=True)
    slow, fast = draft.add("slow-elevator", 2, 4, "slow"), draft.add("fast-elevator", 2, 4, "fast")
    for lift in [*slow, *fast]:
        floors = counts if lift in slow else counts[::2]
        draft.true(*(f"reachable-floor {lift} {floor}" for floor in floors), f"lift-at {lift} {draft.one(floors)}")
        draft.true(f"passengers {lift} {counts[0]}", *(f"can-hold {lift} {number}" for number in counts[1:3]))
    draft.each(draft.add("passenger", 3, 6, "p"), "passenger-at {} {}", counts)


@generator
def freecell(draft: Draft) -> None:
    """Cards in random columns; a home for each suit begins with a card of value 0."""
    top = 4 if draft.big else 3
    numbers = draft.add("num", 4, 7, "n", first=0)
    draft.order("successor", numbers)
    draft.initial = {(p, o[::-1]) for p, o in draft.initial}  # (successor ?more ?less)
    suits = draft.add("suit-type", 2, 4, "suit")
    cards: list[tuple[int, int]] = []
    for s, value in product(range(len(suits)), range(top + 1)):
        card = f"card{s + 1}-{value}"
        draft.objects.setdefault("card", []).append(card)
        draft.true(f"suit {card} {suits[s]}", f"value {card} {numbers[value]}")
        if value:
            cards.append((s, value))
            draft.true(
                *(f"canstack {card} card{t + 1}-{value + 1}" for t in range(len(suits)) if (s + t) % 2 and value < top)
            )
        else:
            draft.true(f"home {card}")
    draft.die.shuffle(cards)
    columns = 6 if draft.big else 3
    for i, (s, value) in enumerate(cards):
        card, clear = f"card{s + 1}-{value}", i + columns >= len(cards)
        below = f"card{cards[i - columns][0] + 1}-{cards[i - columns][1]}"
        draft.true(f"on {card} {below}" if i >= columns else f"bottomcol {card}", *([f"clear {card}"] if clear else []))
    draft.true(f"colspace {numbers[0]}", f"cellspace {numbers[4 if draft.big else 2]}")


@generator
def storage(draft: Draft) -> None:
    """Containers full of crates, and depots of four areas with a hoist each."""
    draft.add("transitarea", 1, 1, "loadarea")
    for depot in draft.add("depot", 2, 4):
        areas = draft.add("storearea", 4, 4, f"{depot}-a")
        cells = [areas[:2], areas[2:]]
        neighbours(draft, "connected", cells)
        draft.true(f"connected {areas[0]} loadarea1", f"connected loadarea1 {areas[0]}")
        draft.true(*(f"in {area} {depot}" for area in areas), *(f"clear {area}" for area in areas[1:]))
        for hoist in draft.add("hoist", 1, 1):
            draft.true(f"at {hoist} {areas[0]}", f"available {hoist}")
    for container in draft.add("container", 2, 4):
        for area in draft.add("storearea", 2, 2, f"{container}-a"):
            draft.true(f"in {area} {container}", f"connected {area} loadarea1", f"connected loadarea1 {area}")
            for crate in draft.add("crate", 1, 1):
                draft.true(f"on {crate} {area}", f"in {crate} {container}")


@generator
def goldminer(draft: Draft) -> None:
    """Bombs and a laser in the free first column, and gold beneath the soft rock of the second."""
    cells = draft.grid("loc", (3, 3), (5, 4))
    neighbours(draft, "connected", cells)
    first = draft.some([row[0] for row in cells], len(cells))
    draft.true("arm-empty", f"robot-at {first[0]}", *(f"clear {cell}" for cell in first))
    draft.true(f"laser-at {first[1]}", *(f"bomb-at {cell}" for cell in (first[0], *first[2:])))
    for row in cells:
        draft.true(f"soft-rock-at {row[1]}", f"gold-at {row[1]}")
        for cell in row[2:]:
            draft.true(f"{draft.one(['soft-rock-at', 'soft-rock-at', 'hard-rock-at'])} {cell}")


@generator
def nomystery(draft: Draft) -> None:
    """Every road costs one or two units of fuel."""
    places, levels = draft.add("location", 4, 8, "l"), draft.add("fuellevel", 16, 32, "level", first=0)
    draft.roads("connected", places)
    for _, (a, b) in sorted(atom for atom in draft.initial if atom[0] == "connected"):
        if a < b:
            cost = levels[1 + draft.die.below(2)]
            draft.true(f"fuelcost {cost} {a} {b}", f"fuelcost {cost} {b} {a}")
    for left, spent in product(range(len(levels)), range(3)):
        if left + spent < len(levels):
            draft.true(f"sum {levels[left]} {levels[spent]} {levels[left + spent]}")
    trucks = draft.add("truck", 2, 4)
    draft.each([*trucks, *draft.add("package", 3, 6)], "at {} {}", places)
    draft.true(*(f"fuel {truck} {levels[-1]}" for truck in trucks))
