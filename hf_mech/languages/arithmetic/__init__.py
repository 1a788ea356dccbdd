"""Arithmetic modulo 5: its tasks, and the partial results of their expressions."""

from hf_mech.languages.arithmetic.expressions import MODULAR_ARITHMETIC, MODULAR_ARITHMETIC_SIMPLE, SOLVE_EQUATION

__all__ = ["MODULAR_ARITHMETIC", "MODULAR_ARITHMETIC_SIMPLE", "SOLVE_EQUATION"]
