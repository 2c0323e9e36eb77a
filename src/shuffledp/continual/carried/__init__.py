"""Running sums whose noise is carried from batch to batch, by users of overlapping windows."""
