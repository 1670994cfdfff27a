"""The lives of boxes: one at a time, in advance, in turn, and what is left of those whose session died."""
