#!/usr/bin/env python3
"""Calls Cairn over gRPC without generated code: the contracts are read from the folder `proto` of this repository.

    pip install grpcio grpcio-tools
    CAIRN_TOKEN=cairn_… python3 direct_grpc.py 127.0.0.1:8710 "How do I add my first file?"

Inside of a mesh, where each service has an address of its own:

    python3 direct_grpc.py --content 127.0.0.1:8712 --retrieval 127.0.0.1:8714 127.0.0.1:8711 "rollback"

With TLS: --ca ca.pem, and --cert and --key where the server demands a certificate.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

import grpc
import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc

DEADLINE_SECONDS = 15
# An identity lives for five minutes; it is exchanged anew when less than this is left.
RENEWAL_SECONDS = 60


PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def contracts():
    """All contracts, compiled."""
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        compiled = pathlib.Path(folder) / "contracts"
        files = [str(file) for file in sorted(PROTO.rglob("*.proto"))]
        options = [f"-I{PROTO}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={compiled}"]
        if protoc.main(["protoc", *options, *files]) != 0:
            sys.exit("the contracts cannot be compiled")
        described = FileDescriptorSet.FromString(compiled.read_bytes())
    pool = DescriptorPool()
    for file in described.file:
        pool.Add(file)
    return pool


class Services:
    """The services at one address, called by name."""

    def __init__(self, channel, pool):
        self._channel = channel
        self._pool = pool

    def call(self, service, method, request, metadata=()):
        """Calls a unary method with a dict, and answers a dict."""
        found = self._pool.FindServiceByName(service).FindMethodByName(method)
        invoke = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(found.output_type).FromString,
        )
        message = ParseDict(request, GetMessageClass(found.input_type)())
        return MessageToDict(invoke(message, metadata=metadata, timeout=DEADLINE_SECONDS))


class Caller:
    """Whom the calls are made for: an API token, exchanged for a signed identity whenever that is needed."""

    def __init__(self, auth, token):
        self._auth = auth
        self._token = token
        self._identity = None
        self._ends_at = 0.0

    def metadata(self):
        if self._ends_at - time.time() < RENEWAL_SECONDS:
            answer = self._auth.call("cairn.auth.v1.TokenService", "Exchange", {"apiToken": self._token})
            self._identity = answer["identity"]
            self._ends_at = time.time() + 5 * 60
        return (("authorization", f"Bearer {self._identity}"),)


def channel(address, options):
    if not options.ca:
        return grpc.insecure_channel(address)

    def read(path):
        return open(path, "rb").read() if path else None

    trust = grpc.ssl_channel_credentials(read(options.ca), read(options.key), read(options.cert))
    return grpc.secure_channel(address, trust)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("auth", help="the address of --grpc-listen; inside of a mesh, where svc-auth is")
    parser.add_argument("query")
    parser.add_argument("--content", help="where svc-content is, when it is elsewhere")
    parser.add_argument("--retrieval", help="where svc-retrieval is, when it is elsewhere")
    parser.add_argument("--ca")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    options = parser.parse_args()

    pool = contracts()
    auth = Services(channel(options.auth, options), pool)
    content = Services(channel(options.content or options.auth, options), pool)
    retrieval = Services(channel(options.retrieval or options.auth, options), pool)
    caller = Caller(auth, os.environ["CAIRN_TOKEN"])

    listed = content.call("cairn.content.v1.FileService", "ListFiles", {}, caller.metadata())
    for file in listed.get("files", []):
        print(f"file  {file['id']}  {file['path']}")

    request = {"query": options.query, "limit": 3}
    answer = retrieval.call("cairn.retrieval.v1.SearchService", "SearchContext", request, caller.metadata())
    for result in answer.get("results", []):
        print(f"hit   {result['score']:.3f}  {result['citation']['label']}")

    # Nobody answers a call without an identity.
    try:
        content.call("cairn.content.v1.FileService", "ListFiles", {})
        sys.exit("a call without an identity went through")
    except grpc.RpcError as refusal:
        print(f"without an identity: {refusal.code().name}")


if __name__ == "__main__":
    main()
