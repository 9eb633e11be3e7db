import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { atNode, caught, SIZE_NAMES, sees } from './kit.ts';
import {
  current,
  fillChunks,
  fillLog,
  GOING,
  idle,
  json,
  limit,
  SMALL_CHUNKS,
  soon,
  STAYING,
} from './log-to-scavenge.ts';

interface DryRunChunk {
  readonly weight: number;
  readonly bytes: number;
  readonly bytesReclaimable: number;
}
interface Report {
  readonly chunks: readonly DryRunChunk[];
  readonly totals: { readonly chunks: number; readonly chunksExecuted: number; readonly redactable: number };
}
interface Last {
  readonly scavengeId: string;
  readonly scavengeResult: string;
}
interface Entry {
  readonly eventType: string;
  readonly data: string;
}

interface Proofs {
  readonly proofs: readonly { readonly state: string; readonly stream: string | null; readonly report: unknown }[];
}

/** To be searched for a quarter of an hour at least, and nothing on the disk: all of it is a hole. */
const LARGE_BYTES = 4 * 2 ** 40;
/** A run may end between the question whether there is one and that how far it is. */
const ENDED = /status of 404/;
/**
 * What a run does while it is watched has to be caught before it ends: on a machine that sees too late, with a longer
 * log.
 */
const AGAIN = { retry: 3, timeout: 1_200_000 };
/** Deleted in a way that lets it be written again: its one event stays, without its data. */
const EMPTIED = 'emptied';
const BAR = { name: 'Scavenge' } as const;
/**
 * Longest that a run with a throttle may need to its end: it waits in proportion to what it works, and that to how busy
 * the machine is.
 */
const RUN_MS_MAX = 1_200_000;

/** The number in a tile of figures. */
const figure = (page: Page, label: string) =>
  page.locator('.stat', { hasText: label }).locator('.stat-value').innerText();

atNode(
  'scavenges',
  (ui, node) => {
    const last = () => json<Last>(ui, '/admin/scavenge/last');

    test('a node that has never been scavenged says what to do', async () => {
      ui.allow(/status of 404/);
      const page = await ui.open('/scavenge');
      await sees(page, 'No scavenge since the node started');
      await page.getByRole('tab', { name: 'History' }).click();
      await sees(page, 'No scavenges yet');
      await page.getByRole('tab', { name: 'Dry run' }).click();
      await sees(page, 'No report here yet');
    });

    test('what a dry run counts, and what of it each threshold wins', async () => {
      ui.allow(ENDED);
      await fillLog(ui, 5, 3);
      await ui.ask('POST', `/streams/${EMPTIED}`, [{ eventId: crypto.randomUUID(), eventType: 'x', data: {} }], {
        'content-type': 'application/vnd.eventstore.events+json',
      });
      await ui.ask('DELETE', `/streams/${EMPTIED}`);
      const page = await ui.open('/scavenge?tab=dry-run');
      await page.getByRole('button', { name: 'Start a dry run' }).click();
      await page.getByRole('slider', { name: 'Threshold' }).waitFor();
      const report = await json<Report>(
        ui,
        `/admin/scavenge/dry-run/${(await page.evaluate('localStorage.getItem("skua.dry-run")')) as string}`,
      );
      expect(await figure(page, 'Files rewritten')).toBe(`${report.totals.chunksExecuted} of ${report.totals.chunks}`);
      expect(report.totals.redactable).toBe(1);
      await sees(page, /^of [\d\s.,]+ in the log; 1 more loses its data$/);
      const executedAt = (threshold: number) =>
        report.chunks.filter(({ weight }) => threshold < 0 || (weight > 0 && weight >= threshold)).length;

      await page.getByRole('slider').focus();
      await page.keyboard.press('Home');
      await soon(() => figure(page, 'Files rewritten')).toBe(`${report.totals.chunks} of ${report.totals.chunks}`);
      await page.keyboard.press('End');
      const most = Math.max(...report.chunks.map(({ weight }) => weight));
      expect(executedAt(most)).toBeLessThan(report.totals.chunksExecuted);
      await soon(() => figure(page, 'Files rewritten')).toBe(`${executedAt(most)} of ${report.totals.chunks}`);
      expect(await page.getByText('rewritten', { exact: true }).count()).toBe(executedAt(most));
      await page.getByRole('link', { name: `Use ${most}` }).click();
      await soon(() => page.getByLabel('Threshold').inputValue()).toBe(String(most));
    });

    test('what the node refuses can not be asked for, and what is wrong is said at its field', async () => {
      const page = await ui.open('/scavenge');
      await page.getByLabel('Threads').selectOption('2');
      await soon(() => page.getByLabel('Throttle in percent').isDisabled()).toBe(true);
      await page.getByLabel('Threads').selectOption('1');
      await page.getByRole('switch', { name: 'Use an existing scavenge point' }).check();
      await soon(() => page.getByRole('switch', { name: 'Start fresh' }).isDisabled()).toBe(true);
      await page.getByRole('switch', { name: 'Use an existing scavenge point' }).uncheck();
      await page.getByLabel('Throttle in percent').fill('101');
      await page.getByRole('button', { name: 'Start the scavenge' }).click();
      await soon(() => page.locator('.field.wrong').count()).toBe(1);
      expect((await last()).scavengeResult).toBe('Unknown');
    });

    test(
      'one that is started over HTTP appears, and is stopped in between; the next goes on with it',
      AGAIN,
      async () => {
        ui.allow(ENDED);
        await idle(ui);
        await fillChunks(ui, GOING, 12);
        const page = await ui.open('/scavenge');
        await page.getByRole('button', { name: 'Start the scavenge' }).waitFor();
        expect((await ui.ask('POST', '/admin/scavenge?throttlePercent=1')).status).toBe(200);
        await caught(page.getByRole('progressbar', BAR), async () => (await current(ui)) === '');
        await sees(page, 'A scavenge is under way');
        await page.getByRole('tab', { name: 'History' }).click();
        const running = page.getByRole('row').getByText('running', { exact: true });
        await caught(running, async () => (await current(ui)) === '');
        await page.getByRole('tab', { name: 'Run', exact: true }).click();
        await page.getByRole('button', { name: 'Stop' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Stop the scavenge' }).click();
        await page.getByRole('progressbar', BAR).waitFor({ state: 'detached' });
        expect((await last()).scavengeResult).toBe('Stopped');
        await page.locator('.badge', { hasText: 'Stopped' }).waitFor();
        // It depends on how far it had come before the first thing that it notes.
        await sees(page, /^A scavenge (?:was not finished|point waits)$/);
      },
    );

    test('one is started in the page and watched to its end; the history tells what it has won', AGAIN, async () => {
      ui.allow(ENDED);
      await idle(ui);
      const page = await ui.open('/scavenge');
      await page.getByRole('switch', { name: 'Start fresh' }).check();
      await page.getByLabel('Throttle in percent').fill('15');
      const { scavengeId: before } = await last();
      await page.getByRole('button', { name: 'Start the scavenge' }).click();
      await soon(async () => (await last()).scavengeId).not.toBe(before);
      await caught(page.getByRole('progressbar', BAR), async () => (await current(ui)) === '');
      await caught(page.locator('.phases .now'), async () => (await current(ui)) === '');
      await page.getByRole('progressbar', BAR).waitFor({ state: 'detached', timeout: RUN_MS_MAX });
      const { scavengeId, scavengeResult } = await last();
      expect(scavengeResult).toBe('Success');
      await page.locator('.badge', { hasText: 'Success' }).waitFor();
      // When, how long and how much.
      for (const name of ['Ended', 'Took', 'Reclaimed']) await page.getByText(name, { exact: true }).waitFor();

      await page.getByRole('tab', { name: 'History' }).click();
      await page.getByRole('row', { name: new RegExp(`Success.*${scavengeId.slice(0, 8)}`) }).waitFor();
      await page
        .getByRole('row', { name: /Stopped/ })
        .first()
        .waitFor();
      await page.getByRole('row', { name: new RegExp(scavengeId.slice(0, 8)) }).click();
      const dialog = page.getByRole('dialog', { name: 'What the run did' });
      await dialog
        .getByRole('row', { name: /Chunk rewritten/ })
        .first()
        .waitFor();
      const { entries } = await json<{ entries: readonly Entry[] }>(
        ui,
        `/streams/%24scavenges-${scavengeId}/head/backward/100?embed=body`,
      );
      const written = entries.filter(({ eventType }) => eventType === '$scavengeChunksCompleted');
      expect(written.length).toBeGreaterThan(0);
      expect(await dialog.getByRole('row', { name: /Chunk rewritten/ }).count()).toBe(written.length);
    });

    test('a dry run of somebody else is shown as one, and its report is there for all', async () => {
      ui.allow(ENDED);
      const page = await ui.open('/scavenge?tab=dry-run');
      await page.getByRole('tabpanel').waitFor();
      // A page may miss one that is short: then there is another.
      let scavengeId = '';
      await soon(async () => {
        if (await page.getByRole('progressbar', { name: 'Dry run' }).isVisible()) return true;
        if ((await current(ui)) === '')
          ({ scavengeId } = (await (await ui.ask('POST', '/admin/scavenge?dryRun=true&throttlePercent=1')).json()) as {
            scavengeId: string;
          });
        return false;
      }).toBe(true);
      await soon(() => page.evaluate('localStorage.getItem("skua.dry-run")')).toBe(scavengeId);
      await page.getByRole('slider', { name: 'Threshold' }).waitFor();
      await idle(ui);
    });

    test('why events of a stream go or stay, as the node explains it; names are text', async () => {
      ui.allow(/status of 404/);
      const hostile = '<img src=x onerror=alert(1)>"\'&';
      await ui.ask(
        'POST',
        `/streams/${encodeURIComponent(hostile)}`,
        [
          { eventId: crypto.randomUUID(), eventType: 'x', data: {} },
          { eventId: crypto.randomUUID(), eventType: 'x', data: {} },
        ],
        { 'content-type': 'application/vnd.eventstore.events+json' },
      );
      await limit(ui, hostile, { $maxCount: 1, note: '<b>bold</b>' });
      const page = await ui.open('/scavenge?tab=explain');
      const explain = async (stream: string) => {
        await page.getByLabel('Stream', { exact: true }).fill(stream);
        await page.getByRole('button', { name: 'Explain' }).click();
      };
      await explain(hostile);
      await page.getByRole('heading', { name: hostile }).waitFor();
      await sees(page, '1 event (');
      await sees(page, 'It keeps the last event ($maxCount).');
      await sees(page, '"note":"<b>bold</b>"');
      await page.getByRole('row', { name: /^0 goes 1 .* beyond \$maxCount/ }).waitFor();
      await page.getByRole('row', { name: /^1 stays 1 – last event of the stream/ }).waitFor();
      expect(await page.locator('main img, main b').count()).toBe(0);
      await explain(STAYING);
      await sees(page, 'Nothing is removed');
      await sees(page, 'None: its events are never removed.');
      const deleted = 'deleted-just-now';
      await ui.ask('POST', `/streams/${deleted}`, [{ eventId: crypto.randomUUID(), eventType: 'x', data: {} }], {
        'content-type': 'application/vnd.eventstore.events+json',
      });
      await ui.ask('DELETE', `/streams/${deleted}`);
      await explain(deleted);
      await sees(page, /^Nothing is removed, 1 event stays, of which the last one loses its data \(/);
      await explain('nobody-wrote-this');
      await sees(page, 'There is no such stream');
      await page.reload();
      expect(await page.getByLabel('Stream', { exact: true }).inputValue()).toBe('nobody-wrote-this');
    });

    test('a stream is there still, is deleted and scavenged, and is proven to be gone; the report can be saved', async () => {
      ui.allow(ENDED);
      const events = 'application/vnd.eventstore.events+json';
      const eventId = crypto.randomUUID();
      await ui.ask('POST', '/streams/to-be-erased', [{ eventId, eventType: 'x', data: {} }], {
        'content-type': events,
      });
      const page = await ui.open('/scavenge?tab=erasure');
      await sees(page, 'No proofs yet');
      await page.getByRole('button', { name: 'Start the proof' }).click();
      await sees(page, 'Name a stream, or give ids of events.');
      await page.getByLabel('Event ids').fill('not-an-id');
      await page.getByRole('button', { name: 'Start the proof' }).click();
      await sees(page, /“not-an-id” is not an event id/);
      await page.getByLabel('Event ids').fill('');
      await page.getByRole('textbox', { name: 'Stream' }).fill('to-be-erased');
      await page.getByRole('button', { name: 'Start the proof' }).click();
      const proofs = page.locator('.proofs > li');
      await proofs.first().locator('.badge', { hasText: 'not erased' }).waitFor();

      // For good: of a stream that may be written again the last event stays.
      await ui.ask('DELETE', '/streams/to-be-erased', undefined, { 'ES-HardDelete': 'true' });
      expect((await ui.ask('POST', '/admin/scavenge')).status).toBe(200);
      await idle(ui);
      await page.getByRole('textbox', { name: 'Stream' }).fill('');
      await page.getByLabel('Event ids').fill(eventId);
      await page.getByRole('button', { name: 'Start the proof' }).click();
      await soon(() => proofs.count()).toBe(2);
      await proofs
        .first()
        .locator('.badge', { hasText: /^erased$/ })
        .waitFor();
      const saved = page.waitForEvent('download');
      await proofs.first().getByRole('button', { name: 'Save the report' }).click();
      const report = JSON.parse(await readFile(await (await saved).path(), 'utf8')) as {
        proofId: string;
        report: { isErased: boolean };
      };
      expect(report.report.isErased).toBe(true);
      expect(await json(ui, `/admin/erasure/${report.proofId}`)).toEqual(report);
    });

    test('a proof that takes too long is stopped; then it says so, and the next one begins', async () => {
      const stream = 'searched-for-long';
      await ui.ask('POST', `/streams/${stream}`, [{ eventId: crypto.randomUUID(), eventType: 'x', data: {} }], {
        'content-type': 'application/vnd.eventstore.events+json',
      });
      const large = join(node.data, 'large');
      const file = await open(large, 'w');
      await file.truncate(LARGE_BYTES);
      await file.close();
      const page = await ui.open('/scavenge?tab=erasure');
      const begin = page.getByRole('button', { name: 'Start the proof' });
      const proofs = page.locator('.proofs > li');
      const before = (await json<Proofs>(ui, '/admin/erasure')).proofs.length;
      await page.getByRole('textbox', { name: 'Stream' }).fill(stream);
      await begin.click();
      await proofs
        .first()
        .getByRole('progressbar', { name: `Proof of ${stream}` })
        .waitFor();
      await sees(page, / of 4\sTiB/);
      await soon(() => begin.isDisabled()).toBe(true);
      // Of somebody else, too.
      const other = await ui.open('/scavenge?tab=erasure');
      await other.getByRole('progressbar', { name: `Proof of ${stream}` }).waitFor();

      await other.getByRole('button', { name: 'Stop' }).click();
      for (const each of [other, page]) {
        await each.locator('.proofs > li').first().locator('.badge', { hasText: 'stopped' }).waitFor();
        await each.getByRole('progressbar').waitFor({ state: 'detached' });
      }
      expect((await json<Proofs>(ui, '/admin/erasure')).proofs[0]).toMatchObject({
        state: 'aborted',
        stream,
        report: null,
      });
      await rm(large);
      await begin.click();
      await soon(() => proofs.count()).toBe(before + 2);
      await proofs.first().locator('.badge', { hasText: 'not erased' }).waitFor();
    });

    test.each(SIZE_NAMES)('nothing is wrong with it: %s', async (size) => {
      expect(await ui.faults('/scavenge', '.badge', { size })).toEqual([]);
      // A browser that has seen no dry run begins with none.
      expect(
        await ui.faults('/scavenge?tab=dry-run', '.empty', { size }, async (page) => {
          await page.getByRole('button', { name: 'Start a dry run' }).click();
          await page.getByRole('slider').waitFor();
        }),
      ).toEqual([]);
      expect(await ui.faults('/scavenge?tab=erasure', '.proofs > li', { size })).toEqual([]);
      expect(await ui.faults('/scavenge?tab=history', 'tbody tr', { size })).toEqual([]);
      expect(await ui.faults(`/scavenge?tab=explain&stream=${GOING}`, '.events-strip', { size })).toEqual([]);
    });

    test('who may not scavenge is told why', async () => {
      await ui.ask('POST', '/users', {
        loginName: 'reader',
        fullName: 'Reader',
        groups: [],
        password: 'a Password of tests 2',
      });
      const page = await ui.open('/scavenge', { user: 'reader', password: 'a Password of tests 2' });
      await sees(page, "You don't have permission");
    });
  },
  SMALL_CHUNKS,
);
