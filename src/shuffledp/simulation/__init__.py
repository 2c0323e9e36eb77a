"""The whole round in one process: randomize, shuffle, analyze."""
