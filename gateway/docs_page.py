"""The page at /docs: the OpenAPI document as plain HTML, which loads nothing and runs nothing."""

import json
from collections.abc import Iterable
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
_STYLE = """
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}
body{max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:13px/1.5 ui-monospace,monospace}pre{overflow-x:auto}
details{border-top:1px solid #8886;padding:.5rem 0}summary{cursor:pointer}
table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;vertical-align:top}
.m{display:inline-block;min-width:4.5em;font-weight:600}
"""


def page(document: dict[str, Any]) -> str:
    """Give the page."""
    title = escape(document["info"]["title"])
    routes = "\n".join(_routes(document["paths"]))
    schemas = "\n".join(_schema(*entry) for entry in document["components"]["schemas"].items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(document['info']['description'])} "
        'The same for programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"<h2>Routes</h2>\n{routes}\n<h2>Schemas</h2>\n{schemas}\n</body></html>\n"
    )


def _routes(paths: dict[str, Any]) -> Iterable[str]:
    for path, operations in paths.items():
        for method, operation in operations.items():
            rows = "".join(_row(p["name"], p["schema"], p["in"]) for p in _given(operation))
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            taken = f"<p>Body: {_type(body['schema'])}</p>" if body else ""
            answers = "".join(
                f"<p>{escape(status)}: {escape(answer['description'])} {_answer_type(answer)}</p>"
                for status, answer in operation["responses"].items()
            )
            yield (
                f'<details><summary><code><span class="m">{method.upper()}</span>{escape(path)}'
                f"</code> {escape(operation['summary'])}</summary>"
                f"<p>{escape(operation.get('description', ''))}</p>"
                f"<table>{rows}</table>{taken}{answers}</details>"
            )


def _given(operation: dict[str, Any]) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = operation.get("parameters", [])
    return parameters


def _answer_type(answer: dict[str, Any]) -> str:
    contents = answer.get("content", {}).values()
    return " ".join(_type(content.get("x-event-data", content["schema"])) for content in contents)


def _schema(name: str, schema: dict[str, Any]) -> str:
    if schema.get("additionalProperties") is False:
        rows = "".join(_row(field, of) for field, of in schema["properties"].items())
        inside = f"<p>{escape(schema.get('description', ''))}</p><table>{rows}</table>"
    else:
        inside = f"<pre>{escape(json.dumps(schema, indent=1))}</pre>"
    return (
        f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"{inside}</details>"
    )


def _row(name: str, schema: dict[str, Any], place: str = "") -> str:
    return f"<tr><td><code>{escape(name)}</code><td>{_type(schema)}<td>{escape(place)}</tr>"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties'])}"
    kinds = schema.get("type", "object")
    named = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return escape(f"{named} ({schema['format']})" if "format" in schema else named)
