"""Asking in a browser: type, complete, ask, filter, compare, explain, and link to all of it."""

import csv
import json
import re
from urllib.parse import urlencode

import pytest

from .conftest import HOSTILE, PHONE

NEIGHBOURS = 'friend_of("Nils Oakham", ?)'
STUDENTS = 'student_of("Nils Oakham", ?) & !friend_of("Hugo Brandt", ?)'
PATH = 'lives_in("Yves Lambert", ?x) & known_in(?, ?x)'

SPARQL = """PREFIX : <kge:>
SELECT ?who WHERE {
  <kge:person/nils_oakham> :student_of ?who .
  FILTER NOT EXISTS { <kge:person/hugo_brandt> :friend_of ?who }
}"""


def suggestion(page, name):
    return page.get_by_role("option", name=re.compile(rf"^{name}\b"))


def test_a_question_is_typed_with_completion_and_asked(site):
    page = site.open()
    site.box.press_sequentially("stud")
    suggestion(page, "student of").wait_for()
    site.box.press("ArrowDown")
    assert site.box.get_attribute("aria-activedescendant")
    site.box.press("Enter")  # inserts the relation with its bracket
    site.box.press_sequentially("nil")
    suggestion(page, "Nils Oakham").wait_for()
    site.box.press("Tab")
    site.box.press_sequentially("?)")
    assert site.box.input_value() == 'student_of("Nils Oakham", ?)'
    page.get_by_role("button", name="student_of from Nils Oakham to ?").wait_for()
    site.box.press("Enter")
    site.answers.first.wait_for()
    assert site.answers.count() == 10
    assert page.get_by_text("known", exact=True).first.is_visible()
    assert "answers by hybrid" in page.get_by_role("status").inner_text()


def test_suggestions_are_entities_that_the_relation_was_seen_with(open_site):
    site = open_site()
    page = site.open()
    site.box.press_sequentially("lives_in(?, ")
    options = page.get_by_role("listbox").get_by_role("option")
    options.first.wait_for()
    ids = options.locator(".id").all_inner_texts()
    assert ids
    assert all(name.startswith("town/") for name in ids)
    site.box.press("Escape")
    assert page.get_by_role("listbox").count() == 0
    site.box.press("Control+Space")
    options.first.click()
    assert site.box.input_value().endswith(")")


def test_a_wrong_question_is_shown_with_a_caret_below_the_mistake(site):
    page = site.open()
    site.box.fill("student_of(Nobody, ?)")
    excerpt = page.locator("#check pre")
    excerpt.wait_for()
    text, caret = excerpt.inner_text().split("\n")[:2]
    assert text.strip() == "student_of(Nobody, ?)"
    assert text[caret.index("^")] == "N"
    assert "Nobody" in page.locator("#check .error").inner_text()
    assert site.box.get_attribute("aria-invalid") == "true"
    site.box.fill(NEIGHBOURS)
    excerpt.wait_for(state="detached")
    assert site.box.get_attribute("aria-invalid") is None


def test_an_example_is_asked_with_one_click(site):
    page = site.open()
    example = page.locator(".examples button").first
    question = example.inner_text()
    example.click()
    site.answers.first.wait_for()
    assert site.box.input_value() == question
    assert page.title().startswith(question)


def test_an_answer_is_explained_and_the_link_reproduces_the_view(site):
    page = site.ask(PATH)
    name = site.names()[1]
    site.answers.nth(1).click()
    conditions = page.get_by_role("list", name="Conditions").get_by_role("listitem")
    conditions.first.wait_for()
    assert page.get_by_role("heading", name=f"Why {name}?").is_visible()
    assert conditions.count() == 2
    picture = page.get_by_role("img", name=re.compile(f"The reason for {name}"))
    assert picture.locator(".node.answer text").text_content() == f"? {name}"
    assert page.get_by_role("heading", name=re.compile("in the training graph")).is_visible()
    shown = site.names(), conditions.all_inner_texts(), page.url
    page.reload()
    conditions.first.wait_for()
    assert (site.names(), conditions.all_inner_texts(), page.url) == shown
    page.go_back()
    page.get_by_text("Choose an answer").wait_for()
    assert site.names() == shown[0]


def test_other_reasons_are_a_click_away(open_site):
    site = open_site()
    page = site.ask("friend_of(?, ?x) & lives_in(?x, ?y)")
    site.answers.first.click()
    reason = page.locator(".pages")
    reason.wait_for()
    total = int(reason.inner_text().split()[-2])
    assert total > 1
    first = page.locator(".reason-title").inner_text()
    page.get_by_role("button", name="Next reason").click()
    assert page.locator(".reason-title").inner_text() != first
    page.reload()
    reason.wait_for()
    assert f"Reason 2 of {total}" in reason.inner_text()


def test_methods_are_switched_and_compared(site):
    page = site.ask(STUDENTS)
    page.get_by_label("LMPNN").check()
    page.get_by_role("columnheader", name="Score").wait_for()
    assert "method=lmpnn" in page.url
    page.get_by_label("side by side").check()
    page.locator(".column table").nth(2).wait_for()
    assert page.locator(".column h3").all_inner_texts() == ["hybrid", "search", "LMPNN"]
    page.get_by_label("search").uncheck()
    page.locator(".column table").nth(2).wait_for(state="detached")
    page.reload()
    page.locator(".column table").nth(1).wait_for()
    assert page.locator(".column h3").all_inner_texts() == ["hybrid", "LMPNN"]


def test_pasted_sparql_is_asked_and_shown_as_a_formula(site):
    page = site.open()
    site.box.fill(SPARQL)
    use = page.get_by_role("button", name="Use the formula")
    use.wait_for()
    site.box.press("Enter")
    site.answers.first.wait_for()
    names = site.names()
    use.click()
    formula = "student_of(person/nils_oakham, ?) & !friend_of(person/hugo_brandt, ?)"
    assert site.box.input_value() == formula
    site.box.press("Enter")
    page.locator(".answers:not(.stale) table").wait_for()
    assert site.names() == names
    page.get_by_text("As SPARQL").click()
    assert "SELECT DISTINCT ?answer" in page.get_by_label("The question as SPARQL").inner_text()


def test_answers_are_filtered_extended_and_saved(open_site, tmp_path):
    site = open_site()
    page = site.ask(STUDENTS)
    page.get_by_role("button", name="More answers").click()
    site.answers.nth(19).wait_for()
    assert page.locator("td.rank").all_inner_texts() == [str(rank) for rank in range(1, 21)]
    page.get_by_label("Filter the answers by name").fill("town/")
    assert all("town/" in row for row in page.locator("tbody tr").all_inner_texts())
    page.get_by_label("Filter the answers by name").fill("")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the answers as CSV").click()
    download.value.save_as(tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == site.names()
    assert {row["question"] for row in rows} == {STUDENTS}
    page.get_by_label("Which answers").select_option("predicted")
    page.locator(".mark.known").first.wait_for(state="detached")
    site.answers.nth(19).wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the answers as JSON").click()
    download.value.save_as(tmp_path / "answers.json")
    (saved,) = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert [answer["label"] for answer in saved["answers"]] == site.names()
    assert not any(answer["known"] for answer in saved["answers"])


def test_a_question_can_be_cancelled_and_tried_again(open_site):
    site = open_site()
    page = site.open()
    held = []
    page.route("**/api/ask", lambda route: held.append(route))  # never answered
    site.box.fill(NEIGHBOURS)
    site.box.press("Enter")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("You cancelled this request.").wait_for()
    assert len(held) == 1
    page.unroute("**/api/ask")
    page.get_by_role("button", name="Try again").click()
    site.answers.first.wait_for()


def test_an_error_is_shown_in_the_words_of_the_server(open_site):
    site = open_site()
    page = site.open()
    site.box.fill("nothing(?, ?)")
    site.box.press("Enter")
    message = page.locator(".answers .error")
    message.wait_for()
    assert message.inner_text() == page.locator("#check .error").inner_text()
    (problem,) = site.problems  # the browser reports the refused request
    assert "400 (Bad Request)" in problem
    site.problems.clear()


def test_answers_to_an_older_question_are_marked_as_such(open_site):
    site = open_site()
    page = site.ask(NEIGHBOURS)
    site.box.press_sequentially(" ")
    page.get_by_text("The question has changed").wait_for()
    assert site.answers.first.is_disabled()


@pytest.mark.parametrize("question", ['friend_of(?, "Odile Renard")', "mentor_of(?, ?x)"])
def test_a_name_with_markup_is_text_everywhere(open_site, question):
    site = open_site()
    page = site.open("#/ask?" + urlencode({"q": question, "asked": "true", "rows": 40}))
    site.answers.get_by_text(HOSTILE).click()
    page.get_by_role("heading", name=f"Why {HOSTILE}?").wait_for()
    page.get_by_role("heading", name=f"Around {HOSTILE}").wait_for()
    site.box.fill(f'friend_of("{HOSTILE}", ?')
    page.locator("#check pre").get_by_text(HOSTILE).wait_for()
    site.box.fill(f'friend_of("{HOSTILE}", ?)')
    page.get_by_role("button", name=f"entity {HOSTILE}").wait_for()
    page.get_by_role("link", name="Entities").click()
    page.get_by_role("combobox", name="Find an entity").fill("onerror")
    suggestion(page, "<img").click()
    page.get_by_role("heading", name=HOSTILE).wait_for()
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "hacked"


def test_the_page_of_an_entity_leads_to_others_and_to_questions(site):
    page = site.open("#/entity?name=Nils+Oakham")
    page.get_by_role("heading", name="Nils Oakham").wait_for()
    assert page.get_by_role("heading", name="Known").is_visible()
    assert page.get_by_role("heading", name="Predicted").is_visible()
    page.get_by_role("link", name="Ask lives_in(person/nils_oakham, ?)").first.click()
    site.answers.first.wait_for()
    assert site.box.input_value() == "lives_in(person/nils_oakham, ?)"
    page.go_back()
    link = page.locator(".entities a").first
    name = link.inner_text()
    link.click()
    page.get_by_role("heading", name=name).wait_for()


def test_the_page_of_a_run_has_figures_and_provenance(site):
    page = site.open("#/run")
    page.get_by_role("heading", name="rotate on toykg").wait_for()
    assert page.get_by_role("row", name="2in").is_visible()
    assert page.get_by_role("img", name=re.compile("Calibration of")).first.is_visible()
    assert page.get_by_text("checkpoint.sha256").is_visible()
    page.get_by_role("link", name="Report of this run").click()
    page.wait_for_url("**/report/first")


def test_the_same_question_is_asked_to_another_run(open_site):
    site = open_site()
    page = site.ask(NEIGHBOURS)
    with page.expect_response("**/api/ask") as response:
        page.get_by_label("Run", exact=True).select_option("second")
    assert response.value.json()["run"] == "second"
    assert "run=second" in page.url


def test_on_a_phone_the_reason_is_shown_rather_than_its_title_alone(open_site):
    site = open_site(PHONE)
    page = site.ask(PATH)
    site.answers.nth(1).click()
    page.get_by_role("list", name="Conditions").wait_for()
    top = page.locator(".why").bounding_box()["y"]
    assert 0 <= top <= PHONE[1] / 2
