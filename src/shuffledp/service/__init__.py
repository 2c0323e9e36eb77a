"""The live service: clients that randomize, a shuffler that mixes what it cannot read, an analyzer that adds up."""
