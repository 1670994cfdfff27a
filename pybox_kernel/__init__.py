"""PyBox in Jupyter: each cell in a fresh sealed container, with a receipt."""

__version__ = "0.1.0"
