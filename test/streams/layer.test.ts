import { Redactions } from '../../core/streams/redactions/redactions.ts';
import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { ANY, KINDS, NO_STREAM } from '../../core/streams/api.ts';
import type { EventStore, StoreWrite } from '../../core/streams/api.ts';
import { type Around, layer, performWrite } from '../../core/streams/layer/layer.ts';

type Made = readonly [name: string, ...args: unknown[]];

/** A store that tells which call was made of it, and with what. */
function telling(): { readonly store: EventStore; readonly made: Made[] } {
  const made: Made[] = [];
  const store = Object.fromEntries(
    Object.entries(KINDS).map(([name, kind]) => [
      name,
      kind === 'value'
        ? 7
        : (...args: unknown[]) => {
            made.push([name, ...args]);
            return `${name} here`;
          },
    ]),
  );
  return { store: store as unknown as EventStore, made };
}

const AUTHORIZE = () => null;
const EVENT = {
  id: '60000000-0000-4000-8000-000000000001',
  type: 't',
  isJson: false,
  data: new Uint8Array(1),
  metadata: new Uint8Array(0),
};
const { signal } = new AbortController();

/** Arguments of every method, as many as it takes. */
const ARGUMENTS = {
  append: ['s', ANY, [EVENT], AUTHORIZE],
  appendToStreams: [
    [{ stream: 's', expectedVersion: NO_STREAM, events: [EVENT], authorize: AUTHORIZE }],
    { checks: [{ stream: 'c', expectedVersion: 3 }], isRepeatable: false },
  ],
  deleteStream: ['s', 4, 'hard', AUTHORIZE],
  readStream: ['s', { direction: 'forward', from: 0, count: 1 }],
  readEvent: ['s', 'last', true, undefined],
  readAll: [{ direction: 'backward', from: 'end', count: 2 }],
  checkpoint: [{ position: { commit: 1, prepare: 1 } }],
  streamInfo: ['s'],
  streamInfoNow: ['s'],
  subscribeToStream: ['s', { after: 3 }],
  subscribeToAll: [{ after: 'start' }],
  followStream: ['s', { after: 'end' }],
  followAll: [{ after: { commit: 1, prepare: 1 } }],
  waitForStream: ['s', signal],
  waitForLog: [9, signal],
} satisfies {
  readonly [Name in keyof typeof KINDS as (typeof KINDS)[Name] extends 'value' ? never : Name]: Parameters<
    Extract<EventStore[Name], (...args: never[]) => unknown>
  >;
};

type Named = keyof typeof ARGUMENTS;

function call(store: EventStore, name: Named): unknown {
  return (store[name] as (...args: unknown[]) => unknown)(...ARGUMENTS[name]);
}

function filled([name, ...args]: Made): Made {
  const { length } = ARGUMENTS[name as Named];
  expect(
    args.slice(length).every((arg) => arg === undefined),
    name,
  ).toBe(true);
  return [name, ...args.slice(0, length)];
}

const NO_REDACTIONS = new Redactions();

describe('a layer', () => {
  it('hands every call on with all its arguments, where nothing stands around its kind', () => {
    const { store, made } = telling();
    const layered = layer(store, {});
    for (const name of Object.keys(ARGUMENTS) as Named[]) expect(call(layered, name)).toBe(`${name} here`);
    expect(made.map(filled)).toEqual(Object.entries(ARGUMENTS).map(([name, args]) => [name, ...args]));
    expect(layered.end).toBe(7);
  });

  it('has every call go through what stands around its kind, and comes to the same call', () => {
    const { store, made } = telling();
    const through: string[] = [];
    const pass = (kind: string) => (made: (of: EventStore) => unknown) => {
      through.push(kind);
      return made(store);
    };
    const around = {
      write: (write: StoreWrite) => pass('write')((of) => performWrite(of, write)),
      read: pass('read'),
      wait: pass('wait'),
      follow: (made: (of: EventStore) => unknown, { after }: { readonly after: unknown }) =>
        pass(`follow ${JSON.stringify(after)}`)(made),
    } as unknown as Required<Around>;
    const layered = layer({ end: 8, redactions: NO_REDACTIONS, streamInfoNow: () => null }, around);
    for (const name of Object.keys(ARGUMENTS) as Named[]) call(layered, name);
    expect(made.map(filled)).toEqual(
      Object.entries(ARGUMENTS)
        .filter(([name]) => name !== 'streamInfoNow')
        .map(([name, args]) => [name, ...args]),
    );
    expect(through).toEqual([
      'write',
      'write',
      'write',
      'read',
      'read',
      'read',
      'read',
      'read',
      'follow 3',
      'follow "start"',
      'follow "end"',
      'follow {"commit":1,"prepare":1}',
      'wait',
      'wait',
    ]);
    expect([layered.end, layered.streamInfoNow!('s')]).toEqual([8, null]);
  });

  it('asks for values when they are asked for, and has no answer from memory where the store has none', () => {
    const parts = { end: 1, redactions: NO_REDACTIONS };
    const layered = layer(parts, {
      write: () => Promise.reject(new Error()),
      read: () => Promise.reject(new Error()),
      wait: () => Promise.reject(new Error()),
      follow: () => {
        throw new Error();
      },
    });
    parts.end = 2;
    expect(layered.end).toBe(2);
    expect('streamInfoNow' in layered).toBe(false);
  });
});

describe('a write as a value', () => {
  it("is carried out with a guard that is asked before the write's own", () => {
    const { store, made } = telling();
    const values: StoreWrite[] = [];
    const layered = layer(store, {
      write: (write) => {
        values.push(write);
        return Promise.resolve({ position: 1 });
      },
    });
    for (const name of ['append', 'appendToStreams', 'deleteStream'] as const) call(layered, name);
    const asked: string[] = [];
    const refusal = new SkuaError('not_leader', 'No.');
    for (const write of values) {
      const own = {
        ...write,
        writes: write.writes.map((each) => ({
          ...each,
          authorize: () => {
            asked.push('own');
            return refusal;
          },
        })),
      };
      void performWrite(store, own, () => {
        asked.push('guard');
        return null;
      });
      void performWrite(store, own, () => refusal);
    }
    const authorizeOf = ([name, ...args]: Made) =>
      (name === 'appendToStreams' ? (args[0] as StoreWrite['writes'])[0]!.authorize : args[3]) as () => unknown;
    expect(made).toHaveLength(6);
    for (const each of made) expect(authorizeOf(each)()).toBe(refusal);
    expect(asked).toEqual(['guard', 'own', 'guard', 'own', 'guard', 'own']);
  });

  it('is the same as a value again', () => {
    const values: StoreWrite[] = [];
    const keeping = layer(telling().store, {
      write: (write) => {
        values.push(write);
        return Promise.resolve({ position: 1 });
      },
    });
    for (const name of ['append', 'appendToStreams', 'deleteStream'] as const) call(keeping, name);
    for (const write of values.slice(0, 3)) void performWrite(keeping, write);
    expect(values.slice(3)).toEqual(values.slice(0, 3));
    expect(values.map(({ kind }) => kind)).toEqual(['append', 'streams', 'hard', 'append', 'streams', 'hard']);
  });
});
