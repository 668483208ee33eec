"""How long the threads of a computation look for work before they sleep."""

from __future__ import annotations

from collections.abc import MutableMapping

#: For libgomp, which torch ships: how often a waiting thread looks for work before it sleeps, about
#: 25 µs long. libgomp's own value is 300,000. It is hardly faster on an idle machine, but on a busy
#: one, threads spend their time waiting for others that cannot run: docs/results.md has figures.
SPINS = {"GOMP_SPINCOUNT": "1000"}

#: What a user may have set instead.
ALTERNATIVES = ("OMP_WAIT_POLICY", *SPINS)


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Set the default for this process; it has no effect once torch is loaded."""
    if not any(name in environment for name in ALTERNATIVES):
        environment.update(SPINS)
