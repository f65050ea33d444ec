"""What looks at lists of crates tells wrong ones from right ones, and the tools that make them are pinned, alike everywhere."""

import json
import re
import struct
import unittest
import zlib

import sbom

WORKFLOW = sbom.ROOT / ".github/workflows/release.yml"
DOCKERFILE = sbom.ROOT / "deploy/docker/Dockerfile"


def elf(packed, name=sbom.SECTION):
    """A file of two sections: their names, and one with these bytes."""
    names = b"\0.shstrtab\0" + name + b"\0"
    sections, offset = [(0, 0, 0, 0, 0, 0)], 64
    sections.append((1, 3, 0, 0, offset, len(names)))
    sections.append((11, 1, 0, 0, offset + len(names), len(packed)))
    start = offset + len(names) + len(packed)
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 0x28, start)
    struct.pack_into("<HHH", header, 0x3A, 64, len(sections), 1)
    table = b"".join(struct.pack("<IIQQQQ", *one).ljust(64, b"\0") for one in sections)
    return bytes(header) + names + packed + table


def listed(packages):
    return elf(zlib.compress(json.dumps({"packages": packages}).encode()))


def bill(components, version=None):
    about = {"name": sbom.NAME, "version": version or sbom.version()}
    return {"bomFormat": "CycloneDX", "metadata": {"component": about}, "components": components}


class Sbom(unittest.TestCase):
    def setUp(self):
        self.root = {"name": sbom.NAME, "version": sbom.version(), "root": True}
        name, version = next(crate for crate in sorted(sbom.locked()) if crate[0] == "tokio")
        self.tokio = {"name": name, "version": version}

    def test_a_list_in_a_binary_is_read(self):
        build = {"name": "only-while-building", "version": "1.0.0", "kind": "build"}
        crates = sbom.crates_of_binary(listed([self.root, self.tokio, build]))
        self.assertEqual(crates, {(sbom.NAME, sbom.version()), ("tokio", self.tokio["version"])})
        sbom.check(crates, "it")
        self.assertIsNone(sbom.crates_of_binary(elf(b"", b".text")))
        for other in ([self.tokio], [{**self.root, "version": "0.0.0"}, self.tokio]):
            with self.assertRaises(sbom.Wrong):
                sbom.crates_of_binary(listed(other))
        with self.assertRaises(sbom.Wrong):
            sbom.crates_of_binary(b"#!/bin/sh\n")

    def test_a_bill_is_of_this_version_and_of_what_is_locked(self):
        crates = sbom.crates_of_bill(bill([self.tokio]))
        sbom.check(crates, "it")
        for wrong in ({**bill([self.tokio]), "bomFormat": "SPDX"}, bill([self.tokio], "0.0.0"), {}):
            with self.assertRaises(sbom.Wrong):
                sbom.crates_of_bill(wrong)
        for wrong in (bill([]), bill([{"name": "tokio", "version": "0.0.0"}])):
            with self.assertRaises(sbom.Wrong):
                sbom.check(sbom.crates_of_bill(wrong), "it")

    def test_the_tools_are_pinned_alike(self):
        workflow, dockerfile = WORKFLOW.read_text(), DOCKERFILE.read_text()
        for line in re.findall(r".*cargo install.*", workflow + dockerfile):
            self.assertIn("--locked", line)
            for tool in re.findall(r"cargo-[a-z]+\S*", line):
                self.assertRegex(tool, r"@\d+\.\d+\.\d+$", line)
        pinned = [re.findall(r"cargo-auditable@\S+", text) for text in (workflow, dockerfile)]
        self.assertEqual(pinned[0], pinned[1])
        self.assertRegex(workflow, r"cargo-cyclonedx@\d")
        self.assertRegex(workflow, r"sbom\.py .*--required", "a release is not made without its lists")


if __name__ == "__main__":
    unittest.main()
