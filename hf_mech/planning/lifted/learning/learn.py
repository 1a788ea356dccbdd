"""`learn_lifted_domain`: from traces of actions alone to a lifted domain."""
from __future__ import annotations
import numpy as np
from hf_mech.planning.lifted.learning.events import *
from hf_mech.planning.lifted.learning.gaps import gaps_of
from hf_mech.planning.lifted.learning.code import universe_of
from hf_mech.planning.lifted.learning.choose import Choice, Chosen
from hf_mech.planning.lifted.learning.rules import Search
EPSILONS=(0.0,.003,.01,.03,.08)
def prepare(traces,labels=None,most_arity=2,search=Search()):
    steps=read_steps(traces,labels); kinds=kinds_of(steps,most_arity)
    touches=[touches_of(steps,k) for k in kinds]; gaps=[gaps_of(steps,k,t) for k,t in zip(kinds,touches)]
    return Choice(steps,kinds,touches,gaps,universe_of(steps,kinds,touches),search)
