"""Many queries as columns: stores on disk, sampling, BetaE's files. No torch."""
