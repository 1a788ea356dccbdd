"""Lifted domains from traces of actions alone."""

from hf_mech.planning.lifted.learning.learn import LearnedLiftedDomain, LiftedCode, learn_lifted_domain

__all__ = ["LearnedLiftedDomain", "LiftedCode", "learn_lifted_domain"]
