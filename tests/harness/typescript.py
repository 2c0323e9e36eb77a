"""TypeScript for tests: the compiler, which npm fetches once into `build`, and types written from JSON Schema.

The compiler is no part of the client and nothing that it needs: whoever uses the client runs no build step.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from harness.chromium import missing

_COMPILER = "typescript@5.9.3"
_BUILD = Path(__file__).parents[2] / "build"
_PATIENCE = 180.0

Schema = dict[str, Any]


def compiler() -> Path:
    """The compiler's script; a test is skipped where it cannot be had, but not where CI=true."""
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            missing(f"no {name} for TypeScript's compiler")
    folder = _BUILD / _COMPILER.replace("@", "-")
    script = folder / "node_modules" / "typescript" / "bin" / "tsc"
    if not script.exists():
        _BUILD.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_BUILD) as made:
            words = ["npm", "install", "--prefix", made, "--no-audit", "--no-fund", "--ignore-scripts", _COMPILER]
            done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, check=False)
            if done.returncode:
                missing(f"npm does not fetch {_COMPILER} ({done.stderr.strip()[-200:]})")
            # Another process may have been quicker.
            if not folder.exists():
                shutil.copytree(made, folder, dirs_exist_ok=True, symlinks=True)
    return script


def compiled(folder: Path, *files: str) -> str:
    """What the compiler finds wrong with these files, strictly; empty where nothing is."""
    options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--lib", "es2022,dom"]
    words = ["node", str(compiler()), *options, "--module", "nodenext", *files]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    return done.stdout + done.stderr


def declared(document: dict[str, Any]) -> str:
    """Every object of an OpenAPI document as a type of its name."""
    schemas = document["components"]["schemas"]
    return "\n".join(f"export type {name} = {_type(schema)};" for name, schema in schemas.items()) + "\n"


_PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def _type(schema: Schema) -> str:
    """A schema as a type; what it says beyond that, such as a pattern, no type can."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "oneOf" in schema:
        return " | ".join(f"({_type(each)})" for each in schema["oneOf"])
    kinds = schema.get("type", [])
    if not kinds:
        return "unknown"
    return " | ".join(_of_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _of_kind(kind: str, schema: Schema) -> str:
    if kind == "array":
        return f"({_type(schema['items'])})[]"
    if kind != "object":
        return _PLAIN[kind]
    required, every = schema.get("required", []), schema.get("properties", {})
    fields = [f"{json.dumps(name)}{'' if name in required else '?'}: {_type(of)}" for name, of in every.items()]
    others = schema.get("additionalProperties", True)
    if others is not False:
        fields.append(f"[other: string]: {'unknown' if others is True else _type(others)}")
    return f"{{ {'; '.join(fields)} }}"
