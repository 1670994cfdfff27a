"""``run_python`` for AI agents, over the Model Context Protocol."""
