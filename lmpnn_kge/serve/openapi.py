"""The HTTP interface described: as OpenAPI for programs, and as a page for people."""

from __future__ import annotations

from html import escape
from typing import Any

from lmpnn_kge import __version__
from lmpnn_kge.serve import responses
from lmpnn_kge.serve.endpoints import ENDPOINTS, Endpoint
from lmpnn_kge.serve.schema import json_schema, parameters_schema

#: What the server answers if a request cannot be answered, by status.
STATUSES = {
    400: "The question or a parameter is wrong.",
    401: "The token is missing or wrong.",
    403: "A page of another site asks.",
    404: "There is no such path or run.",
    405: "The path does not take this method.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    415: "The type of the body is not one that is read.",
    421: "The header Host does not name this server.",
    503: "The server has enough to do; try again after the seconds in Retry-After.",
    504: "The answer takes longer than the limit.",
}


def openapi() -> dict[str, Any]:
    """The description of the interface by OpenAPI 3.1."""
    named: dict[str, Any] = {}
    paths = {endpoint.path: _operations(endpoint, named) for endpoint in ENDPOINTS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lmpnn-kge",
            "version": __version__,
            "description": "Logical questions over a knowledge graph embedding.",
        },
        "paths": paths,
        "components": {"schemas": named},
    }


def _operations(endpoint: Endpoint, named: dict[str, Any]) -> dict[str, Any]:
    schema = parameters_schema(endpoint.parameters, named)
    name = endpoint.path.rpartition("/")[2]
    answers = {
        "200": _content("The response.", json_schema(endpoint.response, named)),
        **{
            str(status): _content(about, json_schema(responses.Failure, named))
            for status, about in STATUSES.items()
        },
    }
    parameters = [
        {
            "name": key,
            "in": "query",
            "required": key in schema["required"],
            "description": value["description"],
            "schema": value,
        }
        for key, value in schema["properties"].items()
    ]
    about = {"summary": endpoint.about, "responses": answers}
    operations = {"get": {"operationId": f"get_{name}", **about, "parameters": parameters}}
    if parameters:
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        operations["post"] = {"operationId": f"post_{name}", **about, "requestBody": body}
    return operations


def _content(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def api_page() -> str:
    """A page that lists the endpoints with their parameters."""
    sections = "\n".join(map(_section, ENDPOINTS))
    statuses = "\n".join(f"<tr><td>{s}</td><td>{escape(t)}</td></tr>" for s, t in STATUSES.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>HTTP interface of lmpnn-kge</title>
<link rel="stylesheet" href="/static/style.css">
</head>
<body>
<main class="plain">
<h1>HTTP interface</h1>
<p>Every path takes GET with its parameters in the URL, and POST with a JSON object. The same
description for programs is <a href="/api/openapi.json">openapi.json</a>. SPARQL clients use
<code>/sparql</code>.</p>
{sections}
<h2>Errors</h2>
<p>An error is <code>{{"error": {{"message", "excerpt", "column"}}}}</code>.</p>
<table><tbody>
{statuses}
</tbody></table>
</main>
</body>
</html>
"""


def _section(endpoint: Endpoint) -> str:
    schema = parameters_schema(endpoint.parameters, {})
    rows = "\n".join(
        f"<tr><td><code>{escape(name)}</code></td>"
        f"<td>{escape(value['description'])}"
        f"{_default(value)}</td></tr>"
        for name, value in schema["properties"].items()
    )
    table = f"<table><tbody>\n{rows}\n</tbody></table>" if rows else ""
    return f"<h2><code>{endpoint.path}</code></h2>\n<p>{escape(endpoint.about)}</p>\n{table}"


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema:
        return ""
    return f" Default: <code>{escape(str(schema['default']))}</code>."
