"""Counts, sums, means and histograms by group: everybody reports over all groups in one batch."""
