"""Reports on runs: records, tables, plots, documents. No torch."""
