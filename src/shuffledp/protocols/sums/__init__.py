"""Sums as domain x noise x transport: what one-round and running sums share."""
