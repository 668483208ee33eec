"""What everybody needs of the page: names, contrast, room on a phone, calm, and little weight."""

import re
from importlib.resources import files
from urllib.parse import urlencode

import pytest

from .conftest import DESKTOP, PHONE, SMALL

QUESTION = (
    'friend_of(?, ?x) & !(mentor_of(?x, ?y) & lives_in(?y, "Juniper Hill")) & ?x != "Nils Oakham" '
    '& !mentor_of(?, "Jonas Petri") | student_of("Nils Oakham", ?)'
)


def link(**fields):
    return "#/ask?" + urlencode(fields)


#: Views by their links, each with what is there once it is complete.
VIEWS = {
    "empty": ("", ".examples button"),
    "answers": (link(q=QUESTION, asked="true"), "table button.answer"),
    "reason": (link(q=QUESTION, asked="true", answer="person/hugo_brandt"), ".conditions"),
    "comparison": (link(q=QUESTION, asked="true", compare="true", method="search,lmpnn"), "td"),
    "mistake": (link(q="friend_of(?, Nobody)"), "#check pre"),
    "entity": ("#/entity?name=Nils+Oakham", ".relations"),
    "run": ("#/run", ".figures"),
}

PAGE = files("lmpnn_kge.serve").joinpath("page")


def open_view(site, name):
    path, complete = VIEWS[name]
    page = site.open(path)
    page.locator(complete).first.wait_for()
    if name == "empty":
        page.get_by_role("button", name="the answer ?").click()  # the form of the builder
    elif path.startswith("#/ask"):
        page.locator(".parts[aria-busy=false]").wait_for()
    return page


@pytest.mark.long
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_to_improve(open_site, view, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.base", reason="needs the extra browser")
    site = open_site(size, scheme, reduced_motion="reduce")
    page = open_view(site, view)
    page.evaluate(axe.AXE_FILE_PATH.read_text(encoding="utf-8"))
    outcome = page.evaluate("axe.run()")
    assert {"color-contrast", "button-name", "label"} & {rule["id"] for rule in outcome["passes"]}
    assert [
        f"{rule['id']}: {rule['help']}: {node['target']} {node['failureSummary']}"
        for rule in outcome["violations"]
        for node in rule["nodes"]
    ] == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_small_phone_shows_the_page_without_scrolling_sideways(open_site, view):
    page = open_view(open_site(SMALL), view)
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL[0]


def test_nothing_moves_for_people_who_do_not_want_it(open_site):
    site = open_site(reduced_motion="reduce")
    page = site.open()
    page.route("**/api/ask", lambda route: None)  # never answered
    site.box.fill('friend_of(?, "Nils Oakham")')
    site.box.press("Enter")
    page.locator(".spinner").wait_for()
    assert page.evaluate("document.getAnimations().length") == 0


def test_every_focusable_element_shows_its_focus(open_site):
    page = open_view(open_site(), "answers")
    for _ in range(40):
        page.keyboard.press("Tab")
        looks = page.evaluate(
            """() => {
                const element = document.activeElement;
                if (element === document.body) return 'end';
                const shapes = [element, element.querySelector('rect'), element.closest('label')];
                const isShown = ({outlineStyle, strokeWidth}, shape) =>
                    shape.tagName === 'rect' ? strokeWidth === '3px' : outlineStyle !== 'none';
                return shapes.filter(Boolean).some((s) => isShown(getComputedStyle(s), s))
                    || element.outerHTML;
            }"""
        )
        assert looks in (True, "end")


def test_the_page_weighs_less_than_200_kilobytes():
    assert sum(len(file.read_bytes()) for file in PAGE.iterdir()) < 200_000


def test_the_page_never_makes_markup_from_text_and_loads_nothing_from_elsewhere():
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        hosts = set(re.findall(r"https?://[^\s'\"]+", text))
        assert hosts <= {"http://www.w3.org/2000/svg"}  # a namespace, which nobody requests
