"""The official Python client connects in both eras, lists and calls: mcp_flow.py BOOTSTRAP."""

import asyncio
import importlib.metadata
import json
import sys

try:
    import mcp
    from mcp import ClientSession
except ImportError as missing:
    print(f"skipped: {missing} (pip install mcp)")
    sys.exit(0)

VERSION = importlib.metadata.version("mcp")


def transport(url, token):
    """The two major versions name it differently and take headers differently."""
    from mcp.client import streamable_http

    headers = {"Authorization": f"Bearer {token}"}
    if hasattr(streamable_http, "streamable_http_client"):
        from mcp.shared._httpx_utils import create_mcp_http_client

        return streamable_http.streamable_http_client(url, http_client=create_mcp_http_client(headers=headers))
    return streamable_http.streamablehttp_client(url, headers=headers)


def field(record, name):
    """The two major versions spell fields differently: `isError` and `is_error`."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return getattr(record, name, getattr(record, snake, None))


async def work(client, era):
    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert {"search_context", "get_file", "create_file"} <= tools, tools

    word = f"pythonclient{VERSION.replace('.', '')}{era}"
    file = {"name": f"{word}.md", "content": f"# Note\n\nIt says {word}.\n", "fileType": "markdown"}
    made = await client.call_tool("create_file", file)
    assert not field(made, "isError"), made
    made = field(made, "structuredContent")
    # The client carries no consistency token: its own write is found all the same.
    found = await client.call_tool("search_context", {"query": f'"{word}"', "strategy": "keyword"})
    answer = field(found, "structuredContent")
    behind = [note for note in answer["coverage"] if note["code"] == "index_behind"]
    assert behind or [hit["fileId"] for hit in answer["results"]] == [made["id"]], found

    wrong = await client.call_tool("get_file", {"id": "nonsense"})
    assert field(wrong, "isError") and wrong.content[0].text.startswith("Validation error"), wrong
    uris = {str(entry.uri) for entry in (await client.list_resources()).resources}
    assert any(uri.startswith("skill://cairn/") for uri in uris), uris
    read = await client.read_resource(f"cairn://file/{made['id']}")
    assert read.contents[0].text == file["content"], read
    templates = await client.list_resource_templates()
    assert "cairn://file/{id}" in json.dumps(templates.model_dump(mode="json", by_alias=True)), templates
    await prompts(client)
    print(f"mcp {VERSION}, {era}: connected, listed {len(tools)} tools, called, read resources and prompts")


async def prompts(client):
    """A memory is a prompt, and its slug is completed."""
    name = f"Prompt of {VERSION}"
    made = await client.call_tool("create_memory", {"name": name, "useWhen": "a client looks for prompts"})
    slug = field(made, "structuredContent")["slug"]
    listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert listed[slug].title == name and listed[slug].description == "a client looks for prompts", listed
    got = await client.get_prompt(slug)
    assert got.messages[0].role == "user" and f"# {name}" in got.messages[0].content.text, got
    template = {"type": "ref/resource", "uri": "cairn://memory/{slug}"}
    from mcp import types

    reference = getattr(types, "ResourceTemplateReference")(**template)
    found = await client.complete(ref=reference, argument={"name": "slug", "value": slug[:6]})
    assert slug in found.completion.values, found


async def handshake(url, token):
    async with transport(url, token) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            await work(session, "2025")


async def stateless(url, token):
    async with mcp.Client(transport(url, token), mode="2026-07-28") as client:
        await work(client, "2026")


async def main(bootstrap):
    with open(bootstrap, encoding="utf-8") as file:
        account = json.load(file)
    url, token = f"{account['baseUrl']}/mcp", account["token"]
    await handshake(url, token)
    if hasattr(mcp, "Client"):
        await stateless(url, token)


asyncio.run(main(sys.argv[1]))
