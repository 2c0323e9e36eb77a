"""The analyzer's web page: what it knows of its tasks and campaigns, and a planner. Works offline."""
