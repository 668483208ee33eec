"""Commands that an earlier README taught still work, although README is now shorter."""

import json

import pytest

from .pages import Reader, check_options

TOY = "tests/data/libkge-toy"
ROTATE, TRANSE = (f"{TOY}/checkpoints/{name}.train.pt" for name in ("rotate", "transe"))
ON_TOY = f"--dataset {TOY}/dataset --queries queries"

#: In their order, because later commands use the files of earlier ones.
CONSOLE = [
    "lmpnn-kge split tests/data/toy.tsv -o data/toy",
    "lmpnn-kge pretrain --backbone distmult --dataset data/toy -o toy.pt --set dim=32 --epochs 5",
    "lmpnn-kge train --checkpoint toy.pt --config tiny --epochs 2",
    "lmpnn-kge ask runs/toy-distmult 'friend_of(person/ada_voss, ?) & !mentor_of(?, ?x)'",
    f"lmpnn-kge inspect mine.safetensors --dataset {TOY}/dataset --rank test",
    "lmpnn-kge backbones",
    f"lmpnn-kge inspect {ROTATE}",
    f"lmpnn-kge inspect {TOY}/checkpoints/complex.package.pt --dataset {TOY}/dataset --rank test",
    f"lmpnn-kge answer --dataset {TOY}/dataset "
    "'friend_of(\"Øyvind Brekke\", ?) & !mentor_of(?, ?x)'",
    "lmpnn-kge draw 'borders(Germany, ?) & !currency(?, Euro)' -o query.svg",
    f"lmpnn-kge sample --dataset {TOY}/dataset --types 1p,2p,2in --count 20 --out queries",
    "lmpnn-kge queries show queries --split test --type 2p -n 2",
    f"lmpnn-kge train --checkpoint {ROTATE} {ON_TOY} --config tiny --epochs 2 --out run",
    "lmpnn-kge evaluate run --split valid",
    "lmpnn-kge train --resume --out run",
    f"lmpnn-kge evaluate --method cqd --checkpoint {ROTATE} {ON_TOY} --set steps=50",
    "lmpnn-kge report run -o report",
    "lmpnn-kge config show --config small --set temperature=0.1",
    f"lmpnn-kge table backbones --checkpoint {ROTATE} --checkpoint {TRANSE} {ON_TOY} "
    "--config tiny --epochs 1",
    # Commands that it described in words.
    f"lmpnn-kge evaluate run --checkpoint {ROTATE} --queries queries --union merge",
    "lmpnn-kge ask run 'friend_of(person/ada_voss, ?)' --predicted",
    f"lmpnn-kge answer --dataset {TOY}/dataset 'friend_of(?, person/ada_voss)' --split train",
    f"lmpnn-kge answer --dataset {TOY}/dataset 'friend_of(?, person/ada_voss)' --sql",
    f"lmpnn-kge inspect {ROTATE} --against-libkge --json",
    "lmpnn-kge loaders",
    "lmpnn-kge queries export queries --out betae",
    "lmpnn-kge queries import betae --out imported",
]

#: Those that need downloads, other plugins or a long time: their options must exist.
OTHERS = [
    "lmpnn-kge train --backbone rotate --checkpoint fb15k-237-rotate.pt",
    "lmpnn-kge train --checkpoint nations.safetensors --dataset FOLDER",
    "lmpnn-kge train --checkpoint FILE --device cuda:0 --set compile=true --tensorboard",
    "lmpnn-kge sample --dataset DIR --patterns FILE --out DIR",
    "lmpnn-kge queries import BETAE_DIR --out DIR --checkpoint FILE",
    "lmpnn-kge report run --against fb15k-237 --beside CQD=cqd.json",
    "lmpnn-kge table ablation --checkpoint fb15k-237-complex.pt",
    "lmpnn-kge table backbones --checkpoint a.pt --checkpoint b.pt --beside CQD=cqd.json",
    "lmpnn-kge table mine.yaml --checkpoint FILE --seeds 3",
    "lmpnn-kge demo --backbone rotate",
    "lmpnn-kge backbones new my-model",
    "lmpnn-kge backbones new my-model --into FOLDER",
    "lmpnn-kge backbones check my-model",
    "lmpnn-kge pretrain --backbone complex --dataset data/fb15k-237 -o fb15k-237-complex.pt",
    "lmpnn-kge train --checkpoint fb15k-237-complex.pt --config paper-small --epochs 3",
    "lmpnn-kge evaluate --method cqd-beam --checkpoint fb15k-237-complex.pt --limit 500",
    "lmpnn-kge evaluate --method frequency --checkpoint fb15k-237-complex.pt",
]


@pytest.fixture
def reader(here, monkeypatch) -> Reader:
    """A reader in the folder of a page that has only the Python for tensors from anywhere."""
    reader = Reader(here)
    reader.follow("old", f"```python\n{TENSORS}```\n", monkeypatch)
    return reader


#: From the same README, without the names that are deprecated by now.
TENSORS = f"""
import torch
from lmpnn_kge import KnowledgeGraph, backbone_class, save_backbone

graph = KnowledgeGraph.open("{TOY}/dataset")
backbone = backbone_class("transe").from_tensors(
    torch.randn(len(graph.entity_ids), 16),
    torch.randn(len(graph.relation_ids), 16),
    reciprocal=False,
    entity_ids=graph.entity_ids,
    relation_ids=graph.relation_ids,
)
save_backbone(backbone, "mine.safetensors")
"""


@pytest.mark.long
def test_every_command_works(reader):
    for line in CONSOLE:
        reader.run(line)
    for name in ("cqd", "cqd-beam", "frequency"):
        line = f"lmpnn-kge evaluate --method {name} --checkpoint {ROTATE} {ON_TOY} --limit 3 --json"
        types = json.loads(reader.run(line))["types"]
        assert {entry["queries"] for entry in types.values()} == {3}


@pytest.mark.parametrize("line", OTHERS)
def test_every_option_exists(line):
    check_options(line)
