"""The local page, the HTTP interface and the SPARQL endpoint."""
