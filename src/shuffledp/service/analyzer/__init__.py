"""The analyzer: opens full batches, adds each up once, releases estimates."""
