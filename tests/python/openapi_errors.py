"""Validates OpenAPI descriptions with openapi-spec-validator.

    openapi_errors.py FILE...

Prints JSON: for each file a list with the validator's errors."""

import json
import pathlib
import sys

from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing.exceptions import Unresolvable


def errors_of(file):
    description = json.loads(pathlib.Path(file).read_text())
    try:
        return [str(error)[:300] for error in OpenAPIV31SpecValidator(description).iter_errors()]
    except Unresolvable as error:
        return [f"reference to nothing: {error.ref}"]


print(json.dumps([errors_of(file) for file in sys.argv[1:]]))
