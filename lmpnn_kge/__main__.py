"""`python -m lmpnn_kge` is `lmpnn-kge`."""

from lmpnn_kge.cli import main

main(prog_name="lmpnn-kge")
