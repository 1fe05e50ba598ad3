"""Validates dashboards with the types of Grafana's schemas (grafana-foundation-sdk). Decoding there is lenient, so what it drops
and what has another type is looked for here.

Arguments: files with dashboards. Prints what is wrong as a JSON list of lines.
"""

import enum
import json
import sys
import typing

from grafana_foundation_sdk.cog import plugins, runtime
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard, RowPanel


def main():
    plugins.register_default_plugins()
    json.dump([f"{file}: {fault}" for file in sys.argv[1:] for fault in faults_of(file)], sys.stdout)


def faults_of(file):
    with open(file, encoding="utf-8") as text:
        written = json.load(text)
    try:
        board = Dashboard.from_json(written)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return [f"cannot be decoded: {error!r}"]
    decoded = json.loads(JSONEncoder().encode(board))
    return [*unknown(board), *dropped(written, decoded, ""), *mistyped(board, Dashboard, "")]


def unknown(board):
    """Yields the panels that are none of Grafana's, and queries to data sources that are none of Grafana's."""
    for panel in board.panels or []:
        if not isinstance(panel, RowPanel) and runtime.panelcfg_config(panel.type_val) is None:
            yield f"panel {panel.title!r}: no panel has the type {panel.type_val!r}"
        queries = getattr(panel, "targets", None) or []
        if any(isinstance(query, runtime.UnknownDataquery) for query in queries):
            yield f"panel {panel.title!r}: no data source has the type of its query"


def dropped(written, decoded, place):
    """Yields the members that the types of the schema do not have."""
    if isinstance(written, dict) and isinstance(decoded, dict):
        for name, value in written.items():
            if name in decoded:
                yield from dropped(value, decoded[name], f"{place}/{name}")
            else:
                yield f"{place}/{name}: no such member"
    elif isinstance(written, list) and isinstance(decoded, list) and len(written) == len(decoded):
        for number, (value, other) in enumerate(zip(written, decoded)):
            yield from dropped(value, other, f"{place}/{number}")
    elif written != decoded:
        yield f"{place}: {written!r} is read as {decoded!r}"


def mistyped(value, expected, place):
    """Yields the values that are none of the type that the schema gives them."""
    if not is_a(value, expected):
        yield f"{place}: {value!r} is no {expected}"
    elif isinstance(value, list):
        of = [kind for kind in kinds(expected) if typing.get_origin(kind) is list]
        for number, item in enumerate(value):
            yield from mistyped(item, typing.get_args(of[0])[0] if of else object, f"{place}/{number}")
    elif is_model(type(value)):
        for name, hint in typing.get_type_hints(type(value)).items():
            yield from mistyped(getattr(value, name), hint, f"{place}/{name}")


def is_a(value, expected):
    return any(is_of_kind(value, kind) for kind in kinds(expected))


def kinds(expected):
    """The types of which a union allows any."""
    if typing.get_origin(expected) is typing.Union:
        return [kind for part in typing.get_args(expected) for kind in kinds(part)]
    return [expected]


def is_of_kind(value, kind):
    plain = typing.get_origin(kind) or kind
    if plain is typing.Literal:
        return value in typing.get_args(kind)
    if not isinstance(plain, type):
        return True
    if issubclass(plain, enum.Enum):
        return value in [member.value for member in plain]
    if plain is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if plain is int:
        return isinstance(value, int) and not isinstance(value, bool)
    # The types of panels and queries are those of their plugins, of which the schema says only that they are any.
    return isinstance(value, plain) or is_interface(plain)


def is_interface(kind):
    return is_model(kind) and not hasattr(kind, "from_json")


def is_model(kind):
    return kind.__module__.startswith("grafana_foundation_sdk.")


if __name__ == "__main__":
    main()
