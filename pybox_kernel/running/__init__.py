"""One run: a program in, its output as it comes, a receipt out."""
