"""Work on files of messages that were collected elsewhere: shuffle, open and analyze, each as a job of an engine."""
