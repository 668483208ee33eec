"""Embeddings from triples alone, with any backbone, for LibKGE."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from lmpnn_kge import (
    BackboneError,
    ConfigError,
    KnowledgeGraph,
    Listener,
    LmpnnError,
    RunError,
    backbone_class,
    open_backbone,
    read_checkpoint,
)
from lmpnn_kge.backbones.link_prediction import rank_split
from lmpnn_kge.cli import main
from lmpnn_kge.files import remove_folder
from lmpnn_kge.runs import pretrain as pretraining
from lmpnn_kge.runs.pretrain import pretrain
from lmpnn_kge.settings.files import load_settings
from lmpnn_kge.settings.kinds import PretrainSettings
from lmpnn_kge.training.embedding import EmbeddingTask
from lmpnn_kge.training.folder import PRETRAINING, RunFolder
from lmpnn_kge.training.interrupt import Interrupted
from lmpnn_kge.training.loop import Loop
from lmpnn_kge.training.penalty import PENALTIES, choose_penalty
from lmpnn_kge.training.provenance import PretrainProvenance
from lmpnn_kge.training.questions import Questions
from lmpnn_kge.work.listener import SILENT

from ..backbones.test_contract import NAMES
from ..lmpnn.test_network import Devices
from ..toy_runs import cli, options, sample_few

SMALL = {"dim": 16, "batch_size": 8, "epochs": 4, "penalty": 0.08}


def recipe(**changes):
    return load_settings(PretrainSettings, ["default"], {**SMALL, **changes})


def task(dataset, name="complex", device="cpu", **changes) -> EmbeddingTask:
    graph = KnowledgeGraph.open(dataset)
    return EmbeddingTask(backbone_class(name), graph, recipe(**changes), torch.device(device))


def loop_of(made: EmbeddingTask, folder) -> Loop:
    provenance = PretrainProvenance.now(backbone="", dataset=None, graph="")
    return Loop(made, RunFolder.create(folder, PRETRAINING, made.settings, provenance))


def test_questions_are_all_pairs_in_both_directions_with_all_their_tails(toy_dataset):
    graph = KnowledgeGraph.open(toy_dataset)
    triples, relations = graph.triples("train"), len(graph.relation_ids)
    questions = Questions.of(triples, relations)
    expected: dict = {}
    for s, p, o in triples.tolist():
        expected.setdefault((s, p), set()).add(o)
        expected.setdefault((o, p + relations), set()).add(s)
    pairs = zip(questions.heads.tolist(), questions.relations.tolist(), strict=True)
    found = {pair: set(questions.tails.of(n).tolist()) for n, pair in enumerate(pairs)}
    assert found == expected
    assert len(questions) == len(expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("loss", ["1vsall", "kvsall"])
@pytest.mark.parametrize("negatives", [0, 7])
@pytest.mark.parametrize("name", ["complex", "transe", "transh"])
def test_the_loss_is_the_cross_entropy_of_every_tail_among_entities_that_are_not_tails(
    tmp_path, toy_dataset, name, negatives, loss, smoothing
):
    changes = {"loss": loss, "negatives": negatives, "label_smoothing": smoothing, "penalty": 0.0}
    made = task(toy_dataset, name, **changes)
    (batch,) = next(made.batches(0, 0))
    _, found = made.loss(batch)
    total = weights = 0.0
    backbone = made.backbone
    scores = backbone.score_tails(batch.heads, batch.relations)
    for owner, tail in zip(batch.owners.tolist(), batch.tails.tolist(), strict=True):
        row = scores[owner].double()
        every = range(len(row)) if batch.negatives is None else batch.negatives.tolist()
        right = batch.tails[batch.owners == owner].tolist()
        noise = row[[entity for entity in every if entity not in right]]
        more = math.log(backbone.num_entities / len(every))
        one = torch.nn.functional.softplus(torch.logsumexp(noise, 0) + more - row[tail])
        one += smoothing * (row[tail] - row[list(every)].mean())
        weight = 1 / (batch.owners == owner).sum().item() if loss == "kvsall" else 1.0
        total, weights = total + weight * one.item(), weights + weight
    assert found.item() == pytest.approx(total / weights, rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_backbone_learns_its_training_triples_and_opens_again(tmp_path, toy_dataset, name):
    file = tmp_path / f"{name}.pt"
    settings = {**SMALL, "dim": 17, "epochs": 30, "patience": 0}
    pretrain(name, toy_dataset, file, settings=settings)
    backbone = open_backbone(file, dataset=toy_dataset)
    assert backbone.reciprocal
    assert not (tmp_path / f"{name}.pt.training").exists()
    graph = KnowledgeGraph.open(toy_dataset)
    assert backbone.entity_ids == graph.entity_ids
    s, p, o = graph.triples("train").T
    scores = backbone.score_tails(s, p)
    rank = (scores > scores[np.arange(len(o)), o][:, None]).sum(1)
    chance = len(graph.entity_ids) / 2
    assert rank.double().mean() < chance / 2


class Stop(Listener):
    """Raises as a kill would, at a step."""

    def __init__(self, at):
        self.left = at

    def advance(self, steps=1, detail=None):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["complex", "conve"])  # tables alone, and a network with them
def test_a_stopped_pretraining_ends_like_one_that_was_not(tmp_path, toy_dataset, name):
    settings = {**SMALL, "save_minutes": 0, "entity_dropout": 0.2, "relation_dropout": 0.2}
    whole, stopped = tmp_path / "whole.pt", tmp_path / "stopped.pt"
    pretrain(name, toy_dataset, whole, settings=settings)
    for at in (3, 20, 41):
        with pytest.raises(KeyboardInterrupt):
            pretrain(name, toy_dataset, stopped, settings=settings, resume=True, listener=Stop(at))
    pretrain(name, toy_dataset, stopped, resume=True)
    one, other = open_backbone(whole).tensors(), open_backbone(stopped).tensors()
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_the_same_seed_gives_the_same_bits_on_all_threads(tmp_path):
    """With rows enough for every thread, and few relations for them to add to at once."""
    random, threads = np.random.default_rng(0), torch.get_num_threads()
    graph = tmp_path / "graph"
    graph.mkdir()
    for split, count in (("train", 4000), ("valid", 20), ("test", 20)):
        rows = random.integers([500, 2, 500], size=(count, 3)).tolist()
        lines = (f"e{s}\tr{p}\te{o}\n" for s, p, o in rows)
        graph.joinpath(f"{split}.txt").write_text("".join(lines))
    settings = {"dim": 128, "epochs": 1, "batch_size": 1000, "seed": 3}
    torch.set_num_threads(4)
    try:
        for name, negatives in (("complex", 0), ("complex", 200), ("transe", 200)):
            made = [tmp_path / f"{name}-{negatives}-{run}.pt" for run in range(3)]
            for file in made:
                pretrain(name, graph, file, settings={**settings, "negatives": negatives})
            first, *others = (open_backbone(file).tensors() for file in made)
            for other in others:
                assert all(torch.equal(first[key], other[key]) for key in first)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("negatives", [0, 7])
@pytest.mark.parametrize("name", NAMES)
def test_a_step_waits_for_nothing_and_needs_no_data_for_its_shapes(
    tmp_path, toy_dataset, name, negatives, monkeypatch
):
    """Meta tensors have no data: whatever looks at a value raises."""
    made = task(toy_dataset, name, "meta", negatives=negatives)
    loop = loop_of(made, tmp_path / "it")
    batch = next(made.batches(0, 0))
    monkeypatch.setattr(made.optimiser, "step", lambda: None)  # which counts on the host
    with made.context(), Devices() as devices:
        assert loop.step(batch).shape == ()
    assert devices.seen == {"meta"}


def test_what_a_batch_does_not_look_up_has_no_gradient_to_walk_through(tmp_path, toy_dataset):
    made = task(toy_dataset, negatives=7, batch_size=2)
    dense = task(toy_dataset, negatives=7, batch_size=2)
    dense._look_up = lambda ids, batch: dense.weights["entities"][ids]
    loops = loop_of(made, tmp_path / "sparse"), loop_of(dense, tmp_path / "dense")
    with made.context():
        for _ in range(3):
            for loop in loops:
                loop.step(next(loop.task.batches(0, loop.state.step)))
    gradient = made.weights["entities"].grad
    assert gradient.is_sparse
    assert len(gradient.coalesce().values()) < made.template.num_entities
    torch.testing.assert_close(made.weights, dense.weights)


@pytest.mark.parametrize(("norm", "power"), [("n3", 3), ("l2", 2)])
def test_the_penalty_is_on_what_every_triple_looks_up(tmp_path, toy_dataset, norm, power):
    made = task(toy_dataset, penalty=0.5, norm=norm)
    (batch,) = next(made.batches(0, 0))
    with_penalty, without = made.loss(batch)
    entities, relations = made.weights["entities"], made.weights["relations"]
    looked_up = [
        torch.cat([entities[batch.heads[o]], relations[batch.relations[o]], entities[t]])
        for o, t in zip(batch.owners, batch.tails, strict=True)
    ]
    sizes = torch.stack(looked_up).abs().pow(power).sum(1)
    assert (with_penalty - without).item() == pytest.approx(0.5 * sizes.mean().item(), rel=1e-4)


def test_entities_begin_as_small_as_is_asked(tmp_path, toy_dataset):
    made = task(toy_dataset, init=0.03)
    assert made.weights["entities"].std().item() == pytest.approx(0.03, rel=0.1)


def test_the_learning_rate_is_on_its_way_down(tmp_path, toy_dataset):
    made = task(toy_dataset, learning_rate=0.5)
    assert [made.learning_rate(step, 10) for step in (0, 5, 10)] == [0.5, 0.25, 0.0]


def test_dropout_takes_part(tmp_path, toy_dataset):
    for changes in ({"entity_dropout": 0.5}, {"relation_dropout": 0.5}):
        plain = task(toy_dataset, penalty=0.0)
        other = task(toy_dataset, **{"penalty": 0.0, **changes})
        (batch,) = next(plain.batches(0, 0))
        assert plain.loss(batch)[0] != other.loss(batch)[0], changes


class Heard(Listener):
    """Keeps what is reported before the long wait."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)

    def start(self, folder, facts):
        self.facts = facts


def test_entities_without_a_training_triple_are_reported(tmp_path, graph):
    heard = Heard()
    pretrain("conve", graph, tmp_path / "a.pt", settings={**SMALL, "dim": 10}, listener=heard)
    assert heard.notes == ["2 of the graph's entities are in no training triple"]  # e18 and e19
    assert heard.facts["backbone"] == "conve of width 9"  # the nearest that it can have
    with (graph / "train.txt").open("a") as stream:
        stream.writelines(f"e{n}\tr0\te{n}\n" for n in range(20))
    other = Heard()
    pretrain("conve", graph, tmp_path / "b.pt", settings=SMALL, listener=other)
    assert other.notes == []


def test_what_a_large_table_needs_is_said_before_training(tmp_path, toy_dataset, monkeypatch):
    monkeypatch.setattr(pretraining, "machine_memory", lambda: 30_000)
    heard = Heard()
    pretrain("distmult", toy_dataset, tmp_path / "it.pt", settings=SMALL, listener=heard)
    (note,) = (note for note in heard.notes if "this machine" in note)
    assert "0.0205MB of memory for the entity table" in note  # 8 · 4 bytes · 40 entities · 16
    assert "this machine has 0.03MB" in note


def test_a_resumed_pretraining_reports_the_width_it_began_with(tmp_path, toy_dataset):
    file = tmp_path / "it.pt"
    with pytest.raises(KeyboardInterrupt):
        pretrain("complex", toy_dataset, file, settings=SMALL, listener=Stop(3))
    heard = Heard()
    pretrain("complex", toy_dataset, file, resume=True, listener=heard)
    assert heard.facts["backbone"] == "complex of width 16"


def test_tensors_of_whole_numbers_are_not_trained(tmp_path, toy_dataset):
    @dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
    class Permuted(backbone_class("distmult")):
        order: torch.Tensor  # [d], whole numbers

        def forward(self, heads, relations):
            return super().forward(heads, relations)[:, self.order]

        @classmethod
        def random_fields(cls, dim, generator):
            return {"order": torch.randperm(dim, generator=generator)}

    graph = KnowledgeGraph.open(toy_dataset)
    made = EmbeddingTask(Permuted, graph, recipe(), torch.device("cpu"))
    loop_of(made, tmp_path / "it").step(next(made.batches(0, 0)))
    assert set(made.weights) == {"entities", "relations"}
    assert made.backbone.to(dtype=torch.float64).order.dtype == torch.int64


def test_the_penalty_is_chosen_on_valid(tmp_path, toy_dataset):
    file, heard = tmp_path / "it.pt", Heard()
    settings = {**SMALL, "penalty": None}
    pretrain("complex", toy_dataset, file, settings=settings, listener=heard)
    tried = [float(note.split()[1][8:]) for note in heard.notes if note.startswith("trying")]
    assert tried[:2] == [0.08, 0.03]
    chosen = float(heard.notes[-1].partition("=")[2].split()[0])
    figures = {}
    for penalty in tried:
        other = tmp_path / f"{penalty}.pt"
        pretrain("complex", toy_dataset, other, settings={**SMALL, "penalty": penalty})
        figures[penalty] = read_checkpoint(other).validation.value
    assert figures[chosen] == max(figures.values())
    best, same = open_backbone(file), open_backbone(tmp_path / f"{chosen}.pt")
    assert torch.equal(best.entities, same.entities)


def test_a_stopped_choice_of_the_penalty_ends_like_one_that_was_not(tmp_path, toy_dataset):
    settings = {**SMALL, "penalty": None, "save_minutes": 0}
    files = tmp_path / "complete.pt", tmp_path / "stopped.pt"
    pretrain("complex", toy_dataset, files[0], settings=settings)
    for at in (20, 60, 100):
        with pytest.raises(KeyboardInterrupt):
            pretrain(
                "complex", toy_dataset, files[1], settings=settings, resume=True, listener=Stop(at)
            )
    pretrain("complex", toy_dataset, files[1], resume=True)
    one, other = (open_backbone(file) for file in files)
    assert torch.equal(one.entities, other.entities)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["complete.pt", "stopped.pt"]


@pytest.mark.parametrize("best", PENALTIES)
def test_climbing_finds_the_best_penalty_of_any_single_peak(best):
    tried = []

    def quality(penalty):
        tried.append(penalty)
        return -abs(PENALTIES.index(penalty) - PENALTIES.index(best))

    assert choose_penalty(quality) == best
    assert len(tried) == len(set(tried)) <= 5


def test_a_large_graph_or_one_without_valid_triples_takes_the_usual_penalty(tmp_path, graph):
    (graph / "valid.txt").write_text("")
    heard = Heard()
    settings = {**SMALL, "penalty": None}
    pretrain("complex", graph, tmp_path / "it.pt", settings=settings, listener=heard)
    assert not [note for note in heard.notes if "penalty" in note]


def test_the_default_settings_by_name_are_those_of_the_score(tmp_path, toy_dataset):
    for name, config in (("one", None), ("other", "default")):
        pretrain("transe", toy_dataset, tmp_path / f"{name}.pt", config=config, settings=SMALL)
    one, other = (open_backbone(tmp_path / f"{name}.pt") for name in ("one", "other"))
    assert torch.equal(one.entities, other.entities)


def test_only_the_same_training_can_be_resumed(tmp_path, toy_dataset):
    file = tmp_path / "a.pt"
    with pytest.raises(KeyboardInterrupt):
        pretrain("complex", toy_dataset, file, settings=SMALL, listener=Stop(3))
    with pytest.raises(RunError, match="--resume"):
        pretrain("complex", toy_dataset, file, settings=SMALL)
    with pytest.raises(ConfigError, match="began with other settings of dim"):
        pretrain("complex", toy_dataset, file, settings={"dim": 8}, resume=True)
    with pytest.raises(RunError, match="did not begin with the backbone distmult"):
        pretrain("distmult", toy_dataset, file, resume=True)


def test_a_loss_that_is_not_finite_is_an_error_and_writes_nothing(tmp_path, toy_dataset):
    with pytest.raises(RunError, match="learning_rate"):
        pretrain(
            "transe", toy_dataset, tmp_path / "a.pt", settings={**SMALL, "learning_rate": 1e30}
        )
    assert not (tmp_path / "a.pt").exists()


def test_the_command_trains_ranks_and_writes(tmp_path, toy_dataset):
    file = tmp_path / "toy.pt"
    result = CliRunner().invoke(main, [
        "pretrain", "--backbone", "distmult", "--dataset", str(toy_dataset), "-o", str(file),
        "--set", "dim=8", "--epochs", "2", "--seed", "3",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "test, filtered: MRR 0." in result.stdout
    shown = CliRunner().invoke(main, ["inspect", str(file), "--json"])
    facts = json.loads(shown.stdout)
    assert (facts["model"], facts["reciprocal"], facts["epoch"]) == ("DistMult", True, 2)
    # Which is LibKGE's name for what is filtered by train, valid and test.
    assert facts["validation"]["metric"] == "mean_reciprocal_rank_filtered_with_test"


def test_a_folder_of_named_triples_is_a_graph_to_the_end(tmp_path, toy_dataset):
    graph, folder = KnowledgeGraph.open(toy_dataset), tmp_path / "mine"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        lines = [
            f"{graph.entity_ids[s]}\t{graph.relation_ids[p]}\t{graph.entity_ids[o]}\n"
            for s, p, o in graph.triples(split).tolist()
        ]
        (folder / f"{split}.txt").write_text("".join(lines))
    file, run = tmp_path / "mine.pt", tmp_path / "run"
    given = ["--backbone", "distmult", "--dataset", folder]
    cli("pretrain", *given, "-o", file, "--set", "dim=8", "--epochs", 2)
    assert open_backbone(file, dataset=folder).entity_ids[0] in graph.entity_ids
    assert "MRR" in cli("inspect", file, "--dataset", folder, "--rank", "test").stdout
    sample_few(KnowledgeGraph.open(folder), tmp_path / "mine-queries")
    cli("train", "--checkpoint", file, "--out", run, *options())  # finds the folder beside the file
    asked = "friend_of(person/sven_ekdal, ?)"
    found = cli("ask", run, asked, "-k", 1).stdout
    assert found.split()[1] in graph.entity_ids


def test_an_interrupt_prints_the_command_to_continue(tmp_path, toy_dataset, monkeypatch):
    def stop(*arguments, **options):
        raise Interrupted

    monkeypatch.setattr("lmpnn_kge.training.loop.Loop.train", stop)
    file = tmp_path / "a b.pt"
    arguments = ["pretrain", "--backbone", "transe", "--dataset", str(toy_dataset), "-o", str(file)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 130
    assert result.stdout.rstrip().endswith(f"-o '{file}' --resume")


def test_what_could_not_be_written_is_found_before_training(tmp_path, toy_dataset, monkeypatch):
    class Nameless(backbone_class("distmult")):
        libkge_models = ()

    monkeypatch.setattr(pretraining, "load_class", lambda name: Nameless)
    with pytest.raises(BackboneError, match=r"to a .safetensors file, or set libkge_models"):
        pretrain("nameless", toy_dataset, tmp_path / "it.pt")
    assert not list(tmp_path.iterdir())


def test_any_backbone_is_written_as_safetensors(tmp_path, toy_dataset):
    file = tmp_path / "it.safetensors"
    pretrain("distmult", toy_dataset, tmp_path / "it.pt", settings=SMALL)
    pretrain("distmult", toy_dataset, file, settings=SMALL)
    package, other = open_backbone(tmp_path / "it.pt"), open_backbone(file)
    assert torch.equal(package.entities, other.entities)
    assert package.relation_ids == other.relation_ids
    assert read_checkpoint(file).dataset == read_checkpoint(tmp_path / "it.pt").dataset


def test_what_is_there_is_not_written_over(tmp_path, toy_dataset):
    file = tmp_path / "it.pt"
    file.write_text("mine")
    for place, words in ((file, "exists already"), (tmp_path, "is a folder; name a file")):
        for resume in (False, True):
            with pytest.raises(LmpnnError, match=words):
                pretrain("complex", toy_dataset, place, settings=SMALL, resume=resume)
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "mine"


def test_a_finished_file_is_not_trained_again_if_its_process_was_killed_at_the_end(
    tmp_path, toy_dataset, monkeypatch
):
    file = tmp_path / "it.pt"

    def killed(folder):
        remove_folder(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr("lmpnn_kge.runs.pretrain.remove_folder", killed)
    with pytest.raises(KeyboardInterrupt):
        pretrain("complex", toy_dataset, file, settings=SMALL)
    content = file.read_bytes()
    monkeypatch.undo()
    again = pretrain("complex", toy_dataset, file, settings=SMALL, resume=True)
    assert again == pretrain("complex", toy_dataset, tmp_path / "other.pt", settings=SMALL)
    assert file.read_bytes() == content
    with pytest.raises(RunError, match="exists already"):
        pretrain("rotate", toy_dataset, file, settings=SMALL, resume=True)


@pytest.fixture
def graph(tmp_path):
    """A small folder of named triples, to change."""
    folder = tmp_path / "graph"
    folder.mkdir()
    lines = [f"e{n}\tr{n % 2}\te{(n + 1 + n % 3) % 20}\n" for n in range(20)]
    for split, part in (("train", lines[:16]), ("valid", lines[16:18]), ("test", lines[18:])):
        (folder / f"{split}.txt").write_text("".join(part))
    return folder


def test_without_valid_triples_the_last_state_is_written(tmp_path, graph):
    (graph / "valid.txt").write_text("")
    assert pretrain("complex", graph, tmp_path / "it.pt", settings=SMALL) is not None
    assert read_checkpoint(tmp_path / "it.pt").validation is None
    made = task(graph)
    loop = loop_of(made, tmp_path / "training")
    loop.train(SILENT)
    best, epoch = made.best(loop.folder)
    assert epoch == read_checkpoint(tmp_path / "it.pt").epoch == SMALL["epochs"]
    assert torch.equal(best.entities, made.backbone.entities)
    assert torch.equal(best.entities, open_backbone(tmp_path / "it.pt").entities)


def test_the_best_state_is_written_with_its_epoch_and_its_figure(tmp_path, toy_dataset):
    file = tmp_path / "it.pt"
    settings = {**SMALL, "epochs": 30, "patience": 4, "penalty": 0.0, "learning_rate": 0.5}
    pretrain("rescal", toy_dataset, file, settings=settings)
    written, graph = read_checkpoint(file), KnowledgeGraph.open(toy_dataset)
    assert written.epoch < 30 - 4
    assert written.validation.epoch == written.epoch
    ranked = rank_split(open_backbone(file, dataset=toy_dataset), graph, "valid")
    assert written.validation.value == pytest.approx(ranked.mrr)


def test_a_graph_without_training_triples_is_refused(tmp_path, graph):
    (graph / "train.txt").write_text("")
    with pytest.raises(RunError, match="graph has no training triples"):
        pretrain("complex", graph, tmp_path / "it.pt", settings=SMALL)


def test_a_pretraining_is_not_resumed_on_a_changed_graph(tmp_path, graph):
    file = tmp_path / "it.pt"
    with pytest.raises(KeyboardInterrupt):
        pretrain("complex", graph, file, settings=SMALL, listener=Stop(1))
    with (graph / "train.txt").open("a") as stream:
        stream.write("e1\tr1\te1\n")
    with pytest.raises(RunError, match="did not begin with the graph"):
        pretrain("complex", graph, file, resume=True)


def test_a_network_takes_smaller_steps_than_the_tables(tmp_path, toy_dataset):
    made = task(toy_dataset, "conve", learning_rate=0.5, network_share=0.125)
    before = {name: tensor.detach().clone() for name, tensor in made.weights.items()}
    loop_of(made, tmp_path / "it").step(next(made.batches(0, 0)))
    steps = {n: (t.detach() - before[n]).abs().max().item() for n, t in made.weights.items()}
    # The first step of Adagrad is the rate itself wherever there is a gradient.
    assert steps["entities"] == pytest.approx(0.5, rel=1e-3)
    assert steps["filters"] == pytest.approx(0.5 / 8, rel=1e-3)
