"""The wiring: the one place that chooses an engine, a witness, an image and a state folder."""
