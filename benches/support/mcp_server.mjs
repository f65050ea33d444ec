// The smallest MCP server that the official TypeScript SDK makes, stateless and with JSON answers as its own example has it:
// mcp_server.mjs PORT BYTES FOLDER_WITH_NODE_MODULES. Its one tool answers a text of that many bytes.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [port, bytes, folder] = process.argv.slice(2);
const require = createRequire(join(folder, 'none.js'));
const load = name => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { McpServer } = await load('server/mcp.js');
const { StreamableHTTPServerTransport } = await load('server/streamableHttp.js');

const text = 'A line of the file.\n'.repeat(Math.floor(Number(bytes) / 20));

async function answer(request, response) {
  if (request.url !== '/mcp') return response.end();
  // A stateless transport serves one request.
  const server = new McpServer({ name: 'smallest', version: '1' });
  server.registerTool('get_text', { description: 'Answer a text.' }, () => ({ content: [{ type: 'text', text }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on('close', () => { transport.close(); server.close(); });
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

createServer(answer).listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
