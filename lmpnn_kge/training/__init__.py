"""The training loop, the folder it saves to, and the two things it trains."""
