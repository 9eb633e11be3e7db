import { send } from './page-client.ts';

/** Longer than a page stays open; setTimeout takes no more. */
const FOREVER_MS = 2 ** 31 - 1;

/**
 * What a path holds, line by line of NDJSON, as many at a time as came together; the last one may lack its end. Leaving
 * the loop ends the request.
 */
export async function* lines<T>(
  path: string,
  signal?: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): AsyncGenerator<T[]> {
  const { body } = await send('GET', path, undefined, {
    timeoutMs: FOREVER_MS,
    headers: { accept: 'application/x-ndjson', ...headers },
    ...(signal !== undefined && { signal }),
  });
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  // Pieces of a line that has not ended are put together once: an event may have megabytes.
  let begun: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = value.split('\n');
      begun.push(parts[0]!);
      if (parts.length === 1) continue;
      const whole = [begun.join(''), ...parts.slice(1, -1)];
      begun = [parts.at(-1)!];
      yield whole.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
    }
    const last = begun.join('');
    if (last !== '') yield [JSON.parse(last) as T];
  } finally {
    await reader.cancel().catch(() => {});
  }
}
