"""Pictures of queries: what is in them, where it is, and how it is written as SVG."""
