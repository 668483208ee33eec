"""LibKGE's checkpoints, read and written without LibKGE."""
