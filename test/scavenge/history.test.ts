import { expect, test } from 'vitest';
import type { DirectoryStore } from '../../core/store/store.ts';
import { parseTimeSpan, timeSpanText } from '../../core/base/time.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { append, eventsOf, fill, historyOf, openWorld, runToEnd, type World } from './control-kit.ts';

/** Rows 119 to 124 of the tables (tables-history.test.ts), and the texts of the history. */

const METADATA = '{"$maxAge":2592000,"$acl":{"$r":"$ops","$w":[],"$d":[],"$mr":[],"$mw":[]}}';
const NODE = '127.0.0.1:2113';
const ID = 'b07de056-16c3-440f-b285-b2a3efc405b9';

const metadataOf = async (open: DirectoryStore, stream: string) =>
  (await eventsOf(open, `$$${stream}`)).map((event) => decodeText(event.data));
const linksOf = async (open: DirectoryStore) =>
  (await eventsOf(open, '$scavenges')).map((event) => [event.type, event.isJson, decodeText(event.data)]);

let seed = 100;
/** The store of `world` is closed, and opened again as a node that looks after its history. */
async function restart(world: World, historyMaxAgeDays = 30): Promise<World> {
  await world.open.close();
  const next = await openWorld({
    storage: world.storage,
    states: world.states,
    seed: seed++,
    scavenge: { repairHistory: true, historyMaxAgeDays },
  });
  await next.open.scavenger.idle();
  return next;
}

async function record(open: DirectoryStore, id: string, type: string, members: object): Promise<void> {
  const number = await append(
    open,
    `$scavenges-${id}`,
    type,
    encodeText(JSON.stringify({ scavengeId: id, ...members }, null, 2)),
    true,
  );
  if (type === '$scavengeStarted' || type === '$scavengeCompleted')
    await append(open, '$scavenges', '$>', encodeText(`${number}@$scavenges-${id}`));
}

test('row 119: a history stream that is absent at a start gets its metadata', async () => {
  const world = await restart(await openWorld());
  expect(await metadataOf(world.open, '$scavenges')).toEqual([METADATA]);
  await world.open.close();
});

test('row 120: other metadata are written anew, right ones are not', async () => {
  let world = await restart(await openWorld());
  const count = (await world.open.store.streamInfo('$scavenges')).metadataVersion;
  world = await restart(world);
  expect((await world.open.store.streamInfo('$scavenges')).metadataVersion).toBe(count);
  world = await restart(world, 7);
  expect((await world.open.store.streamInfo('$scavenges')).metadataVersion).toBe(count + 1);
  expect(await metadataOf(world.open, '$scavenges')).toEqual([METADATA.replace('2592000', '604800')]);
  await append(world.open, '$$$scavenges', '$metadata', encodeText('{"$maxAge":604800,"$acl":{"$r":["other"]}}'), true);
  world = await restart(world, 7);
  expect(await metadataOf(world.open, '$scavenges')).toEqual([METADATA.replace('2592000', '604800')]);
  await world.open.close();
});

test('row 121: a run of this node that was started and not completed is completed as interrupted, with nothing done', async () => {
  const world = await openWorld();
  await record(world.open, ID, '$scavengeStarted', { nodeEndpoint: NODE });
  const next = await restart(world);
  const events = await eventsOf(next.open, `$scavenges-${ID}`);
  expect(events.map((event) => event.type)).toEqual(['$scavengeStarted', '$scavengeCompleted']);
  expect(decodeText(events[1]!.data)).toBe(`{
  "scavengeId": "${ID}",
  "nodeEndpoint": "${NODE}",
  "result": "Interrupted",
  "error": "The node was restarted.",
  "timeTaken": "00:00:00",
  "spaceSaved": 0,
  "maxChunkScavenged": 0
}`);
  expect(await linksOf(next.open)).toEqual([
    ['$>', false, `0@$scavenges-${ID}`],
    ['$>', false, `1@$scavenges-${ID}`],
  ]);
  expect(await metadataOf(next.open, `$scavenges-${ID}`)).toEqual([METADATA]);
  // Once is enough.
  const third = await restart(next);
  expect(await eventsOf(third.open, `$scavenges-${ID}`)).toHaveLength(2);
  await third.open.close();
});

test('row 122: what its chunks took and saved is summed up', async () => {
  const world = await openWorld();
  await record(world.open, ID, '$scavengeStarted', { nodeEndpoint: NODE });
  for (const chunk of [0, 1]) {
    await record(world.open, ID, '$scavengeChunksCompleted', {
      chunkStartNumber: chunk,
      chunkEndNumber: chunk,
      timeTaken: '00:00:01',
      wasScavenged: true,
      spaceSaved: 2_147_483_647,
      nodeEndpoint: NODE,
      errorMessage: '',
    });
  }
  const next = await restart(world);
  expect((await historyOf(next.open, ID)).at(-1)).toEqual({
    type: '$scavengeCompleted',
    members: {
      scavengeId: ID,
      nodeEndpoint: NODE,
      result: 'Interrupted',
      error: 'The node was restarted.',
      timeTaken: '00:00:02',
      spaceSaved: 4_294_967_294,
      maxChunkScavenged: 1,
    },
  });
  await next.open.close();
});

test('row 122 with merges and tables, over more events than a page has', async () => {
  const world = await openWorld();
  await record(world.open, ID, '$scavengeStarted', { nodeEndpoint: NODE });
  for (let chunk = 0; chunk < 120; chunk++)
    await record(world.open, ID, '$scavengeChunksCompleted', {
      chunkStartNumber: chunk,
      chunkEndNumber: chunk,
      timeTaken: '00:00:00.5000000',
      spaceSaved: 10,
    });
  await record(world.open, ID, '$scavengeMergeCompleted', {
    chunkStartNumber: 0,
    chunkEndNumber: 200,
    timeTaken: '1.00:00:00',
    spaceSaved: -1_000,
    wasMerged: true,
  });
  await record(world.open, ID, '$scavengeIndexCompleted', {
    level: 0,
    index: 0,
    timeTaken: '00:00:00.0000001',
    spaceSaved: 5,
  });
  const next = await restart(world);
  expect((await historyOf(next.open, ID)).at(-1)!.members).toMatchObject({
    timeTaken: '1.00:01:00.0000001',
    spaceSaved: 205,
    maxChunkScavenged: 119,
  });
  await next.open.close();
});

test("row 123: nothing is written where both events are there, or the run is another node's", async () => {
  const world = await openWorld();
  await record(world.open, ID, '$scavengeStarted', { nodeEndpoint: NODE });
  await record(world.open, ID, '$scavengeCompleted', { nodeEndpoint: NODE, result: 'Success' });
  const other = ID.replaceAll('b', 'a');
  await record(world.open, other, '$scavengeStarted', { nodeEndpoint: '10.0.0.1:2113' });
  const next = await restart(world);
  expect(await eventsOf(next.open, `$scavenges-${ID}`)).toHaveLength(2);
  expect(await eventsOf(next.open, `$scavenges-${other}`)).toHaveLength(1);
  expect(await eventsOf(next.open, '$scavenges')).toHaveLength(3);
  await next.open.close();
});

test('a completion whose link was lost is only linked', async () => {
  const world = await openWorld();
  await record(world.open, ID, '$scavengeStarted', { nodeEndpoint: NODE });
  await append(world.open, `$scavenges-${ID}`, '$scavengeCompleted', encodeText('{}'), true);
  const next = await restart(world);
  expect(await eventsOf(next.open, `$scavenges-${ID}`)).toHaveLength(2);
  expect((await linksOf(next.open)).at(-1)).toEqual(['$>', false, `1@$scavenges-${ID}`]);
  await next.open.close();
});

test('what others wrote into the history stops nothing', async () => {
  const world = await openWorld();
  await append(world.open, '$scavenges', 'note', encodeText('no JSON'));
  await append(world.open, '$scavenges', '$>', encodeText('7@nowhere'));
  await append(world.open, '$scavenges', 'note', encodeText('null'), true);
  await record(world.open, ID, '$scavengeStarted', { nodeEndpoint: NODE });
  const next = await restart(world);
  expect((await historyOf(next.open, ID)).at(-1)).toMatchObject({ type: '$scavengeCompleted' });
  expect(next.lines.filter(({ level }) => level === 'error')).toEqual([]);
  await next.open.close();
});

test('a run that is started at once is not taken for one that was cut off', async () => {
  const world = await openWorld();
  await fill(world.open, 10);
  await world.open.close();
  const next = await openWorld({
    storage: world.storage,
    states: world.states,
    seed: 9,
    scavenge: { repairHistory: true },
  });
  const id = await runToEnd(next);
  const types = (await historyOf(next.open, id)).map(({ type }) => type);
  expect(types.filter((type) => type === '$scavengeCompleted')).toHaveLength(1);
  expect((await historyOf(next.open, id)).at(-1)!.members).toMatchObject({ result: 'Success' });
  expect(await metadataOf(next.open, '$scavenges')).toEqual([METADATA]);
  await next.open.close();
});

test('row 124: a successful run links exactly its first and its last event, and every event is as documented', async () => {
  const world = await openWorld();
  await fill(world.open);
  const id = await runToEnd(world);
  const events = await eventsOf(world.open, `$scavenges-${id}`);
  expect(await linksOf(world.open)).toEqual([
    ['$>', false, `0@$scavenges-${id}`],
    ['$>', false, `${events.length - 1}@$scavenges-${id}`],
  ]);
  expect(await metadataOf(world.open, `$scavenges-${id}`)).toEqual([METADATA]);
  expect(await metadataOf(world.open, '$scavenges')).toEqual([METADATA]);
  const first = await eventsOf(world.open, `$$$scavenges-${id}`);
  expect(first[0]!.preparePosition).toBeLessThan(events[0]!.preparePosition);
  expect(decodeText(events[0]!.data)).toBe(`{\n  "scavengeId": "${id}",\n  "nodeEndpoint": "${NODE}"\n}`);
  const members = new Map(
    events.map((event) => {
      const names = Object.keys(JSON.parse(decodeText(event.data)) as object);
      return [`${event.type}${names.includes('attributeIndex') ? ' of attributes' : ''}`, names] as const;
    }),
  );
  expect(Object.fromEntries(members)).toEqual({
    $scavengeStarted: ['scavengeId', 'nodeEndpoint'],
    $scavengeChunksCompleted: [
      'scavengeId',
      'chunkStartNumber',
      'chunkEndNumber',
      'timeTaken',
      'wasScavenged',
      'spaceSaved',
      'nodeEndpoint',
      'errorMessage',
    ],
    $scavengeMergeCompleted: [
      'scavengeId',
      'chunkStartNumber',
      'chunkEndNumber',
      'timeTaken',
      'spaceSaved',
      'wasMerged',
      'nodeEndpoint',
      'errorMessage',
    ],
    $scavengeIndexCompleted: [
      'scavengeId',
      'level',
      'index',
      'timeTaken',
      'entriesDeleted',
      'entriesKept',
      'spaceSaved',
      'wasScavenged',
      'nodeEndpoint',
      'errorMessage',
    ],
    '$scavengeIndexCompleted of attributes': [
      'scavengeId',
      'attributeIndex',
      'level',
      'index',
      'timeTaken',
      'entriesDeleted',
      'entriesKept',
      'spaceSaved',
      'wasScavenged',
      'nodeEndpoint',
      'errorMessage',
    ],
    $scavengeCompleted: [
      'scavengeId',
      'nodeEndpoint',
      'result',
      'error',
      'timeTaken',
      'spaceSaved',
      'maxChunkScavenged',
    ],
  });
  const all = await historyOf(world.open, id);
  const saved = all.slice(1, -1).reduce((sum, event) => sum + Number(event.members['spaceSaved']), 0);
  const chunks = all
    .filter(({ type }) => type === '$scavengeChunksCompleted')
    .map((event) => Number(event.members['chunkEndNumber']));
  expect(all.at(-1)!.members).toMatchObject({
    result: 'Success',
    error: null,
    spaceSaved: saved,
    maxChunkScavenged: Math.max(...chunks),
  });
  await world.open.close();
});

test('texts of durations', () => {
  const texts: [number, string][] = [
    [0, '00:00:00'],
    [2_000, '00:00:02'],
    [40.1198, '00:00:00.0401198'],
    [18.607, '00:00:00.0186070'],
    [3_723_004, '01:02:03.0040000'],
    [86_400_000 * 12 + 1, '12.00:00:00.0010000'],
  ];
  for (const [ms, text] of texts) {
    expect(timeSpanText(ms)).toBe(text);
    expect(parseTimeSpan(text)).toBeCloseTo(ms, 4);
  }
  expect([parseTimeSpan(''), parseTimeSpan('1:2:3'), parseTimeSpan('undefined')]).toEqual([null, null, null]);
});
