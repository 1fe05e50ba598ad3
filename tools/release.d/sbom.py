"""Writes the bill of materials of the program, CycloneDX 1.5 in JSON, from `cargo metadata` and Cargo.lock.

It lists the packages that are compiled into the program or run while it is built; not those that only tests need. The same
sources and SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import datetime
import json
import os
import re
import uuid

PROGRAM = "tabellion"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True)
    parser.add_argument("--lock", required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    with open(options.metadata, encoding="utf-8") as file:
        metadata = json.load(file)
    with open(options.lock, encoding="utf-8") as file:
        checksums = checksums_of(file.read())
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(bill(metadata, checksums), file, indent=1, sort_keys=True)
        file.write("\n")


def bill(metadata, checksums):
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(id for id, package in packages.items() if package["name"] == PROGRAM)
    edges = linked(metadata["resolve"]["nodes"], root)
    parts = [component(packages[id], checksums) for id in edges if id != root]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(),
            "component": component(packages[root], checksums) | {"type": "application"},
        },
        "components": sorted(parts, key=lambda part: part["bom-ref"]),
        "dependencies": sorted(
            (
                {"ref": purl(packages[id]), "dependsOn": sorted({purl(packages[to]) for to in targets})}
                for id, targets in edges.items()
            ),
            key=lambda edge: edge["ref"],
        ),
    }
    name = json.dumps(content, sort_keys=True)
    return content | {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, name)}"}


def linked(nodes, root):
    """Returns the packages that the root needs, with what each of them needs; without dev-dependencies."""
    nodes = {node["id"]: node for node in nodes}
    edges, waiting = {}, [root]
    while waiting:
        id = waiting.pop()
        if id in edges:
            continue
        edges[id] = [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        ]
        waiting += edges[id]
    return edges


def component(package, checksums):
    part = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package.get("license"):
        part["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        part["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return part


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def checksums_of(lock):
    """Returns the SHA-256 of each downloaded package, by name and version."""
    pattern = r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "(.*)"'
    return {(name, version): checksum for name, version, checksum in re.findall(pattern, lock)}


def timestamp():
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    main()
