"""Settings: every one named, typed and checked, from YAML files and `--set key=value`."""
