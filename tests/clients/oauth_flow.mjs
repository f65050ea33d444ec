// The official TypeScript client goes through the whole OAuth flow: oauth_flow.mjs BOOTSTRAP FOLDER_WITH_NODE_MODULES.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Person } from './person.mjs';

const [bootstrap, folder = process.cwd()] = process.argv.slice(2);
const require = createRequire(join(folder, 'none.js'));

/** A package's exports; `undefined` when it is not installed. */
async function load(name) {
  try {
    return await import(pathToFileURL(require.resolve(name)).href);
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

/** The two major versions, as far as they are installed. */
async function flavours() {
  const first = ['client/index.js', 'client/streamableHttp.js', 'client/auth.js'];
  const parts = await Promise.all(first.map(part => load(`@modelcontextprotocol/sdk/${part}`)));
  const one = parts.every(Boolean) ? Object.assign({}, ...parts) : undefined;
  const two = await load('@modelcontextprotocol/client');
  return Object.entries({ '@modelcontextprotocol/sdk': one, '@modelcontextprotocol/client': two }).filter(([, of]) => of);
}

const person = new Person(bootstrap);
const url = new URL(`${person.base}/mcp`);
let kept, answer;

const provider = {
  redirectUrl: 'http://127.0.0.1:3031/callback',
  clientMetadata: {
    client_name: 'TypeScript flow',
    redirect_uris: ['http://127.0.0.1:3031/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  state: () => 'a state of the flow',
  clientInformation: () => kept.client,
  saveClientInformation: client => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: tokens => { kept.tokens = tokens; },
  saveCodeVerifier: verifier => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: async address => { answer = new URL(await person.allow(address.href)); },
};

async function work(flavour) {
  const { Client, StreamableHTTPClientTransport, UnauthorizedError } = flavour;
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
  const client = new Client({ name: 'flow', version: '1' });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    assert.equal(answer.searchParams.get('iss'), person.base);
    assert.equal(answer.searchParams.get('state'), 'a state of the flow');
    await transport.finishAuth(answer.searchParams.get('code'), answer.searchParams.get('iss'));
    return work(flavour);
  }
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 20, `${tools.length} tools`);
  const result = await client.callTool({ name: 'list_files', arguments: {} });
  assert.ok(!result.isError, JSON.stringify(result));
  await client.close();
}

const found = await flavours();
if (found.length === 0) console.log(`skipped: @modelcontextprotocol/sdk is not installed in ${folder}`);
for (const [name, flavour] of found) {
  kept = {};
  await work(flavour);
  const first = kept.tokens;
  assert.match(first.access_token, /^cairn_oa_/);
  console.log(`${name}: signed in, consented, called a tool`);

  kept.tokens = { ...first, access_token: `${first.access_token.slice(0, -1)}-` };
  await work(flavour);
  assert.notEqual(kept.tokens.access_token, first.access_token);
  assert.notEqual(kept.tokens.refresh_token, first.refresh_token, 'refresh tokens rotate');
  console.log(`${name}: renewed, called a tool`);
}
