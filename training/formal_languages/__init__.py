"""Tables 1 and 2 of the stack attention paper: formal languages."""
