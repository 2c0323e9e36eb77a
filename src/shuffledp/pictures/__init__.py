"""Pictures, where one would rather look."""
