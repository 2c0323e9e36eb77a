"""Hiding addresses: Oblivious HTTP (RFC 9458) between clients, any relay, and the gateway that a shuffler is."""
