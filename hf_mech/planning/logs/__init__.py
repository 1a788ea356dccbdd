"""Logs of actions as people have them: JSON lines, CSV, PDDL plans, XES, rows of a data set; read into traces."""

from hf_mech.planning.logs.formats import LogError
from hf_mech.planning.logs.log import BadRow, Log, Place, read_log

__all__ = ["BadRow", "Log", "LogError", "Place", "read_log"]
