"""Learning from people without seeing them: policies that ask and are told."""
