"""The box images: what they are made from, how they are made, and which this computer has."""
