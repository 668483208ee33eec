"""How long work runs: who hears of its progress, when it must end, what threads share."""
