/** The headers of http-api.md 1.4. Both families of names are accepted, so both are announced. */
const OWN_HEADERS = ['LongPoll', 'ExpectedVersion', 'EventId', 'EventType', 'RequireMaster', 'RequireLeader', 'HardDelete', 'ResolveLinkTos'];
const ALLOWED_HEADERS = [
  'Content-Type', 'X-Requested-With', 'X-Forwarded-Host', 'X-Forwarded-Prefix', 'X-PINGOTHER', 'Authorization',
  ...OWN_HEADERS.map((name) => `ES-${name}`),
  ...OWN_HEADERS.filter((name) => name !== 'RequireMaster').map((name) => `Kurrent-${name}`),
  'Last-Event-ID',
].join(', ');
const EXPOSED_HEADERS = 'Location, ES-Position, ES-CurrentVersion, Kurrent-Position, Kurrent-CurrentVersion';

const known = new Map<string, Readonly<Record<string, string>>>();

/** The four headers for a path with these methods. `methods` comes from the route table, so the map stays small. */
export function corsHeaders(methods: string): Readonly<Record<string, string>> {
  let headers = known.get(methods);
  if (headers === undefined) {
    headers = Object.freeze({
      'access-control-allow-methods': methods,
      'access-control-allow-headers': ALLOWED_HEADERS,
      'access-control-allow-origin': '*',
      'access-control-expose-headers': EXPOSED_HEADERS,
    });
    known.set(methods, headers);
  }
  return headers;
}
