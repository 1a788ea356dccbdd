"""The machines that run a program: the symbolic PSM and QKVM, and the compiled DAT."""
