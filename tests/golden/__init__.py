"""What version 0.1.0 produced, kept as JSON: plans, estimates, tasks, states and ledgers must stay the same."""
