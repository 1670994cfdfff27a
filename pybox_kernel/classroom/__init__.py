"""Notebooks of strangers: opened safely, graded, and reported on."""
