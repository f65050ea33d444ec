"""The official Python client goes through the whole OAuth flow: oauth_flow.py BOOTSTRAP."""

import asyncio
import sys
import urllib.parse

try:
    from mcp import ClientSession
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
except ImportError as missing:
    print(f"skipped: {missing} (pip install mcp)")
    sys.exit(0)

from person import Person


class Memory:
    """What the client keeps."""

    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def transport(url, auth):
    """The two major versions name it differently and hand the authentication over differently."""
    from mcp.client import streamable_http

    if hasattr(streamable_http, "streamable_http_client"):
        from mcp.shared._httpx_utils import create_mcp_http_client

        return streamable_http.streamable_http_client(url, http_client=create_mcp_http_client(auth=auth))
    return streamable_http.streamablehttp_client(url, auth=auth)


async def work(url, provider):
    async with transport(url, provider) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert len(tools.tools) >= 20, tools
            result = await session.call_tool("list_files", {})
            failed = getattr(result, "isError", getattr(result, "is_error", None))
            assert failed is False, result


async def main(bootstrap):
    person = Person(bootstrap)
    url = f"{person.base}/mcp"
    memory, answer = Memory(), {}

    async def open_browser(address):
        location = await asyncio.to_thread(person.allow, address)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(location).query)
        answer.update({name: values[0] for name, values in query.items()})

    async def wait_for_answer():
        try:
            from mcp.shared.auth import AuthorizationCodeResult

            return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))
        except ImportError:
            return answer["code"], answer.get("state")

    def provider():
        return OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata(
                client_name="Python flow",
                redirect_uris=["http://127.0.0.1:3030/callback"],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
                token_endpoint_auth_method="none",
            ),
            storage=memory,
            redirect_handler=open_browser,
            callback_handler=wait_for_answer,
        )

    await work(url, provider())
    first = memory.tokens.access_token
    assert first.startswith("cairn_oa_"), first
    assert answer.get("iss") == person.base, answer
    print("signed in, consented, called a tool")

    # An access token that no longer opens anything is renewed, or asked for anew, without a word to the caller.
    memory.tokens.access_token = first[:-1] + ("0" if first[-1] != "0" else "1")
    await work(url, provider())
    assert memory.tokens.access_token != first
    print("renewed, called a tool")


asyncio.run(main(sys.argv[1]))
