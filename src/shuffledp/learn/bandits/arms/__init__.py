"""A few arms, the same for everybody: arm elimination with private batches."""
