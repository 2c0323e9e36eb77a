"""Running counts in other models of trust, for comparison only: they protect nobody here."""
