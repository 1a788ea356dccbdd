"""The machines that run a program: the symbolic PSM and QKVM, and the DAT that it compiles into."""
