"""The shuffler: seats, reports it cannot read, full batches in random order."""
