"""A served run and a browser. Without playwright or Chromium, the tests of the page are skipped."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.runs.train import train
from tests.conftest import TOY
from tests.toy_runs import ROTATE, sample_few, start, tiny

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: A name that would run a script if the page took it as markup.
HOSTILE = "<img src=x onerror=document.title='hacked'>"

DESKTOP, PHONE, SMALL = (1280, 800), (390, 844), (360, 640)

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The address of a server with two runs, in whose graph Ada Voss has a hostile name."""
    pytest.importorskip("uvicorn", reason="needs the extra serve")
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(TOY / "dataset", folder / "graph")
    labels = folder / "graph" / "entity_strings.del"
    labels.write_text(labels.read_text(encoding="utf-8").replace("Ada Voss", HOSTILE), "utf-8")
    sample_few(KnowledgeGraph.open(folder / "graph"), folder / "queries")
    train(
        ROTATE,
        dataset=folder / "graph",
        queries=folder / "queries",
        out=folder / "first",
        settings=tiny(),
    )
    shutil.copytree(folder / "first", folder / "second")
    server = start("serve", "first", "second", "--port", 0, "--no-log", cwd=folder)
    try:
        line = server.stdout.readline()
        assert line.startswith("the page is at http://127.0.0.1:"), line + server.stderr.read()
        yield line.split()[-1]
    finally:
        server.terminate()
        server.communicate()


@dataclass
class Site:
    """A page of the browser, with what went wrong in it and where it sent requests."""

    page: Page
    address: str
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.set_default_timeout(20_000)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def open(self, path=""):
        self.page.goto(self.address + path)
        return self.page

    def ask(self, question):
        """Open the page and ask a question."""
        page = self.open()
        self.box.fill(question)
        self.box.press("Enter")
        self.answers.first.wait_for()
        return page

    @property
    def box(self):
        return self.page.get_by_label("Question", exact=True)

    @property
    def answers(self):
        """The buttons with the names of answers."""
        return self.page.locator("table button.answer")

    def names(self):
        return self.answers.all_inner_texts()


@pytest.fixture
def open_site(browser, address):
    """Open pages of given sizes and colours; at the end, nothing may have gone wrong in them."""
    sites = []

    def open_page(size=DESKTOP, scheme="light", **options):
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=size != DESKTOP,
            **options,
        )
        sites.append(Site(context.new_page(), address))
        return sites[-1]

    yield open_page
    for site in sites:
        site.page.context.close()
        assert site.problems == []
        assert {url for url in site.requests if not url.startswith((address, "blob:"))} == set()


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def site(request, open_site):
    return open_site(request.param)
