"""Linear contextual bandits in every trust model."""
