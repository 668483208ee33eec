"""CQD against the truth of formulas, worked out for one query and every entity."""

import itertools
import json
import math

import pytest
import torch
import yaml
from click.testing import CliRunner

from lmpnn_kge import ConfigError, QueryError, backbone_class
from lmpnn_kge.backbones.link_prediction import rank_triples
from lmpnn_kge.cli import main
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.methods.clauses import measured_margin
from lmpnn_kge.methods.cqd import Cqd, CqdBeam
from lmpnn_kge.methods.fuzzy import Product
from lmpnn_kge.methods.rank import rank_queries
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import FREE, Atom, Constant, Variable
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, parse_pattern
from lmpnn_kge.runs.baselines import evaluate_method
from lmpnn_kge.settings.files import load_settings
from lmpnn_kge.settings.kinds import CqdSettings
from lmpnn_kge.settings.values import parse_settings, to_yaml
from lmpnn_kge.training.questions import Questions

from .. import made_up
from ..backbones.test_contract import NAMES
from ..conftest import TOY
from ..toy_runs import ROTATE, sample_few

ENTITIES, RELATIONS = 5, 3
PATTERNS = made_up.patterns("2f-i", "2f-m", "2f-cn")
both_norms = pytest.mark.parametrize("t_norm", ["product", "godel"])


def settings(**changes) -> CqdSettings:
    return load_settings(CqdSettings, ["default"], {"steps": 30, "beam": 200, **changes})


def backbone(name="complex"):
    random = backbone_class(name).random(ENTITIES, RELATIONS, 4, seed=1)
    return random.to(dtype=torch.float64)


def columns(pattern, count=3):
    drawn = made_up.queries(pattern, count, ENTITIES, RELATIONS)
    return torch.from_numpy(drawn.constants).long(), torch.from_numpy(drawn.relations).long()


def scores(method, pattern, constants, relations):
    return method.answer(pattern, constants, relations)(slice(None))


class ByHand:
    """The truth of a formula in plain numbers: variables take every entity in turn."""

    def __init__(self, model, t_norm, pattern, constants, relations):
        self.model, self.product, self.pattern = model, t_norm == "product", pattern
        self.constants = dict(zip(pattern.constants, constants.tolist(), strict=True))
        self.relations = dict(zip(pattern.relations, relations.tolist(), strict=True))

    def of_all(self):
        return torch.tensor([self.of(entity) for entity in range(ENTITIES)], dtype=torch.float64)

    def of(self, entity):
        found = [self.conjunct(c, {FREE: entity}) for c in self.pattern.disjuncts]
        return 1 - math.prod(1 - truth for truth in found) if self.product else max(found)

    def conjunct(self, conjunct, values):
        best = 0.0
        for chosen in itertools.product(range(ENTITIES), repeat=len(conjunct.bound)):
            now = {**values, **dict(zip(conjunct.bound, chosen, strict=True))}
            parts = [self.literal(literal, now) for literal in conjunct.literals]
            parts += [1 - self.conjunct(group, now) for group in conjunct.groups]
            best = max(best, math.prod(parts) if self.product else min(parts))
        return best

    def literal(self, literal, values):
        ends = [
            self.constants[t.name] if isinstance(t, Constant) else values[t] for t in literal.terms
        ]
        table = self.model.entities
        is_atom = isinstance(literal.atom, Atom)
        relation = self.relations[literal.atom.relation] if is_atom else "="
        score = self.model.score(table[ends[:1]], relation, table[ends[1:]])
        truth = 1 / (1 + math.exp(-score.item()))
        return 1 - truth if literal.negated else truth


@both_norms
@pytest.mark.parametrize("name", PATTERNS)
def test_a_beam_that_holds_everything_finds_the_exact_truth(name, t_norm):
    pattern, model = PATTERNS[name], backbone()
    constants, relations = columns(pattern)
    method = CqdBeam.of(model, settings(t_norm=t_norm))
    found = scores(method, pattern, constants, relations)
    for row in range(len(constants)):
        by_hand = ByHand(model, t_norm, pattern, constants[row], relations[row])
        # Where one literal is all there is, it is its logit that is given.
        truth = found[row].sigmoid() if name == "1p" else method.fuzzy.norm.log(found[row]).exp()
        torch.testing.assert_close(truth, by_hand.of_all(), rtol=1e-9, atol=1e-12)


@both_norms
def test_the_objective_of_inp_is_the_papers(t_norm):
    """TV(x, y) = ψ(r1(c1, x)) ⊤ (1 − ψ(r2(c2, x))) ⊤ ψ(r3(x, y))"""
    model, pattern = backbone(), PATTERNS["inp"]
    constants, relations = columns(pattern)
    method = Cqd.of(model, settings(t_norm=t_norm, scale=0.7, margin=0.3))
    (clause,) = method.fuzzy.clauses(pattern, constants, relations)
    x, y = torch.randn(2, 3, model.dim, dtype=torch.float64)
    (bound,) = clause.bound
    found = method.log_truth(clause, {bound: x, FREE: y}).exp()

    def psi(head, column, tail):
        return torch.sigmoid(0.7 * model.score(head, relations[:, column], tail) + 0.3)

    c1, c2 = model.entities[constants].unbind(1)
    parts = torch.stack([psi(c1, 0, x), 1 - psi(c2, 1, x), psi(x, 2, y)])
    expected = parts.prod(0) if t_norm == "product" else parts.amin(0)
    torch.testing.assert_close(found, expected)


@both_norms
@pytest.mark.parametrize("name", ["2p", "inp", "pi", "3c", "2il"])
def test_optimisation_raises_the_truth(name, t_norm):
    model, pattern = backbone(), PATTERNS[name]
    constants, relations = columns(pattern)
    truths = []
    for steps in (0, 5, 100):
        method = Cqd.of(model, settings(t_norm=t_norm, steps=steps, penalty=0.0))
        (clause,) = method.fuzzy.clauses(pattern, constants, relations)
        values = method.optimise(clause)
        truths.append(method.log_truth(clause, values))
    assert (truths[1] > truths[0]).all()
    assert (truths[2] > truths[1]).all()


def test_a_variable_within_a_negation_makes_true_what_is_denied():
    """¬∃x is false of y if any x will do, so x must be sought and not shunned."""
    model, pattern = backbone(), PATTERNS["pni"]
    constants, relations = columns(pattern, 20)
    points = []
    for steps in (0, 1):
        method = Cqd.of(model, settings(steps=steps, penalty=0.0, learning_rate=1e-3))
        (clause,) = method.fuzzy.clauses(pattern, constants, relations)
        points.append(method.optimise(clause))
    (group,) = clause.groups
    (inner,) = group.bound
    before, after = ({inner: found[inner], FREE: points[0][FREE]} for found in points)
    assert (method.log_truth(group, after) > method.log_truth(group, before)).all()


@pytest.mark.parametrize("kind", [Cqd, CqdBeam])
@pytest.mark.parametrize("name", NAMES)
def test_one_hop_is_link_prediction(name, kind):
    kind_of = backbone_class(name)
    model = kind_of.random(50, RELATIONS, kind_of.entity_width(16), reciprocal=True)
    heads, relations = torch.arange(50)[:, None], (torch.arange(50) % (2 * RELATIONS))[:, None]
    found = scores(kind.of(model, settings()), PATTERNS["1p"], heads, relations)
    expected = model.score_tails(heads[:, 0], relations[:, 0])
    assert (found.argsort(stable=True) == expected.argsort(stable=True)).all()


def test_one_hop_ranks_equal_those_of_link_prediction_on_a_graph():
    graph = KnowledgeGraph.open(TOY / "dataset")
    model = backbone_class("complex").random(len(graph.entity_ids), len(graph.relation_ids), 16)
    triples = graph.splits["test"]
    asked = Questions.of(triples, model.num_relations)
    none = made_up.answers([[] for _ in asked.heads])
    given = (asked.heads[:, None], asked.relations[:, None])
    queries = Queries(PATTERNS["1p"], *given, none, asked.tails)
    ranks = rank_queries(Cqd.of(model, settings()), queries)
    assert (1 / ranks).mean() == pytest.approx(rank_triples(model, triples, triples).mrr)


@pytest.mark.parametrize("kind", [Cqd, CqdBeam])
@pytest.mark.parametrize("name", ["3p", "up", "pni", "3cm"])
def test_a_query_does_not_depend_on_the_others(name, kind):
    pattern = PATTERNS[name]
    constants, relations = columns(pattern, 7)
    method = kind.of(backbone(), settings(beam=3))
    answer = method.answer(pattern, constants, relations)
    apart = torch.cat([
        scores(method, pattern, constants[row : row + 1], relations[row : row + 1])
        for row in range(7)
    ])  # fmt: skip
    torch.testing.assert_close(answer(slice(None)), apart)
    torch.testing.assert_close(answer(slice(2, 5)), apart[2:5])


def test_a_formula_of_every_kind_is_answered():
    """Loops, equalities, constants at both ends, groups that share a variable with the outside."""
    model = backbone()
    for text in (
        "r1(f,f)&r2(s1,f)",
        "r1(s1,e1)&r2(e1,f)&e1!=s2",
        "r1(s1,s2)&r2(s1,f)",
        "r1(f,s1)",
        "r1(s1,f)&f=f",
        "r1(s1,e1)&!(r2(e1,e2)&r3(e2,f))",
    ):
        pattern = parse_pattern(text)
        constants, relations = columns(pattern)
        for kind in (Cqd, CqdBeam):
            found = scores(kind.of(model, settings()), pattern, constants, relations)
            assert found.shape == (3, ENTITIES)
            assert found.isfinite().all()
        by_hand = ByHand(model, "product", pattern, constants[0], relations[0])
        assert (found[0].argsort() == by_hand.of_all().argsort()).all()


def test_a_beam_needs_an_entity():
    pattern = parse_pattern("r1(e1,f)")
    with pytest.raises(QueryError, match="entity to begin with"):
        scores(CqdBeam.of(backbone(), settings()), pattern, *columns(pattern))


def test_denying_keeps_small_truths_apart():
    """1 − (1 − t) is t again, for truths that float32 cannot tell from 0 or from 1."""
    values = torch.tensor([-60.0, -30.0, -1.0, -1e-3, -1e-9, -1e-15])
    torch.testing.assert_close(Product().deny(Product().deny(values)), values, rtol=1e-4, atol=0)


def test_denying_what_is_true_or_false_for_certain_has_a_gradient():
    values = torch.tensor([0.0, -1e-30, -200.0, -0.7]).requires_grad_()
    (gradient,) = torch.autograd.grad(Product().deny(values).sum(), values)
    assert gradient.isfinite().all()


def test_the_margin_of_a_distance_is_that_of_near_entities():
    model = backbone_class("transe").random(100, RELATIONS, 8)
    margin = measured_margin(model, seed=0)
    nearer = (model.score_tails(torch.arange(100), torch.zeros(100).long()) > -margin).sum(1)
    assert 3 < nearer.float().mean() < 30
    assert measured_margin(backbone(), seed=0) == 0


@pytest.mark.parametrize("name", ["transe", "complex"])
@pytest.mark.parametrize("kind", [Cqd, CqdBeam])
def test_a_margin_is_measured_unless_it_is_given_and_may_be_zero(kind, name):
    model = backbone_class(name).random(100, RELATIONS, 8)
    assert settings().margin is None
    assert kind.of(model, settings()).fuzzy.margin == measured_margin(model, seed=0)
    for margin in (0.0, -2.5, 3.0):
        assert kind.of(model, settings(margin=margin)).fuzzy.margin == margin


def test_a_margin_is_null_or_a_number():
    assert settings(**parse_settings(["margin=0"])).margin == 0
    assert settings(**parse_settings(["margin=null"])).margin is None
    shown = yaml.safe_load(to_yaml(settings()))
    assert settings(**shown) == settings()
    with pytest.raises(ConfigError, match="margin is 'wide', but must be a number"):
        settings(margin="wide")
    with pytest.raises(ConfigError, match="scale is 'None', but must be a number"):
        settings(scale=None)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("queries") / "store"
    sample_few(KnowledgeGraph.open(TOY / "dataset"), folder)
    return folder


def invoke(*words):
    return CliRunner().invoke(main, ["evaluate", *map(str, words)])


@pytest.mark.parametrize("method", ["cqd", "cqd-beam", "frequency"])
def test_the_command_prints_the_papers_row(method, store):
    given = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", store]
    quick = [] if method == "frequency" else ["--set", "steps=5"]
    result = invoke("--method", method, *given, *quick, "--json", "--limit", 7)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["types"]["2p"]["queries"] == 7
    assert found["types"]["1p"]["mrr"] > 0
    again = evaluate_method(
        method,
        ROTATE,
        dataset=TOY / "dataset",
        queries=store,
        limit=7,
        settings={"steps": 5} if quick else None,
    )
    assert again.to_json() == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give a RUN"),
        (["--method", "cqd"], "needs --checkpoint"),
        (["run", "--method", "cqd", "--checkpoint", ROTATE], "not a RUN"),
        (["run", "--set", "steps=1"], "--set does not apply"),
        (["--method", "cqd", "--checkpoint", ROTATE, "--union", "dnf"], "--union does not apply"),
        (["--method", "cqt", "--checkpoint", ROTATE], "cqd"),
    ],
)
def test_what_does_not_go_together_is_refused(words, said):
    result = invoke(*words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_wrong_settings_and_splits_are_pointed_at(store):
    given = {"dataset": TOY / "dataset", "queries": store}
    with pytest.raises(ConfigError, match="steps"):
        evaluate_method("cqd", ROTATE, settings={"stepps": 3}, **given)
    with pytest.raises(ConfigError, match="godel"):
        evaluate_method("cqd", ROTATE, settings={"t_norm": "goedel"}, **given)
    with pytest.raises(ConfigError, match="cqd"):
        evaluate_method("cqdd", ROTATE, **given)
    with pytest.raises(ConfigError, match="no settings"):
        evaluate_method("frequency", ROTATE, settings={"steps": 3}, **given)
    with pytest.raises(QueryError, match="valid"):
        evaluate_method("cqd", ROTATE, split="vali", **given)


def test_patterns_are_read_in_the_words_of_the_language_too():
    formula = parse("borders(Germany, ?) & !currency(?, Euro)")
    pattern = Pattern(formula)
    assert isinstance(normalise(formula)[0].literals[0].terms[1], Variable)
    found = scores(CqdBeam.of(backbone(), settings()), pattern, *columns(pattern))
    assert found.shape == (3, ENTITIES)
