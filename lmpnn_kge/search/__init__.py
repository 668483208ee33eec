"""Search: queries answered by the embedding's own scores, as probabilities of edges."""
