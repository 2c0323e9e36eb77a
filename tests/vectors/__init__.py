"""Test vectors of the wire: what any client must compute, whatever language it is written in."""
