"""The chart as it is published: in an OCI registry."""

import pathlib
import tempfile
import unittest

from registry import IS_HERE, pushed
from rendering import CHART, MESH, helm, text


@unittest.skipUnless(IS_HERE, "docker-registry is not here; run.sh says so")
class Registry(unittest.TestCase):
    def test_what_is_pushed_is_pulled_and_rendered(self):
        settings = (*MESH, "secrets.existingSecret=mine")
        words = [word for setting in settings for word in ("--set", setting)]
        with pushed() as (reference, archive), tempfile.TemporaryDirectory() as folder:
            status, _, error = helm("pull", reference, "--plain-http", "--destination", folder)
            self.assertEqual(status, 0, error)
            self.assertEqual((pathlib.Path(folder) / archive.name).read_bytes(), archive.read_bytes())
            status, rendered, error = helm(
                "template", "release", reference, "--plain-http", "--namespace", "here", *words
            )
            self.assertEqual(status, 0, error)
        self.assertEqual(rendered, text(*settings), f"as from {CHART.name}")


if __name__ == "__main__":
    unittest.main()
