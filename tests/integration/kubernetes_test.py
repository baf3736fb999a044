#!/usr/bin/env python3
"""Checks that the manifests of docs/kubernetes.md have existing fields of the right types: those of the packages kserve and kubernetes.

usage: kubernetes_test.py SOURCE_DIR VENV     (VENV: made at the first run, 100 MB; `./x hosts` calls this)
"""
import importlib
import os
import re
import sys
import types
import unittest
from pathlib import Path

if __name__ == "__main__" and "--inside" not in sys.argv:
    from environment import virtual_environment
    packages = ["kubernetes==32.0.1", "pyyaml"]
    python, found = virtual_environment(Path(sys.argv[2]), [packages, ["--no-deps", "kserve==0.21.0"]])  # only its types are read
    if len(found) != 2:
        sys.exit(77)
    os.execv(python, [str(python), __file__, "--inside", sys.argv[1]])

SOURCE = Path(sys.argv.pop())
sys.argv.remove("--inside")

import yaml  # noqa: E402

# Without the imports of its servers.
kserve = types.ModuleType("kserve")
kserve.__path__ = [str(next(Path(path) / "kserve" for path in sys.path if (Path(path) / "kserve/models").is_dir()))]
sys.modules["kserve"] = kserve

PLAIN = {"str": str, "bool": bool, "int": int, "float": (int, float), "object": object, "datetime": str}


def type_named(name):
    """Returns a class of either package."""
    for package in ("kserve.models", "kubernetes.client"):
        if known := getattr(importlib.import_module(package), name, None):
            return known
    raise LookupError(f"neither package has {name}")


def problems(value, kind, place):
    """Lists what is wrong with VALUE as a KIND: "str", "list[V1Container]", "dict(str, str)", "V1Container"."""
    if inner := re.fullmatch(r"(?:list|List)\[(.+)\]", kind):
        if not isinstance(value, list):
            return [f"{place} is no list"]
        return [one for i, item in enumerate(value) for one in problems(item, inner[1], f"{place}[{i}]")]
    if inner := re.fullmatch(r"[dD]ict[(\[]str, (.+)[)\]]", kind):
        if not isinstance(value, dict):
            return [f"{place} is no map"]
        return [one for key, item in value.items() for one in problems(item, inner[1], f"{place}.{key}")]
    if kind in PLAIN:
        return [] if isinstance(value, PLAIN[kind]) else [f"{place} is {value!r}, not {kind}"]
    known = type_named(kind.split(".")[-1])
    if not hasattr(known, "attribute_map"):
        return []
    if not isinstance(value, dict):
        return [f"{place} is no {kind}"]
    fields = {said: known.openapi_types[name] for name, said in known.attribute_map.items()}
    out = [f"{place}.{key}: {kind} has no such field" for key in value if key not in fields]
    for key in value.keys() & fields.keys():
        out += problems(value[key], fields[key], f"{place}.{key}")
    return out


KINDS = {"DaemonSet": "V1DaemonSet", "ServingRuntime": "V1alpha1ServingRuntime", "InferenceService": "V1beta1InferenceService"}


class Manifests(unittest.TestCase):
    def test_fields_and_types(self):
        page = (SOURCE / "docs/kubernetes.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
        manifests = [one for block in blocks for one in yaml.safe_load_all(block)]
        self.assertEqual([one["kind"] for one in manifests], list(KINDS))
        for one in manifests:
            self.assertEqual(problems(one, KINDS[one["kind"]], one["kind"]), [])

    def test_what_is_wrong_is_found(self):
        spec = {"predictor": {"model": {"modelFormat": {"name": 3}, "storageURI": "x"}, "securityContext": {"supplementalGroups": ["render"]}}}
        found = problems({"spec": spec}, "V1beta1InferenceService", "it")
        self.assertEqual(len(found), 3, found)


if __name__ == "__main__":
    unittest.main()
