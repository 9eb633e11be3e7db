// Whether the node in this container serves: exit code 0 or 1. Asks /health/live, which needs no credentials, over TLS
// and then without, since the node has one of both. SKUA_HEALTH_URL names another address.
import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';

const TIMEOUT_MS = 2_000;
const port = process.env['SERVER_NODE_PORT'] || '2113';
const given = process.env['SKUA_HEALTH_URL'];
const urls = given ? [given] : ['https', 'http'].map((scheme) => `${scheme}://127.0.0.1:${port}/health/live`);

/** The status of the answer; null without one. */
function statusOf(url) {
  return new Promise((resolve) => {
    const get = url.startsWith('https:') ? getSecure : getPlain;
    // It is the node of this container that is asked, whatever name its certificate has.
    const request = get(url, { rejectUnauthorized: false, timeout: TIMEOUT_MS, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
    request.on('close', () => resolve(null));
  });
}

const reasons = [];
for (const url of urls) {
  const status = await statusOf(url);
  if (status === 204) process.exit(0);
  reasons.push(`${url}: ${status ?? 'no answer'}`);
}
console.error(reasons.join('; '));
process.exit(1);
