"""Embedding models behind one contract: plugins, checkpoints, link prediction."""
