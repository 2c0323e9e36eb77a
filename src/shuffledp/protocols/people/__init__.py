"""People with several rows: what one person contributes is bounded, and its neighbour replaces all of it."""
