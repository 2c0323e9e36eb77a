"""Privacy as data: pairs of distributions in, (epsilon, delta) out. Nothing else computes an epsilon."""
