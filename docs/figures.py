"""Pictures of the five mechanisms, from trained or compiled models, and of a table: `python docs/figures.py`.

Each is drawn twice, for light and for dark pages. Names of pictures as arguments draw these alone; `--png` writes PNG
besides, to look at. `attention` needs the extra `vizdoom`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

import hf_mech  # noqa: F401  (registers the models)
from hf_mech.control.play import watch
from hf_mech.hub import Results
from hf_mech.models.stack import most_probable_operations
from hf_mech.programs.psl import compile_program, program_text
from hf_mech.viz.palette import PAGE
from training.strips.settings import PAPER as STRIPS

FOLDER = Path(__file__).with_name("figures")
CARDS = Path(__file__).parents[1] / "model_cards"
RESULTS = Path(__file__).with_name("results")
WIDTH = 6.4  # inches
matplotlib.rcParams |= {"svg.hashsalt": "hf_mech", "font.size": 10}

Colours = dict[str, str]


def canvas(colours: Colours, width: float, height: float) -> Axes:
    """Axes over the whole figure, one unit to a column and to a row, the first row at the top."""
    figure = Figure(figsize=(WIDTH, WIDTH * height / width), facecolor=colours["paper"])
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return axes


def write(axes: Axes, x: float, y: float, text: str, colour: str, **how: Any) -> None:
    """A text around a place."""
    axes.text(x, y, text, color=colour, **{"ha": "center", "va": "center", "parse_math": False} | how)


def box(axes: Axes, x: float, y: float, width: float, height: float, fill: str, edge: str, **how: Any) -> None:
    """A box with round corners, its upper left corner at a place."""
    shape = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, facecolor=fill, edgecolor=edge, **how))


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, **how: Any) -> None:
    """An arrow from place to place."""
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.3}
    axes.add_patch(FancyArrowPatch(start, end, color=colour, **style | how))


def stack(colours: Colours) -> Axes:
    """The stack of stack-reverse-string over a string and its answer."""
    name = CARDS / "stack-reverse-string"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)
    text = tokenizer("a b b a b [SEP]", return_tensors="pt")
    ids = model.generate(**text, max_new_tokens=5)
    with torch.no_grad():
        output = model(ids[:, :-1], output_stack_attentions=True)
    tokens = tokenizer.convert_ids_to_tokens(ids[0])
    operations = most_probable_operations(output.stack_actions[0])[0]
    asked = text["input_ids"].shape[1]
    floor = 7.2
    axes = canvas(colours, 12.6, 9.1)
    for row, label in ((0.6, "reads"), (1.5, "does"), (floor - 2.5, "stack"), (floor + 1.35, "says")):
        write(axes, 0.1, row, label, colours["soft"], ha="left")
    held: list[str] = []
    for place, (token, operation) in enumerate(zip(tokens, operations, strict=False)):
        x = 1.9 + place * 0.98
        if place:
            pushes = int(operation) == 0
            held = [*held, token] if pushes else held[:-1]
            write(axes, x, 1.5, "push" if pushes else "pop", colours["read" if pushes else "accent"], size=9)
        write(axes, x, 0.6, token.strip("[]").lower(), colours["ink"], weight="bold" if place < asked else "normal")
        axes.plot([x - 0.36, x + 0.36], [floor, floor], color=colours["faint"], linewidth=1.5)
        for level, element in enumerate(held):
            top = level == len(held) - 1
            fill, edge = ("new", "accent") if top else ("panel", "edge")
            box(axes, x - 0.36, floor - 0.95 - level, 0.72, 0.85, colours[fill], colours[edge])
            write(axes, x, floor - 0.52 - level, element, colours["ink" if top else "soft"])
        if place >= asked - 1:
            arrow(axes, (x, floor + 0.2), (x, floor + 0.95), colours["accent"])
            write(axes, x, floor + 1.35, tokens[place + 1], colours["accent"], weight="bold")
    return axes


TRACE = ["board(c1,l1)", "sail(l1,l2)", "debark(c1,l2)", "sail(l2,l1)", "board(c1,l1)"]
MEANINGS = {"p0": "car at l1", "p3": "car on ferry", "p2": "car at l2", "p1": "ferry at l1", "p4": "ferry at l2"}
"""What the heads of strips-ferry-1c came to stand for. The model numbers them; the names are ours."""


def heads(colours: Colours) -> Axes:
    """The heads of strips-ferry-1c, one for each proposition, over a trace whose last action is impossible."""
    model = AutoModel.from_pretrained(CARDS / "strips-ferry-1c").eval()
    actions = {action.name: action for action in model.to_domain().actions}
    ids = torch.tensor([[model.config.actions.index(name) for name in TRACE]])
    with torch.no_grad():
        refused = model(ids).inapplicability[0].amax(-1).round().int().tolist()
    axes = canvas(colours, 13.2, 7.9)
    xs = [4.0 + 2.02 * place for place in range(len(TRACE))]
    for x, name in zip(xs, TRACE, strict=True):
        write(axes, x, 0.5, name, colours["ink"], size=9.5)
    deleted: dict[str, int] = {}
    for row, (head, meaning) in enumerate(MEANINGS.items()):
        y = 1.5 + row
        write(axes, 0.1, y, f"head {row + 1}:", colours["faint"], ha="left", size=9)
        write(axes, 1.25, y, meaning, colours["ink"], ha="left")
        axes.plot([xs[0] - 0.9, xs[-1] + 0.7], [y, y], color=colours["line"], linewidth=1.2, zorder=0)
        for place, (x, name) in enumerate(zip(xs, TRACE, strict=True)):
            action = actions[name]
            if head in action.pre:
                wrong = head in deleted
                colour = colours["wrong" if wrong else "accent"]
                axes.plot(x - 0.32, y, "o", markersize=11, markeredgecolor=colour, color=colours["paper"], zorder=3)
                write(axes, x - 0.32, y, "?", colour, size=9, weight="bold", zorder=4)
                if wrong:
                    bend = {"connectionstyle": "arc3,rad=0.28", "linewidth": 1.8}
                    arrow(axes, (x - 0.5, y + 0.16), (xs[deleted[head]] + 0.42, y + 0.2), colour, **bend)
            if head in action.add | action.delete:
                adds = head in action.add
                write(
                    axes,
                    x + 0.25,
                    y,
                    "+" if adds else "\N{MINUS SIGN}",
                    colours["read" if adds else "ink"],
                    size=15,
                    weight="bold",
                    bbox={"facecolor": colours["paper"], "edgecolor": "none", "pad": 0.5},
                )
                if adds:
                    deleted.pop(head, None)
                else:
                    deleted[head] = place
    for x, no in zip(xs, refused, strict=True):
        write(axes, x, 6.75, "impossible" if no else "possible", colours["wrong" if no else "accent"], weight="bold")
    key = "?  needs it true      +  makes it true      \N{MINUS SIGN}  makes it false"
    write(axes, 6.6, 7.45, key, colours["soft"], size=9)
    return axes


def registers(colours: Colours) -> Axes:
    """The registers of a compiled induction head: two productions, two layers, and the cell that each reads."""
    model, tokenizer = compile_program(program_text("induction"))
    words = ["wug", "dax", "fep", "wug", "dax"]
    batch = tokenizer(" ".join(words), return_tensors="pt")
    with torch.no_grad():
        output = model.dat(**batch, output_attentions=True)
        said = tokenizer.decode(model.generate(**batch, max_new_tokens=1)[0, -1])
    reads = [layer[0, 0, : len(words), : len(words)].argmax(-1).tolist() for layer in output.attentions]
    axes = canvas(colours, 12.9, 7.9)
    xs = [4.1 + 1.85 * cell for cell in range(len(words))]
    rows = {"symbol": 1.0, "before": 3.5, "said": 6.6}
    labels = {
        "symbol": "the word",
        "before": "layer 1\nbefore = the word\none cell to the left",
        "said": "layer 2\nsaid = the word where\nbefore is my word",
    }
    for name, y in rows.items():
        write(axes, 0.1, y + 0.4, labels[name], colours["soft"], ha="left", size=9, linespacing=1.35)
    for cell, x in enumerate(xs):
        values = {"symbol": words[cell], "before": words[reads[0][cell]] if cell else "", "said": ""}
        if cell == len(words) - 1:
            values["said"] = words[reads[1][cell]]
        for name, y in rows.items():
            if name == "said" and cell < len(words) - 1:
                continue
            fill, edge = ("new", "accent") if name == "said" else ("panel", "edge")
            box(axes, x - 0.72, y, 1.44, 0.85, colours[fill], colours[edge])
            write(axes, x, y + 0.44, values[name] or "nil", colours["ink" if values[name] else "faint"])
        if cell:
            arrow(axes, (xs[reads[0][cell]] + 0.25, 1.9), (x - 0.3, 3.45), colours["read"])
    last, read = len(words) - 1, reads[1][-1]
    assert said == words[read]
    box(axes, xs[read] - 0.82, 0.9, 1.64, 3.55, "none", colours["accent"], linewidth=2)
    box(axes, xs[last] - 0.82, 0.9, 1.64, 1.05, "none", colours["accent"], linewidth=2)
    dashed = {"linestyle": (0, (4, 2)), "arrowstyle": "-", "linewidth": 1.8}
    arrow(axes, (xs[last] - 0.4, 1.98), (xs[read] + 0.72, 3.75), colours["accent"], **dashed)
    write(axes, xs[last] + 0.42, 2.6, "the same\nword", colours["accent"], size=9)
    bend = {"connectionstyle": "arc3,rad=0.2", "linewidth": 1.8}
    arrow(axes, (xs[read], 4.5), (xs[last] - 0.78, 6.9), colours["accent"], **bend)
    write(axes, xs[read] - 0.1, 6.4, "takes the word\nof that cell", colours["accent"], size=9)
    return axes


BEGINNING = (
    "Lucy was a cheerful girl. Her aunt gave her a blue scarf. At the park, Lucy ran and jumped, and soon the scarf "
    "was gone. A"
)
END = (
    " Lucy was so happy that she hugged the {}. After that, Lucy took good care of the blue scarf and never lost it "
    "again."
)


def pairs(colours: Colours) -> Axes:
    """One prefix with three suffixes: the next word by belief-state-stories."""
    name = CARDS / "belief-state-stories"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)
    prefix = tokenizer(BEGINNING, return_tensors="pt")["input_ids"]
    axes = canvas(colours, 13.0, 8.0)
    headings = (("F reads the beginning", 1.9), ("the next word", 6.15), ("B reads the end", 10.7))
    for heading, x in headings:
        write(axes, x, 0.45, heading, colours["ink"], weight="bold")
    for row, helper in enumerate(("wise rabbit", "tiny bear", None)):
        y = 2.15 + 2.35 * row
        suffix = tokenizer(END.format(helper), return_tensors="pt")["input_ids"] if helper else None
        with torch.no_grad():
            chances, ids = model(prefix, suffix_ids=suffix).logits[0, -1].softmax(-1).topk(3)
        box(axes, 0.1, y - 0.95, 3.3, 1.9, colours["panel"], colours["edge"])
        write(axes, 1.75, y, "… and soon the\nscarf was gone.\nA", colours["ink"], size=9.5, linespacing=1.4)
        box(axes, 8.55, y - 0.95, 4.3, 1.9, colours["panel"], colours["edge"], linestyle="-" if helper else "--")
        said = f"Lucy was so happy that\nshe hugged the {helper}.\nAfter that, …" if helper else "nothing yet"
        write(axes, 10.7, y, said, colours["ink" if helper else "faint"], size=9.5, linespacing=1.4)
        for place, (chance, token) in enumerate(zip(chances.tolist(), ids.tolist(), strict=True)):
            if chance < 0.01:
                break
            middle = y if chance > 0.9 else y + 0.6 * (place - 1)
            axes.add_patch(
                matplotlib.patches.Rectangle((6.1, middle - 0.18), 1.3 * chance, 0.36, color=colours["accent"])
            )
            write(axes, 5.95, middle, tokenizer.decode(token).strip(), colours["ink"], ha="right", weight="bold")
            write(axes, 6.25 + 1.3 * chance, middle, f"{100 * chance:.0f} %", colours["soft"], ha="left", size=9)
        arrow(axes, (3.55, y), (4.5, y), colours["read"])
        if helper:
            arrow(axes, (8.45, y + 0.75), (7.4, y + 0.75), colours["read"])
    return axes


LANES = ("return", "frame", "button 1", "button 2")


def attention(colours: Colours) -> Axes:
    """The steps that the last decision of an episode of msat-my-way-home reads, with the frames that it reads most."""
    model = AutoModel.from_pretrained(CARDS / "msat-my-way-home", attn_implementation="eager").eval()
    watched = watch(model, render_mode="rgb_array")
    weights, names, first = watched.attention(model)
    read = torch.as_tensor(weights)[-1, :, names.index(f"s{first + len(names) // 4 - 1}")].mean(0).view(-1, 4)
    mixed = matplotlib.colors.LinearSegmentedColormap.from_list("", [colours["panel"], colours["accent"]])
    steps = len(read)
    axes = canvas(colours, steps + 4.2, 13.2)
    left, top = 3.7, 8.1
    for step in range(steps):
        for lane in range(4):
            box(
                axes,
                left + step + 0.06,
                top + lane + 0.06,
                0.88,
                0.88,
                mixed(float(read[step, lane] / read.max())),
                "none",
            )
        if (first + step) % 5 == 0 or step == steps - 1:
            write(axes, left + step + 0.5, top + 4.5, str(first + step), colours["soft"], size=9)
    for lane, label in enumerate(LANES):
        write(axes, left - 0.3, top + lane + 0.5, label, colours["ink"], ha="right", size=9)
    write(axes, left - 0.3, top + 4.5, "step", colours["soft"], ha="right", size=9)
    most = sorted(read[:-1].sum(-1).topk(3).indices.tolist())
    for place, step in enumerate([*most, steps - 1]):
        x, last = 0.2 + place * 6.0, step == steps - 1
        axes.imshow(watched.pictures[first + step], extent=(x, x + 5.7, 5.3, 1.0), aspect="auto", zorder=2)
        line = colours["read" if last else "accent"]
        label = f"step {first + step}: decides" if last else f"step {first + step}"
        write(axes, x + 2.85, 0.5, label, line, weight="bold", size=9.5)
        axes.plot([x + 2.85, left + step + 0.5], [5.35, top - 0.1], color=line, linewidth=1.3)
        box(axes, left + step, top - 0.06, 1, 4.12, "none", line, linewidth=1.6)
    axes.set(xlim=(0, steps + 4.2), ylim=(13.2, 0))
    return axes


def traces(colours: Colours) -> Axes:
    """Table 1 of the STRIPS paper as curves: the test accuracy of each domain over the number of traces."""
    figure = Figure(figsize=(WIDTH, 0.68 * WIDTH), facecolor=colours["paper"], layout="constrained")
    panels = figure.subplots(2, 3).flat
    shown = {
        "two_part_code": ("two-part code", {"color": colours["accent"]}),
        "by_size": ("gradient, by number of traces", {"color": colours["read"]}),
        "redraw": ("gradient, with redraws", {"color": colours["read"], "linestyle": "--"}),
        "paper": ("gradient, as in the paper", {"color": colours["soft"]}),
    }
    for domain, axes in zip(STRIPS.values("domain"), panels, strict=False):
        entries = [
            entry
            for file in RESULTS.glob(f"strips-{domain}*/results.json")
            for entry in Results.load(file).results
            if entry.metric == "test_trace_accuracy" and entry.paper  # on the paper's traces, with its number of heads
        ]
        published = sorted({(entry.setting["num_train"], entry.paper.mean, entry.paper.std) for entry in entries})
        sizes, means, deviations = zip(*published, strict=True)
        dots = {"fmt": "s", "markersize": 3.5, "capsize": 2, "color": colours["ink"]}
        axes.errorbar(sizes, means, deviations, label="the paper's figures", **dots)
        for preset, (label, style) in shown.items():
            points: dict[int, list[float]] = {}
            for entry in entries:
                if entry.setting["preset"] == preset:
                    points.setdefault(entry.setting["num_train"], []).append(entry.mean)
            found = sorted((size, sum(values) / len(values)) for size, values in points.items())
            axes.plot(*zip(*found, strict=True), marker=".", linewidth=1.3, label=label, **style)
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size // 1_000}k" if size >= 1_000 else f"{size}" for size in sizes])
        axes.set_ylim(top=1 + 0.03 * (1 - axes.get_ylim()[0]))
        axes.minorticks_off()
        axes.set_title(domain, fontsize=10, loc="left", color=colours["ink"])
        axes.set_facecolor(colours["paper"])
        axes.tick_params(colors=colours["soft"], labelsize=8)
        axes.spines[:].set_color(colours["soft"])
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("training traces", fontsize=9, color=colours["soft"])
    figure.supylabel("test accuracy", fontsize=9, color=colours["soft"])
    (last,) = panels
    last.axis("off")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    last.legend(handles, labels, loc="center", frameon=False, fontsize=8.5, labelcolor=colours["ink"])
    return figure.axes[0]


FIGURES: dict[str, Callable[[Colours], Axes]] = {
    "stack": stack,
    "heads": heads,
    "registers": registers,
    "pairs": pairs,
    "attention": attention,
    "traces": traces,
}


def main() -> None:
    """Draws them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of pictures; without any, all")
    parser.add_argument("--png", action="store_true", help="write PNG, too")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    for name in arguments.names or FIGURES:
        for number, scheme in enumerate(("light", "dark")):
            figure = FIGURES[name]({meaning: pair[number] for meaning, pair in PAGE.items()}).figure
            file = arguments.folder / f"{name}-{scheme}.svg"
            figure.savefig(file, metadata={"Date": None})
            if arguments.png:
                figure.savefig(file.with_suffix(".png"), dpi=150)
            print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
