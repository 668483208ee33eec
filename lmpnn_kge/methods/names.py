"""The names of the ways to answer.

Nothing here needs torch, so that the command line and reports can use them without it.
"""

from __future__ import annotations

#: The network of a run; the others work on a checkpoint.
LMPNN = "lmpnn"

SEARCH, HYBRID = "search", "hybrid"

CQD, CQD_BEAM = "cqd", "cqd-beam"

FREQUENCY = "frequency"

#: What a run answers with.
OF_RUN = (LMPNN, SEARCH, HYBRID, CQD_BEAM)

#: What a checkpoint is evaluated with.
OF_CHECKPOINT = (SEARCH, HYBRID, CQD, CQD_BEAM, FREQUENCY)
