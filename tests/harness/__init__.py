"""A shuffler and an analyzer under what a test decides on: kills, lost answers, clocks set back, real processes."""
