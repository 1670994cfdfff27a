"""Copies of files into a box and out of it."""
