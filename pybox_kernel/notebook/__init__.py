"""The cells of a notebook: what they say to PyBox, what stands under them, how they fail."""
