"""SPARQL becomes the formula that means the same, and what has none is refused by name.

tests/graph/test_sparql.py compares the answers with those of another engine.
"""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.parser import parse, read_query
from lmpnn_kge.query.sparql.read import from_sparql, is_sparql, read_sparql

pytest.importorskip("rdflib", reason="the extra rdf is not installed")

MANY = " UNION ".join(f"{{ ?a <r> <b{number}> }}" for number in range(60))


@pytest.mark.parametrize(
    ("pattern", "formula"),
    [
        ("<Germany> <borders> ?a", "borders(Germany, ?)"),
        ("?a <r> <b> ; <s> <c>, <d> .", "r(?, b) & s(?, c) & s(?, d)"),
        ("?c <capital> ?a . ?c <continent> <Asia>", "capital(?c, ?) & continent(?c, Asia)"),
        ("{ <a> <r> ?a } UNION { <b> <r> ?a }", "r(a, ?) | r(b, ?)"),
        ("?a <r> <b> FILTER NOT EXISTS { ?a <s> ?x }", "r(?, b) & !s(?, ?x)"),
        (
            "?a <r> <b> FILTER NOT EXISTS { <c> <s> ?x . ?x <s> ?a }",
            "r(?, b) & !(s(c, ?x) & s(?x, ?))",
        ),
        ("?a <r> <b> MINUS { ?a <s> ?x }", "r(?, b) & !s(?, ?x)"),
        ("?a <r> <b> MINUS { ?x <s> ?y }", "r(?, b)"),
        ("?a <r> ?x FILTER(?x != <b> && ?a != ?x)", "r(?, ?x) & ?x != b & ? != ?x"),
        ("?a <r> ?x FILTER(?x = <b>)", "r(?, b)"),
        ("?a <r> ?x FILTER(?x IN (<b>, <c>))", "r(?, b) | r(?, c)"),
        ("?a <r> ?x FILTER(?x NOT IN (<b>, <c>))", "r(?, ?x) & ?x != b & ?x != c"),
        ("?a <r> ?x FILTER(?x NOT IN ())", "r(?, ?x)"),
        ("{ ?a <r> <b> } UNION { ?a <r> ?x FILTER(?x IN ()) }", "r(?, b)"),
        ("?a <r> ?x FILTER(!(?x = <b>))", "r(?, ?x) & ?x != b"),
        ("?a <r> ?x FILTER(sameTerm(?a, ?x))", "r(?, ?)"),
        ("?a <r> <b> FILTER EXISTS { ?a <s> ?x }", "r(?, b) & s(?, ?x)"),
        ("<b> <r>/^<s>/<t> ?a", "r(b, ?x) & s(?x2, ?x) & t(?x2, ?)"),
        ("<b> ^(<r>/<s>) ?a", "r(?, ?x) & s(?x, b)"),
        ("<b> <r>|<s> ?a", "r(b, ?) | s(b, ?)"),
        ("VALUES ?x { <b> <c> } ?x <r> ?a", "r(b, ?) | r(c, ?)"),
        (
            "VALUES (?a ?x) { (<b> <c>) (<d> UNDEF) } ?a <r> ?x",
            "? = b & r(?, c) | ? = d & r(?, ?x)",
        ),
        ("?a <r> [ <s> <b> ]", "r(?, ?x) & s(?x, b)"),
        ("?a <r> _:b . _:b <s> <c>", "r(?, ?x) & s(?x, c)"),
        ("{ ?a ?p ?o } UNION { ?s ?p ?a } FILTER NOT EXISTS { <b> <r> ?a }", "!r(b, ?)"),
        ("{ ?a ?p ?o } UNION { ?s ?q ?a }", "? = ?"),
        (
            "?a <r> <b> FILTER NOT EXISTS { ?a <s> ?y } FILTER NOT EXISTS { ?a <t> ?y }",
            "r(?, b) & !s(?, ?y) & !t(?, ?y2)",
        ),
        ("?a <r> <South%20Sudan>", 'r(?, "South Sudan")'),
        ("?a a <b>", '"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"(?, b)'),
    ],
)
def test_a_pattern_becomes_the_formula_with_the_same_meaning(pattern, formula):
    assert str(parse(f"SELECT ?a WHERE {{ {pattern} }}")) == formula


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("PREFIX : <> SELECT ?a { :Germany :borders ?a }", "borders(Germany, ?)"),
        ("PREFIX : <kge:> SELECT ?a { :x :r ?a }", "r(x, ?)"),
        ("BASE <kge:> SELECT ?a { </m/x> <r> ?a }", "r(/m/x, ?)"),
        ("BASE <http://e/a/> SELECT ?a { <x> <../r> ?a }", "http://e/r(http://e/a/x, ?)"),
        ("PREFIX e: <http://e/> SELECT ?a { e:x e:r\\/s ?a }", "http://e/r/s(http://e/x, ?)"),
        (
            "BASE <http://e/> PREFIX w: <w/> SELECT ?a { w:x w:r ?a }",
            "http://e/w/r(http://e/w/x, ?)",
        ),
        ("# a comment\nselect distinct $a { $a <r> <b> }", "r(?, b)"),
        ("SELECT * { ?who <r> <b> }", "r(?, b)"),
        ("SELECT ?b ?a { ?a <r> ?b }", "r(?2, ?1)"),
        ("SELECT * { ?a <r> ?b FILTER(?a != ?b) }", "r(?1, ?2) & ?1 != ?2"),
        ("SELECT ?a ?b { ?a <r> ?1 . ?1 <s> ?b }", "r(?1, ?x1) & s(?x1, ?2)"),
        ("SELECT ?a ?b { ?a <r> ?b FILTER(?a != ?a) }", "?1 != ?1 & ?1 = ?2"),
        ("SELECT REDUCED ?a { ?a <r> <b> } VALUES ?a { <c> }", "r(?, b) & ? = c"),
    ],
)
def test_names_are_resolved_by_base_and_prefix(text, formula):
    assert is_sparql(text)
    assert str(parse(text)) == formula


def test_limit_is_the_number_of_answers():
    assert read_query("SELECT ?a { ?a <r> <b> } LIMIT 5").limit == 5
    assert read_query("SELECT ?a { ?a <r> <b> }").limit is None
    assert read_query(f"SELECT ?a {{ ?a <r> <b> }} LIMIT {10**30}").limit == sys.maxsize


@pytest.mark.parametrize(
    ("selected", "answer", "columns"),
    [
        ("?who", "who", ["who"]),
        ("?who ?score", "who", ["who", "score"]),
        ("?known ?who ?score ?who", "who", ["known", "who", "score"]),
        ("*", "who", ["who"]),
    ],
)
def test_a_query_can_select_figures_that_no_pattern_binds(selected, answer, columns):
    text = f"SELECT {selected} {{ ?who <r> <b> }}"
    query = from_sparql(text, ["score", "known"])
    assert (str(query.formula), query.answer, list(query.columns)) == ("r(?, b)", answer, columns)
    if len(columns) > 1:  # a formula has no place for them
        with pytest.raises(QueryError, match="has no value in a part of the query"):
            parse(text)


def test_a_variable_of_a_pattern_is_not_a_figure():
    assert from_sparql("SELECT ?score { ?score <r> <b> }", ["score"]).answer == "score"
    query = from_sparql("SELECT ?who ?score { ?who <r> ?score }", ["score"])
    assert (str(query.formula), query.answers) == ("r(?1, ?2)", ("who", "score"))
    with pytest.raises(QueryError, match="selects 0 variables"):
        from_sparql("SELECT ?score { ?who <r> <b> }", ["score"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT ?a { ?a <r> ?b OPTIONAL { ?a <s> ?c } }", "OPTIONAL"),
        ("SELECT ?a { ?a <r> ?b BIND(?b AS ?c) }", "BIND"),
        ("SELECT ?a { GRAPH <g> { ?a <r> ?b } }", "GRAPH"),
        ("SELECT ?a { SERVICE <g> { ?a <r> ?b } }", "SERVICE"),
        ("SELECT ?a { { SELECT ?a { ?a <r> ?b } } }", "a SELECT inside the query"),
        ("SELECT ?a { ?a <r> ?b } GROUP BY ?a", "GROUP BY"),
        ("SELECT ?a { ?a <r> ?b } HAVING (?a = ?a)", "HAVING"),
        ("SELECT ?a FROM <g> { ?a <r> ?b }", "FROM"),
        ("SELECT (COUNT(?a) AS ?n) { ?a <r> ?b }", "the aggregate COUNT"),
        ("SELECT (?a + 1 AS ?n) { ?a <r> ?b }", "arithmetic"),
        ("SELECT ?a { ?a <r> ?b FILTER(?a + 1 = ?b) }", "arithmetic"),
        ("SELECT ?a { ?a <r> ?b FILTER(?a < ?b) }", "the comparison <"),
        ("SELECT ?a { ?a <r> ?b FILTER regex(?b, 'x') }", "the function REGEX"),
        ("SELECT ?a { ?a <r> ?b FILTER(<f>(?b)) }", "a function"),
        ("SELECT ?a { ?a <r>+ ?b }", "a path with +"),
        ("SELECT ?a { ?a (<r>/<s>)* ?b }", "a path with *"),
        ("SELECT ?a { ?a <r>? ?b }", "a path with ?"),
        ("SELECT ?a { ?a !<r> ?b }", "a path with !"),
        ("SELECT ?a { ?a ?p ?b }", "a variable in place of a relation (?p)"),
        ("SELECT ?a { { ?a ?p ?o } UNION { ?s ?p ?a } ?o <r> <b> }", "a variable in place"),
        ("SELECT ?o { { ?a ?p ?o } UNION { ?s ?p ?a } }", "a variable in place"),
        ("SELECT ?a { { ?a ?p ?o } UNION { ?s ?p ?a } } VALUES ?o { <b> }", "a variable in place"),
        ("SELECT ?a { ?a <r> ?b FILTER EXISTS { ?a <s> ?c MINUS { ?c <t> ?b } } }", "MINUS inside"),
        ("DESCRIBE <x>", "DESCRIBE"),
        ("CONSTRUCT { ?a <r> ?b } WHERE { ?a <r> ?b }", "CONSTRUCT"),
    ],
)
def test_what_a_formula_cannot_say_is_refused_by_name(text, named):
    assert is_sparql(text)
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert str(refused.value).startswith(f"SPARQL: {named}")
    assert "not supported; write SELECT ?x with" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT ?a { ?a <r> ?b } ORDER BY ?a", "ORDER BY"),
        ("SELECT ?a { ?a <r> ?b } LIMIT 3 OFFSET 3", "OFFSET"),
        ("ASK { ?a <r> ?b }", "ASK"),
    ],
)
def test_what_only_an_endpoint_can_answer_is_refused_as_a_formula(text, named):
    with pytest.raises(QueryError, match=f"SPARQL: {named} is not supported here, only by the end"):
        parse(text)
    read_sparql(text)


@pytest.mark.parametrize(
    ("pattern", "formula"),
    [
        ("?a <r> ?b", "r(?, ?b)"),
        ("<a> <r> <b>", "? = a & r(a, b)"),
        ("<a> <r> <b> . <b> <r> ?c", "r(a, b) & r(b, ?)"),
        ("{ <a> <r> <b> } UNION { ?x <s> <b> }", "? = a & r(a, b) | s(?, b)"),
        ("FILTER NOT EXISTS { <a> <r> ?x }", "? = a & !r(a, ?x)"),
        ("", "? = ?"),
        ("?a <r> <b> FILTER(?a != ?a)", "? != ?"),
    ],
)
def test_ask_becomes_a_formula_that_has_an_answer_if_it_is_true(pattern, formula):
    assert str(read_sparql(f"ASK {{ {pattern} }}").formula) == formula


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ?a { ?b <r> ?c }", r"\?a has no value in a part of the query"),
        ("SELECT ?a { { ?a <r> <b> } UNION { ?b <r> ?c } }", r"\?a has no value in a part"),
        ("SELECT ?a { ?a dbo:r ?b }", "the prefix dbo: is not declared"),
        ("SELECT ?a { ?a <r> 'x'@en }", "the literal 'x' cannot be asked for"),
        ("SELECT ?a { ?a <r> 5 }", "the literal '5' cannot be asked for"),
        ("SELECT ?a { ?a <r> ?b FILTER(?c = ?b) }", "a FILTER uses a variable that its own group"),
        ("SELECT ?a { ?a <r> _:b { _:b <s> <c> } }", "_:b is used in two groups"),
        ("SELECT ?a { ?a <r> ?b } LIMIT 0", "LIMIT is at least 1"),
        ("SELECT ?a { VALUES (?a ?b) { (<x>) } }", "VALUES has 2 variables, but 1 values"),
        ("SELECT ?a { ?a <r> <%ff> }", "not UTF-8"),
        ("SELECT ?a { ?a <r> <\\U99999999> }", "Invalid unicode"),
        ("BASE <http://x/> SELECT ?a { ?a <r> <//[> }", "is not an IRI"),
        (f"SELECT ?a {{ {MANY} FILTER NOT EXISTS {{ {MANY} }} }}", "groups multiply each other"),
        ("SELECT ?a {" + "{" * 200 + "?a <r> <b>" + "}" * 201, "nested too deeply"),
        ("SELECT ?a { ?a " + "/".join(["(<r>|<s>)"] * 9) + " <b> }", "more than 64 disjuncts"),
    ],
)
def test_a_wrong_query_is_refused_with_the_reason(text, message):
    with pytest.raises(QueryError, match=message):
        parse(text)


def test_a_syntax_error_shows_its_line_and_place():
    with pytest.raises(QueryError, match=r"line 2 .*'\?\?' on \(column 3\)") as refused:
        parse("SELECT ?a {\n  ?? <r> ?a\n}")
    assert refused.value.excerpt == "  ?? <r> ?a\n  ^"


@pytest.mark.parametrize(
    "formula",
    ["select(a, ?)", "SELECT(a, ?) & r(?, b)", "SELECT (a, ?)", "prefix(?, <a>)", "base(a, ?)",
     "ask(?, a)", "describe(?, x)", 'SELECT("{", ?)'],
)  # fmt: skip
def test_relations_with_the_names_of_keywords_are_formulas(formula):
    assert not is_sparql(formula)


@given(st.text("SELECT?a{}<r>FILTER()=!&|NOT EXISTS UNION MINUS VALUES./^:_\"'\n", max_size=60))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text):
    for query in (f"SELECT ?a {{ ?a <r> <b> {text} }}", f"SELECT ?a {text}"):
        try:
            parse(query)
        except QueryError:
            continue


def test_without_rdflib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['rdflib'] = None\n"
        "from lmpnn_kge import QueryError, parse\n"
        "try: parse('SELECT ?a { ?a <r> <b> }')\n"
        "except QueryError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "SPARQL needs rdflib: pip install 'lmpnn-kge[rdf]'\n"
