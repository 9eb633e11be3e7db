import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { atNode, caught, pictured, SIZE_NAMES, sees } from './kit.ts';
import type { Ui } from './kit.ts';
import { current, fillChunks, fillLog, GOING, idle, json, SMALL_CHUNKS, soon } from './log-to-scavenge.ts';

interface Chunk {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly bytes: number;
  readonly isOngoing: boolean;
  readonly isScavenged: boolean;
  readonly isCold: boolean;
}
interface Chunks {
  readonly chunks: readonly Chunk[];
}
interface Report {
  readonly chunks: readonly { readonly file: string; readonly bytes: number; readonly bytesReclaimable: number }[];
}

/** Of each chunk here. */
const CHUNK_BYTES = 131_072;

const GRID = '[role=grid]';

/** A run may end between the question whether there is one and that how far it is. */
const ENDED = /status of 404/;

const active = (page: Page) => page.getByRole('gridcell').getAttribute('aria-label');
const detail = (page: Page) => page.locator('.chunk-name').innerText();
/** The picture as it is: what is painted has no other words. */
const picture = (page: Page) => page.evaluate('document.querySelector("canvas").toDataURL()') as Promise<string>;
/** How many files the legend counts of a kind. */
const counted = async (page: Page, label: string) =>
  Number(
    (await page.getByRole('button', { name: new RegExp(`^${label} [\\d,]+$`) }).innerText())
      .split(/\s/)
      .at(-1)!
      .replace(/\D/g, ''),
  );

atNode(
  'the chunk map',
  (ui) => {
    const chunks = async () => (await json<Chunks>(ui, '/admin/chunks')).chunks;

    test('a node that has one chunk only', async () => {
      const page = await ui.open('/chunks');
      await sees(page, 'no file has been rewritten');
      expect(await active(page)).toMatch(/^Chunk 0, being written/);
      await sees(page, 'a dry run counts it');
    });

    test('the overview and the map call the same bytes the log on disk, of a log that was moved on as well', async () => {
      // A scavenge completes the chunk that is being written, which holds next to nothing.
      expect((await ui.ask('POST', '/admin/scavenge')).status).toBe(200);
      await idle(ui);
      const all = await chunks();
      const bytes = all.reduce((sum, chunk) => sum + chunk.bytes, 0);
      expect([all.length > 1, bytes < CHUNK_BYTES]).toEqual([true, true]);
      const shown = async (path: string) => {
        const page = await ui.open(path);
        const tile = page.locator('.stat').filter({ hasText: 'Log on disk' });
        await tile.waitFor();
        return tile.locator('.stat-value').innerText();
      };
      let map = '';
      // Both are of their moment, and the end of the scavenge's history may come between them.
      await soon(async () => {
        const overview = await shown('');
        map = await shown('/chunks');
        return overview === map ? 'the same' : `${overview}, ${map}`;
      }).toBe('the same');
      expect(Math.abs(Number.parseFloat(map) * 1_024 - bytes)).toBeLessThan(8_192);
      const { log, disk } = await json<{ log: { bytes: number; end: number }; disk: { chunkBytes: number } }>(
        ui,
        '/admin/overview',
      );
      expect([disk.chunkBytes, log.end > log.bytes]).toEqual([log.bytes, true]);
    });

    test('every file as the node tells it: in the map by keys and by the pointer, and in a table', async () => {
      await fillLog(ui, 4, 4);
      const page = await ui.open('/chunks');
      const all = await chunks();
      expect(all.length).toBeGreaterThan(8);
      await page.getByRole('grid', { name: new RegExp(`^Chunk map: ${all.length} files`) }).waitFor();
      await page.locator(GRID).focus();
      await page.keyboard.press('Control+Home');
      await soon(() => active(page)).toMatch(/^Chunk 0, never scavenged/);
      expect(await detail(page)).toBe('Chunk 0');
      await page.keyboard.press('ArrowRight');
      await soon(() => detail(page)).toBe('Chunk 1');
      await page.keyboard.press('ArrowDown');
      const columns = Number(await page.locator(GRID).getAttribute('aria-colcount'));
      await soon(() => detail(page)).toBe(`Chunk ${1 + columns}`);
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('End');
      await soon(() => detail(page)).toBe(`Chunk ${columns - 1}`);
      await page.keyboard.press('Home');
      await soon(() => detail(page)).toBe('Chunk 0');
      await page.keyboard.press('Control+End');
      await soon(() => active(page)).toMatch(new RegExp(`^Chunk ${all.at(-1)!.start}, being written`));
      expect(await page.locator(GRID).getAttribute('aria-activedescendant')).toBe(
        await page.getByRole('gridcell').getAttribute('id'),
      );

      // The pointer shows a cell only as long as it is there; a click chooses it.
      const box = (await page.locator('canvas').boundingBox())!;
      await page.mouse.move(box.x + 20, box.y + 40);
      await soon(() => detail(page)).toBe('Chunk 0');
      await page.mouse.move(box.x + 20, box.y - 60);
      await soon(() => detail(page)).toBe(`Chunk ${all.at(-1)!.start}`);
      await page.mouse.click(box.x + 20, box.y + 40);
      await page.mouse.move(box.x + 20, box.y - 60);
      await soon(() => active(page)).toMatch(/^Chunk 0,/);

      await page.getByRole('radio', { name: 'Table' }).click();
      // Where there is less room the files stand in the details alone.
      await page.setViewportSize({ width: 1_920, height: 860 });
      await page.getByRole('row', { name: new RegExp(`${all.at(-1)!.file}.*being written`) }).waitFor();
      expect(await page.locator('tbody tr').count()).toBe(all.length);
    });

    test('what a dry run counts is what the map shows; its legend lets files step back', async () => {
      ui.allow(ENDED);
      const page = await ui.open('/chunks');
      await page.getByRole('button', { name: 'Start a dry run' }).click();
      await page.getByRole('button', { name: 'Dry run again' }).waitFor();
      const id = (await page.evaluate('localStorage.getItem("skua.dry-run")')) as string;
      const report = await json<Report>(ui, `/admin/scavenge/dry-run/${id}`);
      await page.getByRole('radio', { name: 'Removable' }).click();
      await soon(() => counted(page, 'nothing')).toBe(
        report.chunks.filter(({ bytesReclaimable }) => bytesReclaimable <= 0).length,
      );
      expect(await counted(page, 'more')).toBe(
        report.chunks.filter(({ bytes, bytesReclaimable }) => bytesReclaimable / bytes > 0.75).length,
      );
      expect(await counted(page, 'more')).toBeGreaterThan(1);
      await soon(() => page.locator('.map-run').count()).toBe(0);
      await pictured(page);
      const before = await picture(page);
      await page.locator('.map-legend button', { hasText: 'more' }).click();
      await soon(() => picture(page)).not.toBe(before);
      await page.locator('.map-legend button', { hasText: 'more' }).click();
      await soon(() => picture(page)).toBe(before);
      for (const mode of ['Scavenged', 'Size', 'Age']) {
        const last = await picture(page);
        await page.getByRole('radio', { name: mode }).click();
        await soon(() => picture(page)).not.toBe(last);
      }
    });

    // What it does while it is watched has to be caught before it ends: on a machine that sees too late, with a longer
    // log.
    test(
      'a scavenge that somebody starts over HTTP goes through the map, and leaves it in other colours',
      { retry: 3 },
      async () => {
        ui.allow(ENDED);
        await idle(ui);
        await fillChunks(ui, GOING, 12);
        const page = await ui.open('/chunks?by=state');
        await page.locator(GRID).waitFor();
        const before = await picture(page);
        expect((await ui.ask('POST', '/admin/scavenge?throttlePercent=1')).status).toBe(200);
        await caught(page.getByRole('progressbar', { name: 'Scavenge' }), async () => (await current(ui)) === '');
        await soon(() => picture(page)).not.toBe(before);
        // It has been seen to move: one without a throttle does the rest.
        await ui.ask('DELETE', '/admin/scavenge/current');
        await idle(ui);
        expect((await ui.ask('POST', '/admin/scavenge')).status).toBe(200);
        await idle(ui);
        await page.getByRole('progressbar', { name: 'Scavenge' }).waitFor({ state: 'detached' });
        const after = await chunks();
        const isMerged = ({ start, end }: Chunk) => end > start;
        expect(after.some(({ isScavenged }) => isScavenged)).toBe(true);
        await soon(() => counted(page, 'scavenged and merged')).toBe(
          after.filter((chunk) => chunk.isScavenged && isMerged(chunk)).length,
        );
        await page.getByRole('grid', { name: new RegExp(`^Chunk map: ${after.length} files`) }).waitFor();
        const merged = after.find((chunk) => chunk.isScavenged && isMerged(chunk));
        if (merged !== undefined) {
          await page.locator(GRID).focus();
          await page.keyboard.press('Control+Home');
          await soon(() => active(page)).toMatch(
            new RegExp(`^Chunks ${after[0]!.start} to ${after[0]!.end}, merged, scavenged`),
          );
        }
      },
    );

    test.each(SIZE_NAMES)('nothing is wrong with it: %s', async (size) => {
      expect(await ui.faults('/chunks', GRID, { size })).toEqual([]);
      expect(await ui.faults('/chunks?as=table', 'table', { size })).toEqual([]);
    });

    test('who may not see it is told why', async () => {
      await ui.ask('POST', '/users', {
        loginName: 'reader',
        fullName: 'Reader',
        groups: [],
        password: 'a Password of tests 2',
      });
      const page = await ui.open('/chunks', { user: 'reader', password: 'a Password of tests 2' });
      await sees(page, "You don't have permission");
    });
  },
  SMALL_CHUNKS,
);

const OBJECTS = join(tmpdir(), `skua-ui-objects-${process.pid}-${Date.now()}`);
afterAll(() => rm(OBJECTS, { recursive: true, force: true }));

atNode(
  'the chunk map of a log on object storage',
  (ui, node) => {
    test('complete files lie there, and a scavenge leaves them in other colours all the same', async () => {
      ui.allow(ENDED);
      const chunks = async () => (await json<Chunks>(ui, '/admin/chunks')).chunks;
      const page = await ui.open('/chunks?by=state');
      await sees(page, 'Log on disk');
      await fillLog(ui, 3, 1);
      const all = await chunks();
      expect(all.length).toBeGreaterThan(4);
      expect(all.filter(({ isCold }) => isCold)).toEqual(all.slice(0, -1));
      await soon(() => counted(page, 'never scavenged')).toBe(all.length - 1);
      await sees(page, 'Log in object storage');
      await page.locator(GRID).focus();
      await page.keyboard.press('Control+End');
      await soon(() => active(page)).toMatch(/, being written/);
      expect(await page.locator('.chunk-detail .badge', { hasText: 'in object storage' }).count()).toBe(0);
      await page.keyboard.press('Control+Home');
      await soon(() => active(page)).toMatch(/^Chunk 0, never scavenged, in object storage/);
      await page.locator('.chunk-detail .badge', { hasText: 'in object storage' }).waitFor();
      await page.getByRole('radio', { name: 'Table' }).click();
      await soon(() => page.locator('tbody .badge', { hasText: 'in object storage' }).count()).toBe(all.length - 1);

      expect((await ui.ask('POST', '/admin/scavenge')).status).toBe(200);
      await soon(async () => (await json<{ scavengeResult: string }>(ui, '/admin/scavenge/last')).scavengeResult).toBe(
        'Success',
      );
      // Which files are in force a node looks up every five minutes, and when it starts. Sessions end with it, since it
      // has no directory to keep a key in.
      await page.goto('about:blank');
      await node.stop();
      await node.start();
      const later = await ui.open('/chunks?by=state');
      const after = (await chunks()).filter(({ isScavenged }) => isScavenged).length;
      expect(after).toBeGreaterThan(0);
      await soon(async () => (await counted(later, 'scavenged')) + (await counted(later, 'scavenged and merged'))).toBe(
        after,
      );
      await later.locator(GRID).focus();
      await later.keyboard.press('Control+Home');
      await soon(() => active(later)).toMatch(/^Chunks? 0.* scavenged, in object storage/);
    });
  },
  ['--storage', OBJECTS, ...SMALL_CHUNKS],
);

/**
 * A real node with ten thousand chunk files takes an hour to be made: what it would answer is put between it and the
 * page, in the browser. All else is of the node.
 */
async function withTenThousand(ui: Ui, options: Parameters<Ui['open']>[1] = {}): Promise<Page> {
  const size = 268_435_456;
  const count = 10_000;
  const page = await ui.open('/', options);
  const chunks = Array.from({ length: count }, (_, i) => ({
    file: `chunk-${String(i).padStart(6, '0')}.00000${i < 4_000 ? 1 : 0}`,
    start: i,
    end: i,
    startPosition: i * size,
    endPosition: (i + 1) * size,
    bytes: i < 4_000 ? Math.floor(size * ((i % 97) / 97)) : size,
    dataBytes: Math.floor(size * (i === count - 1 ? 0.4 : 0.9)),
    isOngoing: i === count - 1,
    isScavenged: i < 4_000,
    isCold: false,
    records: null,
  }));
  const answer = { version: 'of-the-test', chunkSize: size, logEnd: (count - 0.6) * size };
  let asked = 0;
  await page.route('**/admin/chunks*', (route) => {
    asked++;
    return route.fulfill({
      json: { ...answer, chunks: route.request().url().includes('since=of-the-test') ? null : chunks },
    });
  });
  await page.goto(`${ui.url}/ui/chunks`);
  await page.locator(GRID).waitFor();
  expect(asked).toBeGreaterThan(0);
  return page;
}

atNode('ten thousand chunks', (ui) => {
  test('all of them are there, reached by keys and enlarged, and painted in the pixels of the screen', async () => {
    const page = await withTenThousand(ui);
    await page.getByRole('grid', { name: /^Chunk map: 10,000 files/ }).waitFor();
    expect(await page.locator(GRID).locator('*').count()).toBeLessThan(20);
    await soon(() =>
      page.evaluate(
        '(() => { const c = document.querySelector("canvas"); return c.width / (c.getBoundingClientRect().width * devicePixelRatio); })()',
      ),
    ).toBeCloseTo(1, 3);
    const [columns, rows] = await Promise.all(
      ['aria-colcount', 'aria-rowcount'].map(async (name) => Number(await page.locator(GRID).getAttribute(name))),
    );
    expect(columns! * rows!).toBeGreaterThanOrEqual(10_000);
    await page.locator(GRID).focus();
    await page.keyboard.press('Control+Home');
    await soon(() => detail(page)).toBe('Chunk 0');
    await page.keyboard.press('ArrowDown');
    await soon(() => detail(page)).toBe(`Chunk ${columns}`);
    await page.keyboard.press('Control+End');
    await soon(() => detail(page)).toBe('Chunk 9999');
    expect(await counted(page, 'never scavenged')).toBe(5_999);

    for (let zoom = 0; zoom < 3; zoom++) await page.getByRole('button', { name: 'Larger cells' }).click();
    await soon(async () => Number(await page.locator(GRID).getAttribute('aria-colcount'))).toBeLessThan(columns! / 4);
    // The chosen cell stays in sight.
    const frame = (await page.locator(GRID).boundingBox())!;
    await soon(async () => (await page.locator('.map-mark.chosen').boundingBox())!.y).toBeLessThan(
      frame.y + frame.height,
    );
    expect((await page.locator('.map-mark.chosen').boundingBox())!.y).toBeGreaterThanOrEqual(frame.y);
    const end = await picture(page);
    await page.locator(GRID).focus();
    await page.keyboard.press('Control+Home');
    await soon(() => detail(page)).toBe('Chunk 0');
    await soon(() => picture(page)).not.toBe(end);
    await page.getByRole('radio', { name: 'Table' }).click();
    await page.getByRole('table', { name: 'Chunk files' }).waitFor();
    expect(await page.getByRole('table', { name: 'Chunk files' }).getAttribute('aria-rowcount')).toBe('10001');
  });

  test('on a phone it scrolls down, and never sideways', async () => {
    const page = await withTenThousand(ui, { size: 'phone', scheme: 'dark' });
    expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
  });
});
