"""The toy's checkpoints: one that reaches its bar, and one that cannot."""

from dataclasses import replace

from safetensors.torch import save_file

from tests.training.toy.experiment import EXPERIMENT, Batches
from training.engine.recipe import Added, Checkpoints, Measured, Recipe, Shown

COUNTER = Recipe(
    name="counter",
    options="--seeds 3",
    task="counts modulo 5",
    metric="accuracy",
    bar=0.9,
    headline="{value} % right",
    count=20,
    dtype="float16",
)


class CountingCheckpoints(Checkpoints):
    experiment, script = EXPERIMENT, "train_toy"
    recipes = (COUNTER, replace(COUNTER, name="too-good", bar=1.1))

    def evaluate(self, run, model, processor, *, seed, count):
        ids = Batches(run.modulus)[seed]["input_ids"]
        right = model(ids).logits[:, :-1].argmax(-1) == ids[:, 1:]
        return {"accuracy": Measured(float(right.float().mean()), count)}

    def add(self, run, model, processor, folder):
        save_file({"beside": model.lm_head.weight[0].detach().clone()}, folder / "beside.safetensors")
        return Added(measured={"beside": Measured(0.5, 1)}, figures={"dot.png": (b"a picture", "A dot")})

    def batch(self, run, model, processor):
        return Batches(run.modulus)[0]

    def show(self, recipe, run, outcome, model, processor):
        return Shown(text={}, dataset="counting", config=None, paper="li2024stack", pipeline="text-generation")


CHECKPOINTS = CountingCheckpoints()
