import { randomUUID } from 'node:crypto';
import { ADMIN, PASSWORD } from './kit.ts';
import type { Ui } from './kit.ts';

/** Writes what the page is to show, as a program would. */
export function filler(ui: Ui) {
  const send = async (
    method: string,
    path: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string>,
  ) => {
    const response = await fetch(ui.url + path, {
      method,
      body,
      headers: { authorization: `Basic ${Buffer.from(`${ADMIN}:${PASSWORD}`).toString('base64')}`, ...headers },
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };
  const at = (stream: string) => `/streams/${encodeURIComponent(stream)}`;
  return {
    /** Their ids. */
    async append(
      stream: string,
      data: readonly unknown[],
      { type = 'ticked', metadata }: { readonly type?: string; readonly metadata?: unknown } = {},
    ): Promise<string[]> {
      const ids = data.map(() => randomUUID() as string);
      await send(
        'POST',
        at(stream),
        JSON.stringify(data.map((one, i) => ({ eventId: ids[i], eventType: type, data: one, metadata }))),
        { 'content-type': 'application/vnd.eventstore.events+json' },
      );
      return ids;
    },
    appendRaw: (
      stream: string,
      type: string,
      data: string | Uint8Array<ArrayBuffer>,
      contentType = 'application/octet-stream',
    ) =>
      send('POST', at(stream), data, { 'content-type': contentType, 'es-eventtype': type, 'es-eventid': randomUUID() }),
    setMetadata: (stream: string, text: string) =>
      send('POST', `${at(stream)}/metadata`, text, { 'content-type': 'application/json', 'es-eventid': randomUUID() }),
    createUser: (loginName: string, groups: readonly string[]) =>
      send(
        'POST',
        '/users',
        JSON.stringify({ loginName, fullName: loginName, groups, password: 'a Password of tests 2' }),
        { 'content-type': 'application/json' },
      ),
  };
}
