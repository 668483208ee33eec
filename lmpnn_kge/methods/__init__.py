"""Ways to answer queries, how their answers are ranked, and the results."""
