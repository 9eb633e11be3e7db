import { expect, test } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import { isSameRecord } from '../../core/log/format/redaction.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { ANY, type NewEvent } from '../../core/streams/api.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { markEvent, redact } from '../../core/streams/redact/redact.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { HASHERS } from './hashers.ts';
import { openWorld, runToEnd, setMetadata, type World } from './control-kit.ts';
import { filesWith, linkTo, readEveryWay, type Ways } from './marks-kit.ts';
import { checkClosed } from './random-check.ts';
import { type RawRecord, readRawLog } from './raw-log.ts';

/**
 * Random histories of streams with retention and deletes, marks, scavenges and restarts. A model of the contents says
 * what each reader must see; which events are visible no mark, scavenge and restart may change.
 */

const STREAMS = ['a', 'b', 'c', 'd'];
const LINKS = 'links';
const STEPS = 40;
const FOLDERS = ['', 'index', 'index/stream-existence'];

/** What was written, and what marks have left of it. */
interface Written {
  readonly stream: string;
  readonly number: number;
  readonly id: string;
  readonly secret: string;
  readonly data: string;
  readonly metadata: string;
  /** Of the metadata; none where they are no JSON object. */
  readonly members: readonly (readonly [key: string, value: string])[];
  /** Names that marks list; null before the first mark. */
  dropped: ReadonlySet<string> | null;
}

function contentNow({ data, metadata, members, dropped }: Written): string {
  if (dropped === null) return `whole ${data} ${metadata}`;
  const kept = members.filter(([key]) => key.startsWith('$') && !dropped.has(key));
  return `redacted  ${kept.length === 0 ? '' : `{${kept.map(([key, value]) => `"${key}":${value}`).join(',')}}`}`;
}

class History {
  readonly #random: Random;
  readonly #ids: SeededIds;
  readonly #written = new Map<string, Written>();
  readonly #gone = new Set<string>();
  readonly #copies: { readonly end: number; readonly records: readonly RawRecord[] }[] = [];
  #world!: World;
  #seed: number;
  #events = 0;
  #visible: Ways | null = null;
  marks = 0;
  scavenges = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#ids = new SeededIds(seed + 1);
    this.#seed = seed * 1_000;
  }

  async run(): Promise<void> {
    await this.#open(new FaultyStorage({ seed: this.#seed }), new MemoryScavengeStates());
    await this.#world.open.store.append(LINKS, ANY, [linkTo(this.#id(), 'a', 0)]);
    for (let step = 0; step < STEPS; step++) {
      const changes = this.#random.chance(0.55);
      if (changes) await this.#change();
      else {
        this.#visible = await this.#look(null);
        await this.#hide();
        await this.#look(this.#visible);
      }
    }
    this.#visible = await this.#look(null);
    // What a run left of the weight of a chunk, the next one that takes all of it finds.
    for (const threshold of [0, -1]) await this.#scavenge(threshold);
    await this.#look(this.#visible);
    await this.#world.open.close();
    const { storage } = this.#world;
    for (const event of this.#written.values())
      if (event.dropped !== null) expect(await filesWith(storage, event.secret, FOLDERS), event.secret).toEqual([]);
    expect(await checkClosed(storage, HASHERS.plain)).toEqual([]);
    await this.#compareCopies();
  }

  #id(): string {
    return `abababab-0000-4000-8000-${String(++this.#events).padStart(12, '0')}`;
  }

  async #open(storage: FaultyStorage, states: MemoryScavengeStates): Promise<void> {
    const disableMerging = this.#random.chance(0.5);
    this.#world = await openWorld({
      storage,
      states,
      seed: ++this.#seed,
      scavenge: { repairHistory: false, disableMerging },
    });
  }

  /** What may change which events are visible. */
  async #change(): Promise<void> {
    const random = this.#random;
    const { store } = this.#world.open;
    const stream = random.pick(STREAMS);
    if (this.#gone.has(stream)) return;
    const kind = random.int(0, 11);
    const info = await store.streamInfo(stream);
    if (kind === 0) await setMetadata(this.#world.open, stream, { $maxCount: random.int(1, 5) });
    else if (kind === 1) await setMetadata(this.#world.open, stream, { $tb: random.int(0, 6) });
    else if (kind === 2) await setMetadata(this.#world.open, stream, {});
    else if (kind === 3 && info.lastEventNumber >= 0) await store.deleteStream(stream, ANY, 'soft');
    else if (kind === 4 && info.lastEventNumber >= 0 && random.chance(0.3)) {
      await store.deleteStream(stream, ANY, 'hard');
      this.#gone.add(stream);
    } else if (kind === 5) await store.append(LINKS, ANY, [linkTo(this.#id(), stream, random.int(0, 8))]);
    else for (let n = random.int(1, 3); n > 0; n--) await this.#append(stream);
  }

  async #append(stream: string): Promise<void> {
    const id = this.#id();
    const random = this.#random;
    const secret = `S3CRET-${this.#events}-${'0123456789abcdef'.repeat(2)}-end`;
    const data = random.chance(0.2) ? '' : `{"card":"${secret}"${', "x": "y"'.repeat(random.int(0, 700))}}`;
    const all = [
      ['$a', `"1 ${this.#events}"`],
      ['$b', '{"c": [1]}'],
      ['who', `"${secret}"`],
    ] as const;
    const members = random.chance(0.2) ? [] : all.filter(() => random.chance(0.6));
    const metadata =
      members.length > 0
        ? `{ ${members.map(([key, value]) => `"${key}" : ${value}`).join(' , ')} }`
        : random.pick(['', `no JSON ${secret}`, '[1]', '{}']);
    const event: NewEvent = {
      id,
      type: 'paid',
      isJson: true,
      data: encodeText(data),
      metadata: encodeText(metadata),
    };
    const { lastEventNumber: number } = await this.#world.open.store.append(stream, ANY, [event]);
    const written = { stream, number, id, secret, data, metadata, members, dropped: null };
    this.#written.set(`${number}@${stream}`, written);
  }

  /** What may not. */
  async #hide(): Promise<void> {
    const random = this.#random;
    const kind = random.int(0, 9);
    if (kind < 4) await this.#redact();
    else if (kind === 4) await this.#markAnother();
    else if (kind < 7) await this.#scavenge(random.pick([-1, 0, 0, 3]));
    else if (kind === 7) {
      // Of marks that come while a run is under way.
      this.#world.jobs.hook = async (name, _, nth) => {
        if (nth === 1 && name === random.pick(['scavenge.accumulate', 'scavenge.calculate'])) await this.#redact();
      };
      await this.#scavenge(0);
      this.#world.jobs.hook = null;
    } else await this.#restart();
  }

  async #redact(): Promise<void> {
    const random = this.#random;
    const keys = [...this.#visible!.get('forward')!.keys()].filter((key) => !key.endsWith(`@${LINKS}`));
    if (keys.length === 0) return;
    const first = this.#written.get(random.pick(keys))!;
    const events = [first];
    const second = this.#written.get(random.pick(keys))!;
    if (second !== first && second.stream === first.stream) events.push(second);
    const metadata = random.pick([[], [], ['$a'], ['$a', '$b'], ['$none']]);
    const named = random.chance(0.5)
      ? { numbers: events.map(({ number }) => number) }
      : { ids: events.map(({ id }) => id) };
    const { store } = this.#world.open;
    await redact(store, this.#ids, 'ann', { stream: first.stream, reason: 'a card', metadata, ...named });
    for (const event of events) event.dropped = new Set([...(event.dropped ?? []), ...metadata]);
    this.marks++;
  }

  /** A mark for an event that another history of the log had at the position of one of this. */
  async #markAnother(): Promise<void> {
    const { store } = this.#world.open;
    const { events } = await store.readAll({ direction: 'forward', from: 'start', count: 1_000 });
    const { stream, number, preparePosition } = this.#random.pick(events);
    const position = preparePosition + this.#random.pick([0, 0, 8]);
    await store.append(MARKS_STREAM, ANY, [
      markEvent(this.#ids, { stream, number, id: this.#id(), position, by: 'x', reason: 'x', keys: [] }),
    ]);
  }

  async #scavenge(threshold: number): Promise<void> {
    await runToEnd(this.#world, { threshold });
    expect(this.#world.open.scavenger.last()).toMatchObject({ result: 'Success' });
    this.scavenges++;
  }

  /** With or without the database of scavenges; or a copy of the directory is scavenged apart from it. */
  async #restart(): Promise<void> {
    const { storage, states, open } = this.#world;
    await open.close();
    const kind = this.#random.int(0, 2);
    const next = storage.restart('keep');
    if (kind === 2) await this.#copyOf(storage.restart('keep'));
    await this.#open(next, kind === 0 ? new MemoryScavengeStates() : states.restart(0));
  }

  async #copyOf(storage: FaultyStorage): Promise<void> {
    const end = (await readRawLog(storage)).at(-1)!.position + 1;
    const copy = await openWorld({ storage, seed: 777_000 + ++this.#seed, scavenge: { repairHistory: false } });
    await runToEnd(copy, { threshold: -1 });
    await copy.open.close();
    this.#copies.push({ end, records: await readRawLog(storage) });
  }

  /** Reads in every way. `before`: what was visible. */
  async #look(before: Ways | null): Promise<Ways> {
    const now = await readEveryWay(this.#world.open.store, [...STREAMS, LINKS], LINKS);
    for (const [way, contents] of now) {
      if (before !== null && !way.startsWith('all'))
        expect([...contents.keys()], way).toEqual([...before.get(way)!.keys()]);
      for (const [key, content] of contents) {
        const written = this.#written.get(key);
        if (written !== undefined) expect(content, `${way} ${key}`).toBe(contentNow(written));
        else expect(key).toMatch(/@links$|^9007199254740991@/);
      }
      // What is visible in a stream is in the log.
      if (way.startsWith('all'))
        for (const key of now.get('forward')?.keys() ?? [])
          expect(contents.has(key) || key.endsWith(LINKS), `${way} ${key}`).toBe(true);
    }
    return now;
  }

  async #compareCopies(): Promise<void> {
    const records = new Map((await readRawLog(this.#world.storage)).map((record) => [record.position, record]));
    for (const copy of this.#copies) {
      for (const { position, bytes } of copy.records) {
        const own = records.get(position);
        if (position >= copy.end || own === undefined) continue;
        const [one, two] = [framed(bytes), framed(own.bytes)];
        expect(one.length === two.length && isSameRecord(one, 0, two, 0, one.length), `record ${position}`).toBe(true);
      }
    }
  }
}

function framed(payload: string): Uint8Array {
  const out = Buffer.alloc(payload.length + 8);
  out.writeInt32LE(payload.length, 0);
  out.write(payload, 4, 'latin1');
  out.writeInt32LE(payload.length, payload.length + 4);
  return out;
}

test('random histories show what the model says, and what was redacted is in no file in the end', async () => {
  const sums = { marks: 0, scavenges: 0 };
  for (const seed of seedsFrom(1, bySize(8, 60, 200))) {
    const history = new History(seed);
    await history.run().catch((error: unknown) => {
      throw new Error(`Seed ${seed}: ${String(error)}`, { cause: error });
    });
    sums.marks += history.marks;
    sums.scavenges += history.scavenges;
  }
  expect(sums.marks).toBeGreaterThan(20);
  expect(sums.scavenges).toBeGreaterThan(20);
});
