"""Embeddings behind one contract: plugins, checkpoints, link prediction."""
