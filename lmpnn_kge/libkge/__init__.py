"""LibKGE's files, read with no LibKGE installed and without running what is in them."""

from lmpnn_kge.libkge.checkpoint import LibkgeCheckpoint, read_checkpoint
from lmpnn_kge.libkge.dataset import LibkgeDataset

__all__ = ["LibkgeCheckpoint", "LibkgeDataset", "read_checkpoint"]
