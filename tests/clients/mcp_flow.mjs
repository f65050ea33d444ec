// The official TypeScript clients connect in both eras, list and call: mcp_flow.mjs BOOTSTRAP FOLDER_WITH_NODE_MODULES.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [bootstrap, folder = process.cwd()] = process.argv.slice(2);
const { baseUrl, token } = JSON.parse(readFileSync(bootstrap, 'utf8'));
const require = createRequire(join(folder, 'none.js'));

/** A package's exports; `undefined` when it is not installed. */
async function load(name) {
  try {
    return await import(pathToFileURL(require.resolve(name)).href);
  } catch (error) {
    if (!['MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'].includes(error.code)) throw error;
    return undefined;
  }
}

async function open({ Client, StreamableHTTPClientTransport }, options) {
  const client = new Client({ name: 'flow', version: '1' }, options);
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit }));
  return client;
}

async function work(title, client) {
  const { tools } = await client.listTools();
  assert.ok(tools.some(tool => tool.name === 'search_context'), `${tools.length} tools`);

  const word = `typescriptclient${title.replace(/[^a-z0-9]/g, '')}`;
  const content = `# Note\n\nIt says ${word}.\n`;
  const made = await client.callTool({ name: 'create_file', arguments: { name: `${word}.md`, content, fileType: 'markdown' } });
  assert.ok(!made.isError, JSON.stringify(made));
  const { id } = made.structuredContent;
  // The client carries no consistency token: its own write is found all the same.
  const query = { query: `"${word}"`, strategy: 'keyword' };
  const { results, coverage } = (await client.callTool({ name: 'search_context', arguments: query })).structuredContent;
  const isBehind = coverage.some(note => note.code === 'index_behind');
  assert.ok(isBehind || (results.length === 1 && results[0].fileId === id), JSON.stringify(results));

  const wrong = await client.callTool({ name: 'get_file', arguments: { id: 'nonsense' } });
  assert.ok(wrong.isError && wrong.content[0].text.startsWith('Validation error'), JSON.stringify(wrong));
  await assert.rejects(client.readResource({ uri: 'cairn://memory/there-is-none' }), /Resource not found/);
  const { resources } = await client.listResources();
  assert.ok(resources.some(entry => entry.uri.startsWith('skill://cairn/')), JSON.stringify(resources));
  const { contents } = await client.readResource({ uri: `cairn://file/${id}` });
  assert.equal(contents[0].text, content);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.ok(resourceTemplates.some(template => template.uriTemplate === 'cairn://file/{id}'));
  await prompts(title, client);
  console.log(`${title}: connected, listed ${tools.length} tools, called, read resources and prompts`);
}

/** A memory is a prompt, and its slug is completed. */
async function prompts(title, client) {
  const name = `Prompt of ${title}`;
  const made = await client.callTool({ name: 'create_memory', arguments: { name, useWhen: 'a client looks for prompts' } });
  const { slug } = made.structuredContent;
  const listed = (await client.listPrompts()).prompts.find(prompt => prompt.name === slug);
  assert.ok(listed.title === name && listed.description === 'a client looks for prompts', JSON.stringify(listed));
  const got = await client.getPrompt({ name: slug });
  assert.ok(got.messages[0].role === 'user' && got.messages[0].content.text.includes(`# ${name}`), JSON.stringify(got));
  const ref = { type: 'ref/resource', uri: 'cairn://memory/{slug}' };
  const { completion } = await client.complete({ ref, argument: { name: 'slug', value: slug.slice(0, 6) } });
  assert.ok(completion.values.includes(slug), JSON.stringify(completion));
}

/** The client checks size, digest and front matter of each file itself. */
async function readSkills(client, { SkillsClient }) {
  const skills = new SkillsClient(client);
  assert.ok(skills.supported && skills.directoryRead);
  const listing = await skills.list();
  for (const skill of listing.skills) {
    for (const { uri } of skill.resources) assert.ok((await skills.read(skill, uri)).verified, uri);
  }
  console.log(`@modelcontextprotocol/client: read and verified ${listing.skills.length} skills`);
}

const parts = await Promise.all(['client/index.js', 'client/streamableHttp.js'].map(part => load(`@modelcontextprotocol/sdk/${part}`)));
const one = parts.every(Boolean) ? Object.assign({}, ...parts) : undefined;
const two = await load('@modelcontextprotocol/client');
if (one) {
  const client = await open(one);
  await work('@modelcontextprotocol/sdk', client);
  await client.close();
}
if (two) {
  for (const [title, mode] of [['2025', 'legacy'], ['2026', { pin: '2026-07-28' }], ['auto', 'auto']]) {
    const client = await open(two, { versionNegotiation: { mode } });
    await work(`@modelcontextprotocol/client, ${title}`, client);
    const extension = await load('@modelcontextprotocol/client/ext/skills');
    if (extension && title === 'auto') await readSkills(client, extension);
    await client.close();
  }
}
if (!one && !two) console.log(`skipped: neither @modelcontextprotocol/sdk nor @modelcontextprotocol/client is installed in ${folder}`);
