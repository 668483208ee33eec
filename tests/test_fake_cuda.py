"""The GPU path without a GPU: torch computes shapes and devices for "cuda", but no numbers.

An operation on tensors of two devices raises. This needs a CUDA build of torch: a CPU build cannot
make such tensors. Gradients need a real GPU, and so does what looks at numbers, such as a list of
the distinct relations of a batch.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lmpnn_kge.lmpnn.loss import contrastive_loss
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.surplus import surplus
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.settings.files import load_config

from .backbones.test_contract import ENTITIES, NAMES, RELATIONS, make

pytestmark = pytest.mark.skipif(
    torch.version.cuda is None, reason="needs a CUDA build of torch; a GPU is not needed"
)

CUDA = torch.device("cuda")
PATTERNS = named_patterns()
N = 7


@pytest.fixture(params=NAMES)
def network(request):
    """A network on each backbone, moved to a GPU that is not there."""
    model = Lmpnn(make(request.param), load_config("tiny"))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.no_grad():
        for module in model.modules():
            for name, weight in list(module.named_parameters(recurse=False)):
                moved = mode.from_tensor(weight.detach()).to(CUDA)
                setattr(module, name, torch.nn.Parameter(moved, requires_grad=False))
        tensors = {
            name: mode.from_tensor(tensor).to(CUDA)
            for name, tensor in model.backbone.tensors().items()
        }
        model.backbone = model.backbone.with_tensors(tensors)
        yield model


def ids(highest, *shape):
    return torch.randint(highest, shape, device=CUDA)


def embed(model, name):
    pattern = PATTERNS[name]
    constants = ids(ENTITIES, N, len(pattern.constants))
    relations = ids(2 * RELATIONS, N, len(pattern.relations))
    wirings = wire(pattern, "dnf", 0, "kept")
    return torch.stack([model(wiring, constants, relations) for wiring in wirings])


@pytest.mark.parametrize("pattern", ["1p", "pin", "up"])
def test_forward_stays_on_the_gpu(network, pattern):
    assert embed(network, pattern).device.type == "cuda"


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("negatives", ["independent", "shared", "all"])
def test_the_loss_stays_on_the_gpu(network, negatives, known):
    noise = {"independent": ids(ENTITIES, N, 5), "shared": ids(ENTITIES, 5), "all": None}
    loss = contrastive_loss(
        embed(network, "up"),
        network.backbone.entities,
        ids(ENTITIES, N),
        noise[negatives],
        0.1,
        ids(5, 2, N) if known else None,
    )
    assert loss.device.type == "cuda"


def test_scores_and_ranks_stay_on_the_gpu(network):
    method = LmpnnMethod.of(network, load_config("tiny"))
    scores = method.score(method.embed(PATTERNS["2u"], ids(ENTITIES, N, 2), ids(RELATIONS, N, 2)))
    assert surplus(scores, scores[:, :3]).device.type == "cuda"


def test_the_scores_that_search_calibrates_stay_on_the_gpu(network):
    if network.backbone.projects:
        pytest.skip("it looks at the distinct relations of a batch")
    assert network.backbone.score_tails(ids(ENTITIES, N), ids(RELATIONS, N)).device.type == "cuda"
