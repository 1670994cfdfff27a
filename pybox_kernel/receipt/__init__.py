"""The receipt: what was asked for, what was observed, what the program said, and what is not known."""
