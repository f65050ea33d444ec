// Adds a token to requests that bring none, and changes nothing else: bearer_proxy.mjs BOOTSTRAP. It prints its address.
import { readFileSync } from 'node:fs';
import http from 'node:http';

const { baseUrl, token } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { hostname, port } = new URL(baseUrl);

const server = http.createServer((request, response) => {
  const headers = { authorization: `Bearer ${token}`, ...request.headers };
  const onward = http.request({ hostname, port, method: request.method, path: request.url, headers }, answer => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', error => response.headersSent ? response.destroy() : response.writeHead(502).end(String(error)));
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
