"""What a cell's text tells, without running or importing anything of it."""
