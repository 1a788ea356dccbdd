"""Tasks that need planning ahead: star graphs, and stories that reach a given end."""
