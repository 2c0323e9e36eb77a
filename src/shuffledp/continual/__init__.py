"""Running sums under continual observation: plans, the counter, and its estimates."""
