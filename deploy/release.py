#!/usr/bin/env python3
"""Writes SHA256SUMS and a CycloneDX list of components beside the built files of a release.

Usage: deploy/release.py target/release/tollgate [more files]
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksums(lock: str) -> dict[tuple[str, str], str]:
    """The checksum of each crate of the registry, by name and version."""
    found = {}
    for block in lock.split("[[package]]")[1:]:
        fields = dict(
            line.split(" = ", 1) for line in block.splitlines() if line.startswith(("name", "version", "checksum"))
        )
        fields = {name: value.strip('"') for name, value in fields.items()}
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def in_binary(metadata: dict) -> set[str]:
    """The ids of the packages that the binary is made of: without macros and dependencies for tests and build scripts."""
    macros = {
        package["id"]
        for package in metadata["packages"]
        if any("proc-macro" in target["kind"] for target in package["targets"])
    }
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    roots = [package["id"] for package in metadata["packages"] if package["name"] == "tollgate-cli"]
    reached, waiting = set(), roots
    while waiting:
        package = waiting.pop()
        if package in reached or package in macros:
            continue
        reached.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return reached


def platform() -> str:
    """The platform that cargo builds for."""
    if target := os.environ.get("CARGO_BUILD_TARGET"):
        return target
    told = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line.removeprefix("host: ") for line in told.splitlines() if line.startswith("host: "))


def components(root: pathlib.Path) -> list[dict]:
    # Without the filter, the list has the dependencies for all platforms.
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", platform()]
    metadata = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout)
    hashes = checksums((root / "Cargo.lock").read_text())
    wanted = in_binary(metadata)
    found = []
    for package in sorted(metadata["packages"], key=lambda one: (one["name"], one["version"])):
        if package["id"] not in wanted:
            continue
        name, version = package["name"], package["version"]
        component = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if (name, version) in hashes:
            component["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
        found.append(component)
    return found


def main() -> None:
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    missing = [str(file) for file in files if not file.is_file()]
    if not files or missing:
        sys.exit(f"{__doc__.strip()}\n\nmissing: {', '.join(missing) or 'the built files'}")
    folder, root = files[0].parent, pathlib.Path(__file__).resolve().parent.parent
    sums = "".join(f"{sha256(file)}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text(sums)
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components(root)}
    (folder / "tollgate.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")
    print(f"{folder / 'SHA256SUMS'}: {len(files)} files")
    print(f"{folder / 'tollgate.cdx.json'}: {len(bill['components'])} components")


if __name__ == "__main__":
    main()
