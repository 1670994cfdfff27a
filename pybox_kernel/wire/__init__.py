"""What crosses the line to a box, in bounded pieces: frames, files, values."""
