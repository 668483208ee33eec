"""The query language: formulas, patterns, normal form and query graphs. No torch, no database."""
