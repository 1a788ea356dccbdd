"""Answers frames with the actions of a checkpoint; runs in Sample Factory's own Python environment.

    python serve.py --env=doom_my_way_home --experiment=NAME --train_dir=FOLDER [--eval_deterministic=True]

First it writes one line of JSON, what the checkpoint expects. Then it reads messages: `R` and 8 bytes, a seed, begin an
episode; `S` and the bytes of a frame [height, width, 3] are answered with one byte for each component of the action. It
ends with its input.
"""

import json
import os
import sys

import numpy as np
import torch


def serve(arguments):
    """Answers until the input ends.

    Args:
        arguments: Sample Factory's own, without the program's name.
    """
    torch.set_num_threads(1)  # one frame at a time
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # Sample Factory writes logs to the standard output
    model, config, components = load(arguments)
    size = {"height": config.res_h, "width": config.res_w, "components": components}
    replies.write(json.dumps(size).encode() + b"\n")
    messages, memory = sys.stdin.buffer, None
    while kind := messages.read(1):
        if kind == b"R":
            torch.manual_seed(int.from_bytes(messages.read(8), "little"))
            memory = first_memory(config)
        else:
            frame = np.frombuffer(messages.read(config.res_h * config.res_w * 3), np.uint8)
            action, memory = decide(model, config, frame.reshape(config.res_h, config.res_w, 3), memory)
            replies.write(bytes(action))


def load(arguments):
    """The model of the last checkpoint, its settings, and the number of components of an action."""
    from gymnasium.spaces import Box, Dict
    from sample_factory.algo.learning.learner import Learner
    from sample_factory.cfg.arguments import load_from_checkpoint
    from sample_factory.model.actor_critic import create_actor_critic
    from sf_examples.vizdoom.doom.doom_utils import doom_env_by_name
    from sf_examples.vizdoom.train_vizdoom import parse_vizdoom_cfg, register_vizdoom_components

    register_vizdoom_components()
    config = load_from_checkpoint(parse_vizdoom_cfg([*arguments, "--device=cpu"], evaluation=True))
    frames = Dict({"obs": Box(0, 255, (3, config.res_h, config.res_w), np.uint8)})
    actions = doom_env_by_name(config.env).action_space
    model = create_actor_critic(config, frames, actions)
    model.eval()
    prefix = {"latest": "checkpoint", "best": "best"}[config.load_checkpoint_kind]
    checkpoints = Learner.get_checkpoints(Learner.checkpoint_dir(config, config.policy_index), f"{prefix}_*")
    model.load_state_dict(Learner.load_checkpoint(checkpoints, torch.device("cpu"))["model"])
    return model, config, len(actions.spaces)


def first_memory(config):
    """The recurrent state at the start of an episode."""
    from sample_factory.model.model_utils import get_rnn_size

    return torch.zeros([1, get_rnn_size(config)])


@torch.no_grad()
def decide(model, config, frame, memory):
    """The action for a frame, and the next recurrent state."""
    from sample_factory.algo.utils.action_distributions import argmax_actions
    from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs

    frames = torch.from_numpy(frame.transpose(2, 0, 1).copy())[None]
    outputs = model(prepare_and_normalize_obs(model, {"obs": frames}), memory)
    actions = argmax_actions(model.action_distribution()) if config.eval_deterministic else outputs["actions"]
    return actions.reshape(-1).tolist(), outputs["new_rnn_states"]


if __name__ == "__main__":
    serve(sys.argv[1:])
