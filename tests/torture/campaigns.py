"""All campaigns, in the order in which they run."""

from .campaign import Campaign
from .checkpoints import Checkpoints

CAMPAIGNS: tuple[Campaign, ...] = (Checkpoints(),)
