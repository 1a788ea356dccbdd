"""Lifted domains of past planning competitions, their instances, and logs of random walks in them."""
