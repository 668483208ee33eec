"""Tables of runs that differ in a few settings or in their checkpoint."""
