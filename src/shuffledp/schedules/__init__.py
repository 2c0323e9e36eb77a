"""Which batch covers which users: pure combinatorics, no privacy and no input or output."""
