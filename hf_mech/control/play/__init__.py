"""Playing held-out episodes with a decision transformer, many environments at a time (Section 5.3 of M-SAT).

    scores = play(model, "hf_mech/MyWayHome-v0", range(50), target_return=1.0)
    print(sum(score.success for score in scores), "of 50 solved")

Episode i has the seed `episode_seed(seed, "play", i)`, which no training or test episode has. The model is told the
return that is still wanted: the target less the rewards so far, a real number in the environment's units.
"""

from hf_mech.control.play.parallel import Score, play
from hf_mech.control.play.player import Player, as_states
from hf_mech.control.play.watching import Watched, watch

__all__ = ["Player", "Score", "Watched", "as_states", "play", "watch"]
