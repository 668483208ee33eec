"""Messages of every backbone, against one matrix product of the same rows and width.

RESCAL is the one to watch: a matrix per row would take 26 GB here.
"""

import torch

from lmpnn_kge import Backbone, BackboneError, backbone_class
from lmpnn_kge.backbones.discovery import discover

from .measure import peak_megabytes, seconds

ROWS, RELATIONS = 100_000, 237


def make(name: str) -> Backbone:
    kind = backbone_class(name)
    for dim in (256, 243):  # 243 = 1 + 2 · 11², for ConvE
        try:
            reciprocal = kind.inverse_formula is None
            return kind.random(1000, RELATIONS, dim, reciprocal=reciprocal)
        except BackboneError:
            continue
    raise SystemExit(f"no width suits {name}")


def main() -> None:
    print(f"{ROWS:,} messages over {2 * RELATIONS} relations; a product is [rows, d] × [d, d]")
    names = [plugin.name for plugin in discover()]
    names.sort(key=lambda name: (name == "conve", name != "rescal"))  # peaks only grow
    for name in names:
        backbone = make(name)
        rows = ROWS // 100 if name == "conve" else ROWS  # 32 feature maps for each of its rows
        z = torch.randn(rows, backbone.dim)
        relations = torch.randint(2 * RELATIONS, (rows,))
        square = torch.randn(backbone.dim, backbone.dim)
        product = seconds(lambda z=z, square=square: z @ square)
        before = peak_megabytes()
        message = seconds(lambda b=backbone, z=z, r=relations: b.message(z, r, inverse=True))
        print(
            f"{name:10} d = {backbone.dim}  {rows / message:12,.0f} messages/s  "
            f"{message / product:6.1f} × a product  "
            f"at most {peak_megabytes() - before:6,.0f} MB more memory"
        )


if __name__ == "__main__":
    main()
