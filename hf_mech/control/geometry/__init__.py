"""Walls, sight and ways in the plane: what scripted experts know and observations do not show."""
