"""All campaigns, in the order in which they run."""

from .campaign import Campaign
from .checkpoints import Checkpoints
from .damage import Betae, Datasets, Runs, Safetensors, Stores
from .kills import FullDisk, Kills

CAMPAIGNS: tuple[Campaign, ...] = (
    Checkpoints(), Safetensors(), Stores(), Runs(), Betae(), Datasets(), Kills(), FullDisk(),
)  # fmt: skip
