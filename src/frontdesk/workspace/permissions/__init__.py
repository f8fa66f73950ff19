"""What an agent may do unasked, what it has to ask for, and what was said to it before."""
