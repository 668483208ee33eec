"""All campaigns, in the order in which they run."""

from .campaign import Campaign
from .checkpoints import Checkpoints
from .formulas import Formulas
from .threads import Threads

CAMPAIGNS: tuple[Campaign, ...] = (Checkpoints(), Formulas(), Threads())
