"""Runs as a user has them: trained, opened again, evaluated, asked."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
from lmpnn_kge.device import choose_device, choose_precision, describe_device
from lmpnn_kge.errors import ConfigError, QueryError, RunError, choices, short
from lmpnn_kge.graph.formats.libkge import name_rows
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import Union
from lmpnn_kge.methods.rank import Scorer, evaluate
from lmpnn_kge.methods.results import as_json, evaluate_split
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.sample import sample_store
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.formula import Formula, exclusions
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.runs.inputs import Material, Sample, facts_of, gather, join_queries
from lmpnn_kge.settings import DEFAULT, Config, load_config, to_yaml
from lmpnn_kge.training.folder import RunFolder, file_hash, is_run, provenance
from lmpnn_kge.training.lmpnn import MODEL, Trainer, load_best
from lmpnn_kge.training.loop import Silent, Watch, epochs_done

Hear = Callable[[str, int], object]


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network with its backbone, ready to answer."""

    folder: RunFolder[Config]
    scorer: Scorer
    vocabulary: Vocabulary
    notes: list[str]

    @classmethod
    def open(
        cls, folder: str | Path, *, checkpoint: str | Path | None = None, device: str = "auto"
    ) -> Run:
        """Open a run folder; checkpoint says where the backbone is if it has moved."""
        run = RunFolder.open(folder, Config)
        file, notes = _checkpoint_of(run, checkpoint)
        opened = read_checkpoint(file)
        _, kind = find_backbone(opened, run.facts["backbone"])
        backbone, _ = build(opened, kind)
        names = _names_of(run)
        sizes = backbone.num_entities, backbone.num_relations
        if sizes != (len(names.entity_ids), len(names.relation_ids)):
            raise RunError(
                f"{run.path} was trained on {len(names.entity_ids)} entities and "
                f"{len(names.relation_ids)} relations, but {file} has {sizes[0]} and {sizes[1]}"
            )
        named = (backbone.entity_ids, names.entity_ids), (backbone.relation_ids, names.relation_ids)
        if notes and any(theirs not in (None, ours) for theirs, ours in named):
            raise RunError(f"{file} has other names, or in another order, than {run.path}")
        backbone = dataclasses.replace(
            backbone, entity_ids=names.entity_ids, relation_ids=names.relation_ids
        )
        if not run.has(MODEL):
            raise RunError(f"{run.path} has no network yet; go on with train --resume")
        chosen = choose_device(device)
        model = Lmpnn(backbone, run.config, dtype=_dtype(run))
        load_best(model, run)
        return cls(run, Scorer.of(model.on(chosen), run.config), names, notes)

    @property
    def backbone(self) -> Backbone:
        return self.scorer.model.backbone

    def evaluate(
        self,
        split: str = "test",
        *,
        queries: str | Path | QueryStore | None = None,
        union: Union | None = None,
        limit: int | None = None,
        progress: Hear = lambda name, done: None,
    ) -> dict[str, Any]:
        """The metrics of a split of the run's own queries or of others, as `--json` prints them.

        queries is a folder, or what `queries` made of one; limit takes so many queries of each type
        at most, evenly spread.
        """
        scorer = dataclasses.replace(self.scorer, union=union or self.scorer.union)
        found = queries if isinstance(queries, QueryStore) else self.queries(split, queries)
        return evaluate_split(scorer, split, found.splits[split], found.folder, limit, progress)

    def queries(self, split: str, folder: str | Path | None = None) -> QueryStore:
        """The run's own queries or others, in the numbers of its backbone."""
        store = QueryStore.open(folder or self.folder.facts["queries"]["folder"])
        if split not in store.splits:
            raise QueryError(
                f"{store.folder} has no split {split!r}; {choices(split, store.splits)}"
            )
        wanted = dataclasses.replace(store, splits={split: store.splits[split]})
        joined, notes = join_queries(wanted, self.backbone)
        self.notes.extend(note for note in notes if note not in self.notes)
        return dataclasses.replace(joined, folder=store.folder)

    def embed(self, formula: str) -> Tensor:
        """The answer embeddings of a formula over names, one for each disjunct, [disjuncts, d]."""
        return self.scorer.embed(*self._query(parse(formula), formula))[:, 0]

    def _query(self, formula: Formula, text: str) -> tuple[Pattern, Tensor, Tensor]:
        """A formula as a batch of one query of its own pattern."""
        pattern = Pattern(formula)
        columns = self.vocabulary.resolve(pattern, text)
        device = self.scorer.entities.device
        constants, relations = (torch.from_numpy(ids)[None].to(device) for ids in columns)
        return pattern, constants, relations

    @torch.inference_mode()
    def rank(self, formula: str, k: int = 10) -> list[tuple[str, float]]:
        """The k entities that answer a formula best, with their scores.

        An entity that it excludes, ? != Peru, is left out, which needs no network.
        """
        whole = parse(formula)
        self.vocabulary.resolve(Pattern(whole), formula)  # that every name is known
        asked, excluded = exclusions(whole)
        scores = self.scorer.answer(*self._query(asked, formula))(slice(None))[0]
        rows = {self.vocabulary.entity(constant.name) for constant in excluded}
        scores[list(rows)] = -torch.inf
        best = scores.topk(min(k, len(scores) - len(rows)))
        return [
            (self.vocabulary.entity_ids[row], score)
            for row, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]


def train(
    checkpoint: str | Path | None = None,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    resume: bool = False,
    watch: Watch | None = None,
    sample: Sample = sample_store,
) -> Run:
    """Train LMPNN on a checkpoint, in a run folder, and evaluate the best network on test once.

    resume goes on with the run in that folder, if there is one: to the same end, bit for bit on a
    CPU, as if it had not been stopped.
    """
    # All that can be wrong is found before the queries are sampled, which may take long.
    settled = load_config(DEFAULT if config is None else config, settings)
    before = None
    if resume and out is not None and (checkpoint is None or is_run(Path(out), Config)):
        before = RunFolder.open(out, Config)
    elif out is not None:
        RunFolder.check_new(out)
    if before is not None:
        facts = before.facts
        checkpoint = checkpoint or facts["checkpoint"]["file"]
        backbone = backbone or facts["backbone"]
        dataset = dataset or facts["dataset"]
        queries = queries or facts["queries"]["folder"]
    if checkpoint is None:
        raise RunError("nothing to train on: give a checkpoint, or a run to resume")
    choose_device(device)
    material = gather(
        checkpoint, backbone=backbone, dataset=dataset, queries=queries, sample=sample
    )
    out = Path(out or Path("runs") / material.name)
    if before is None and resume and is_run(out, Config):
        before = RunFolder.open(out, Config)
    if before is not None and config is None:  # then what is not said stays as it was
        settled = dataclasses.replace(before.config, **_checked(settings or {}))
    return train_on(material, settled, out, device=device, resume=resume, watch=watch)


def train_on(
    material: Material,
    config: Config,
    out: str | Path,
    *,
    device: str = "auto",
    resume: bool = False,
    watch: Watch | None = None,
) -> Run:
    """`train` with all of its settings, on what is gathered already."""
    chosen = choose_device(device)
    answered = training_queries(material)
    before = RunFolder.open(out, Config) if resume and is_run(Path(out), Config) else None
    folder = before or _begun(Path(out), config, material, chosen)
    with folder.alone():
        if before is not None:
            check_material(before, material)
            folder = _resumed(before, config)
        return _trained(folder, material, answered, chosen, watch or Silent())


def training_queries(material: Material) -> dict[str, Queries]:
    """What a network learns from; RunError where there is nothing."""
    splits = material.store.splits
    answered = {name: found.answered for name, found in splits.get("train", {}).items()}
    answered = {name: found for name, found in answered.items() if len(found)}
    if not answered:
        raise RunError(f"{material.queries} has no training queries")
    return answered


def _trained(
    folder: RunFolder[Config],
    material: Material,
    answered: Mapping[str, Queries],
    device: torch.device,
    watch: Watch,
) -> Run:
    splits, dtype = material.store.splits, _dtype(folder)
    watch.start(folder, _facts_to_tell(folder, material, device))
    model = Lmpnn(material.backbone, folder.config, dtype=dtype).on(device)
    Trainer(folder, model, answered, splits.get("valid", {}), dtype).train(watch)
    load_best(model, folder)
    run = Run(folder, Scorer.of(model, folder.config), material.vocabulary, material.notes)
    if not folder.has("test.json") and any(
        len(found.hard.values) for found in splits.get("test", {}).values()
    ):
        metrics = evaluate(run.scorer, splits["test"], watch.validate)
        folder.write_json("test.json", as_json("test", metrics))
    return run


def _facts_to_tell(
    folder: RunFolder[Config], material: Material, device: torch.device
) -> dict[str, str]:
    splits = material.store.splits.items()
    counts = (f"{sum(map(len, found.values())):,} {split}" for split, found in splits)
    backbone = f"{material.reader} of width {material.backbone.dim}"
    notes = {f"note {place}": note for place, note in enumerate(material.notes, start=1)}
    return {
        "backbone": f"{backbone} ({material.checkpoint})",
        "queries": f"{', '.join(counts)} ({material.queries})",
        "computes": f"on {describe_device(device)} in {folder.facts['precision']}",
        **notes,
    }


def _begun(
    out: Path, config: Config, material: Material, device: torch.device
) -> RunFolder[Config]:
    dtype = choose_precision(config.precision, device)
    facts = {
        **provenance(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S%z"),
        "device": describe_device(device),
        "precision": "bf16" if dtype == torch.bfloat16 else "fp32",
        **facts_of(material, file_hash),
    }
    return RunFolder.create(out, config, facts, dataclasses.asdict(material.vocabulary))


def check_material(run: RunFolder[Config], material: Material) -> None:
    """RunError where a run began with something else."""
    facts = facts_of(material, file_hash)
    names, began = _names_of(run), f"{run.path} began with; choose another --out"
    if facts["checkpoint"]["sha256"] != run.facts["checkpoint"]["sha256"]:
        raise RunError(f"{material.checkpoint} is not the checkpoint that {began}")
    if facts["queries"]["sha256"] != run.facts["queries"].get("sha256"):
        raise RunError(f"{material.queries} are not the queries that {began}")
    if (names.entity_ids, names.relation_ids) != (
        material.vocabulary.entity_ids,
        material.vocabulary.relation_ids,
    ):
        raise RunError(f"{material.dataset} has other names than {began}")


def check_settings(run: RunFolder[Config], wanted: Config) -> None:
    """ConfigError where a run began with other settings."""
    differing = [key for key, value in vars(run.config).items() if getattr(wanted, key) != value]
    if differing:
        raise ConfigError(
            f"{run.path} began with other settings of {', '.join(differing)}; leave them out, or "
            "choose another --out"
        )


def _resumed(run: RunFolder[Config], wanted: Config) -> RunFolder[Config]:
    """A run with the settings it began with; only the number of epochs may change."""
    check_settings(run, dataclasses.replace(wanted, epochs=run.config.epochs))
    if wanted.epochs < run.config.epochs and wanted.epochs < (done := epochs_done(run)):
        raise ConfigError(
            f"{run.path} has {done} epochs behind it and cannot go back to {wanted.epochs}; ask "
            f"for {done} or more, or choose another --out"
        )
    if wanted.epochs != run.config.epochs:
        for made in run.path.glob("test*.json"):  # first: they must not outlive their network
            run.remove(made.name)
        run.write("config.yaml", to_yaml(wanted).encode())
    return RunFolder.open(run.path, Config)


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    known = load_config(settings=settings)
    return {key: getattr(known, key) for key in settings}


def _checkpoint_of(run: RunFolder[Config], given: str | Path | None) -> tuple[Path, list[str]]:
    recorded = run.facts["checkpoint"]
    file = Path(given or recorded["file"])
    if not file.is_file():
        raise RunError(
            f"the checkpoint of {run.path} is not at {file}; say where with --checkpoint"
        )
    if file_hash(file) == recorded["sha256"]:
        return file, []
    return file, [f"{file} is not the file that {run.path} was trained on: its hash differs"]


def _names_of(run: RunFolder[Config]) -> Vocabulary:
    content = run.read_json("names.json")
    try:
        names = Vocabulary(**content)
        for kind in ("entity", "relation"):
            ids, labels = content[f"{kind}_ids"], content[f"{kind}_labels"]
            name_rows(ids)
            if labels is not None and len(labels) != len(ids):
                raise ValueError(f"{len(ids)} ids have {len(labels)} labels")
    except (KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{run.path / 'names.json'} is damaged: {short(reason)}") from error
    return names


def _dtype(run: RunFolder[Config]) -> torch.dtype:
    """What a run began with: what is fast here and now must not decide its results."""
    return torch.bfloat16 if run.facts["precision"] == "bf16" else torch.float32
