"""SPARQL: SELECT queries become formulas, and any formula becomes a SELECT query."""
