"""LibKGE's files, read and written with no LibKGE installed, without running what is in them."""
