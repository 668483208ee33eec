"""All campaigns, in the order in which they run."""

from .campaign import Campaign
from .checkpoints import Checkpoints
from .damage import Betae, Datasets, Runs, Safetensors, Stores
from .disks import FileErrors, FullDisk, SmallDisk
from .extremes import ExtremeGraphs, ExtremeNumbers, ExtremeSettings
from .formulas import Formulas
from .kills import KilledDemo, Kills
from .places import Places
from .requests import Requests
from .surroundings import Signals, Surroundings
from .texts import Texts
from .threads import Threads
from .together import Pairs, TwoProcesses, Vanishing
from .unfinished import Unfinished

CAMPAIGNS: tuple[Campaign, ...] = (
    Checkpoints(), Safetensors(), Stores(), Runs(), Unfinished(), Betae(), Datasets(), Texts(),
    Formulas(), ExtremeSettings(), ExtremeNumbers(), ExtremeGraphs(), Places(), Surroundings(),
    Kills(), Signals(), FullDisk(), FileErrors(), SmallDisk(), KilledDemo(), TwoProcesses(),
    Pairs(), Vanishing(), Threads(), Requests(),
)  # fmt: skip
