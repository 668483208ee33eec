"""Building a question in its graph: the same as typing it, also by keyboard alone."""

import pytest


@pytest.fixture
def builder(site):
    return Builder(site)


class Builder:
    """What a person does in the query graph."""

    def __init__(self, site):
        self.site, self.page = site, site.page

    def select(self, name):
        """Click a node or an edge by how a screen reader names it."""
        self.is_drawn()
        self.page.get_by_role("button", name=name, exact=True).locator("text").first.click()
        return self.page.locator(".actions")

    def pick(self, label, name):
        field = self.page.get_by_role("combobox", name=label, exact=True)
        field.fill(name)
        self.page.get_by_role("option", name=name).first.click()

    def add(self, relation, entity=None, other="entity", direction="head", negated=False):
        """Fill in the form that adds a condition."""
        panel = self.page.locator(".actions")
        panel.get_by_label("Direction").select_option(direction)
        self.pick("Relation", relation)
        panel.get_by_label("Other end").first.select_option(other)
        if entity:
            self.pick("Entity", entity)
        panel.get_by_label("not").set_checked(negated)
        panel.get_by_role("button", name="Add", exact=True).first.click()

    def becomes(self, question):
        """Wait until the box has a question, and its graph is drawn."""
        self.page.wait_for_function(
            "text => document.getElementById('question').value === text", arg=question
        )
        self.is_drawn()

    def is_drawn(self):
        self.page.locator(".parts[aria-busy=false]").wait_for()

    def opens(self, summary):
        self.page.locator(".actions summary", has_text=summary).click()


def test_the_question_that_was_typed_is_built_by_clicking(builder):
    builder.site.open()
    builder.select("the answer ?")
    builder.add("student of", "Nils Oakham", direction="tail")
    builder.becomes('student_of("Nils Oakham", ?)')
    builder.select("the answer ?")
    builder.add("friend of", "Hugo Brandt", negated=True, direction="tail")
    question = 'student_of("Nils Oakham", ?) & !friend_of("Hugo Brandt", ?)'
    builder.becomes(question)
    builder.page.get_by_role("button", name="Ask", exact=True).click()
    builder.site.answers.first.wait_for()
    built = builder.site.names()
    builder.site.ask(question)
    assert builder.site.names() == built


def test_nodes_and_edges_are_changed(builder):
    site = builder.site
    site.open()
    site.box.fill('friend_of("Nils Oakham", ?)')
    builder.select("entity Nils Oakham").get_by_role("button", name="Turn into a variable").click()
    builder.becomes("friend_of(?x, ?)")
    builder.select("variable ?x")
    builder.add("lives in", other="new")
    builder.becomes("friend_of(?x, ?) & lives_in(?x, ?y)")
    builder.select("variable ?y")
    builder.opens("Make it different from")
    builder.pick("Entity", "Juniper Hill")
    builder.page.locator(".actions details[open] button.primary").click()
    builder.becomes('friend_of(?x, ?) & lives_in(?x, ?y) & ?y != "Juniper Hill"')
    edge = "?y differs from Juniper Hill"
    builder.select(edge).get_by_role("button", name="Remove").click()
    builder.becomes("friend_of(?x, ?) & lives_in(?x, ?y)")
    builder.select("variable ?y")
    builder.opens("Replace")
    builder.pick("Entity", "Dunmere")
    builder.page.locator(".actions details[open] button.primary").click()
    builder.becomes("friend_of(?x, ?) & lives_in(?x, Dunmere)")
    builder.select("lives_in from ?x to Dunmere").get_by_role("button", name="Negate").click()
    builder.becomes("friend_of(?x, ?) & !lives_in(?x, Dunmere)")
    builder.select("variable ?x").get_by_role("button", name="Ask for this instead").click()
    builder.becomes("friend_of(?, ?y) & !lives_in(?, Dunmere)")


def test_a_group_is_denied_and_allowed(builder):
    site = builder.site
    site.open()
    site.box.fill('friend_of(?, ?x) & lives_in(?x, Dunmere) & mentor_of(?, "Jonas Petri")')
    panel = builder.select("lives_in from ?x to Dunmere")
    builder.opens("Deny as a group")
    panel.get_by_label("friend_of from ? to ?x").check()
    panel.get_by_role("button", name="Deny the group").click()
    denied = 'mentor_of(?, "Jonas Petri") & !(friend_of(?, ?x) & lives_in(?x, Dunmere))'
    builder.becomes(denied)
    assert builder.page.get_by_text("no such path").first.is_visible()
    edge = "friend_of from ? to ?x, in a denied group"
    builder.select(edge).get_by_role("button", name="Allow the group again").click()
    builder.becomes('mentor_of(?, "Jonas Petri") & friend_of(?, ?x) & lives_in(?x, Dunmere)')


def test_parts_are_added_and_removed(builder):
    site = builder.site
    site.open()
    site.box.fill("friend_of(?, Dunmere)")
    builder.page.get_by_role("button", name="Add an OR part").click()
    builder.add("lives in", "Dunmere")
    builder.becomes("friend_of(?, Dunmere) | lives_in(?, Dunmere)")
    builder.page.get_by_role("button", name="Remove part 1").click()
    builder.becomes("lives_in(?, Dunmere)")
    builder.select("lives_in from ? to Dunmere")
    builder.page.get_by_role("button", name="Remove", exact=True).click()
    builder.becomes("")


def test_what_cannot_be_done_is_said_in_the_words_of_the_server(open_site):
    builder = Builder(open_site())
    builder.site.open()
    problem = {"message": "this cannot be done", "excerpt": None, "column": None}
    refusal = {"status": 400, "json": {"error": problem}}
    builder.page.route("**/api/edit", lambda route: route.fulfill(**refusal))
    builder.select("the answer ?")
    builder.add("friend of", "Hugo Brandt")
    message = builder.page.locator(".actions .error")
    message.wait_for()
    assert message.inner_text() == "this cannot be done"
    assert builder.site.box.input_value() == ""
    builder.site.problems.clear()  # the browser reports the refused request


def test_the_keyboard_alone_builds_asks_and_explains(open_site):
    site = open_site()
    page = site.open()
    page.get_by_role("button", name="the answer ?").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "the answer ?"
    page.keyboard.press("Space")
    page.keyboard.press("Tab")  # from the direction
    page.keyboard.type("friend")
    page.get_by_role("option", name="friend of").wait_for()
    page.keyboard.press("Tab")  # takes the suggestion
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("Hugo")
    page.get_by_role("option", name="Hugo Brandt").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # takes it
    page.keyboard.press("Enter")  # sends the form
    Builder(site).becomes('friend_of(?, "Hugo Brandt")')
    site.box.focus()
    page.keyboard.press("Enter")
    site.answers.first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("list", name="Conditions").wait_for()
    assert page.evaluate("document.activeElement.id") == "why-title"
