"""The seal of a box: what is asked for, and what three witnesses see of it."""
