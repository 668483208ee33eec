"""LibKGE's files, read with no LibKGE installed and without running what is in them."""
