"""My Way Home and Deadly Corridor: two scenarios of ViZDoom as gymnasium environments, with scripted experts."""
