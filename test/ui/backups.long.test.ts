import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { VERSION } from '../../infra/runtime/version.ts';
import { runProgram } from '../../local/cli/run-command.ts';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { FakeIo } from '../local/support.ts';
import { atNode, caught, SIZE_NAMES, PASSWORD, sees } from './kit.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'skua-ui-backups-'));
const REPOSITORY = path.join(folder, 'repository');
afterAll(() => rm(folder, { recursive: true, force: true }));

atNode(
  'backups',
  (ui) => {
    const list = async () =>
      (
        (await (await ui.ask('GET', '/admin/backups')).json()) as {
          backups: { id: string; createdAt: string; cause: string }[];
        }
      ).backups;
    const status = async () =>
      (await (await ui.ask('GET', '/admin/backup/status')).json()) as {
        newest: { id: string } | null;
        provenAt: string | null;
      };
    const backUp = async () => {
      const before = (await list()).length;
      expect((await ui.ask('POST', '/admin/backup')).status).toBe(202);
      await expect.poll(async () => (await list()).length).toBe(before + 1);
    };

    test('one that is made in the page is there, and one that is made beside it is seen', async () => {
      const page = await ui.open('/backups');
      await sees(page, 'No backups yet');
      // One button leads on, not two.
      expect(await page.getByRole('button', { name: 'Back up now' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Make the first backup' }).click();
      const asked = page.getByRole('dialog', { name: 'Back up now' });
      await asked.getByText("A backup and a scavenge can't run at the same time.", { exact: false }).waitFor();
      await asked.getByRole('switch', { name: 'Pause a running scavenge' }).check();
      const [request] = await Promise.all([
        page.waitForRequest((sent) => sent.method() === 'POST'),
        asked.getByRole('button', { name: 'Back up' }).click(),
      ]);
      expect(new URL(request.url()).search).toBe('?pauseScavenge=true');
      const rows = page.getByRole('table', { name: 'Backups' }).locator('tbody tr');
      await expect.poll(() => rows.count()).toBe(1);
      expect(await list()).toMatchObject([{ cause: 'manual' }]);
      await backUp();
      await expect.poll(() => rows.count()).toBe(2);
    });

    // It may be over before the page has seen it go on.
    test('a drill is watched to its end, and what it proved is told', { retry: 3 }, async () => {
      await backUp();
      const page = await ui.open('/backups');
      await page.getByRole('button', { name: 'Back up now' }).waitFor();
      const drills = await page.getByRole('row', { name: /Drill Passed/ }).count();
      await page.getByRole('button', { name: 'Drill', exact: true }).click();
      await page.getByRole('dialog', { name: 'Drill' }).getByRole('button', { name: 'Start the drill' }).click();
      await caught(
        page.getByRole('progressbar', { name: 'Drill' }),
        async () => (await page.getByRole('row', { name: /Drill Passed/ }).count()) > drills,
      );
      await page
        .getByRole('row', { name: /Drill Passed/ })
        .first()
        .waitFor();
      expect((await status()).provenAt).not.toBeNull();
      await page
        .getByRole('row', { name: /Drill Passed/ })
        .first()
        .click();
      await page.getByRole('dialog', { name: 'Drill' }).getByText('indexEntries').waitFor();
      await page.keyboard.press('Escape');

      await page.getByRole('button', { name: 'Verify', exact: true }).click();
      const asked = page.getByRole('dialog', { name: 'Verify the repository' });
      await asked.getByLabel('How much is read').selectOption('1');
      await asked.getByRole('button', { name: 'Verify' }).click();
      await page
        .getByRole('row', { name: /Verification Passed/ })
        .first()
        .waitFor();
      await page.locator('.stat').filter({ hasText: 'Last verification' }).getByText('no errors found').waitFor();
    });

    test('the command that it shows restores the state that was chosen', async () => {
      await ui.ask('POST', '/streams/before', [{ eventId: crypto.randomUUID(), eventType: 'made', data: {} }], {
        'content-type': 'application/vnd.eventstore.events+json',
      });
      await backUp();
      const page = await ui.open('/backups');
      const command = page.getByRole('region', { name: 'Restore', exact: true }).locator('.command code');
      expect(await command.innerText()).toBe(`skua restore --from ${REPOSITORY} --db ./restored`);
      await page.getByRole('button', { name: 'A backup' }).click();
      expect(await command.innerText()).toContain(` --backup ${(await list())[0]!.id}`);
      await page.getByRole('table', { name: 'Backups' }).locator('tbody tr').last().click();
      expect(await command.innerText()).toContain(` --backup ${(await list()).at(-1)!.id}`);
      // Along the time, by the keys.
      const line = page.getByRole('slider', { name: 'Restore point' });
      await line.focus();
      await page.keyboard.press('Home');
      const first = await command.innerText();
      await page.keyboard.press('End');
      const last = await command.innerText();
      const momentOf = (text: string) => Date.parse(/ --to-time (\S+)$/.exec(text)?.[1] ?? '');
      expect(momentOf(first)).toBeLessThan(momentOf(last));
      expect(momentOf(last)).toBeLessThanOrEqual(Date.now());
      // What is painted is what a restore takes: its first moment and its last, and none besides.
      const { restorable } = (await (await ui.ask('GET', '/admin/backups')).json()) as {
        restorable: { from: string; to: string }[];
      };
      expect(await page.locator('.timeline-reach').count()).toBe(restorable.length);
      // Labels stand at their times, and the last backup's mark for those that would lie below it.
      const off = `[...document.querySelectorAll('.timeline-axis span')].slice(1, -1).map((label, i) => {
        const [at, whole] = [label.getBoundingClientRect(), document.querySelector('.timeline-track').getBoundingClientRect()];
        return Math.abs(at.left + at.width / 2 - whole.left - (whole.width * (i + 1)) / 4) < 1;
      })`;
      expect(await page.evaluate(off)).toEqual([true, true, true]);
      expect(momentOf(first)).toBe(Date.parse(restorable[0]!.from));
      const restoredBy = async (command: string) => {
        const io = new FakeIo({});
        const to = path.join(folder, crypto.randomUUID());
        const words = command.split(' ').slice(1);
        const code = await runProgram(
          { commands: COMMANDS, version: VERSION },
          words.map((word) => (word === './restored' ? to : word)),
          io,
        );
        return { code, complaints: io.complaints };
      };
      expect(await restoredBy(first)).toMatchObject({ code: 0 });
      expect(await restoredBy(last)).toMatchObject({ code: 0 });
      const moved = (ms: number, by: number) =>
        first.replace(/ --to-time \S+/, ` --to-time ${new Date(ms + by).toISOString()}`);
      expect((await restoredBy(moved(momentOf(first), -1))).code).not.toBe(0);
      expect((await restoredBy(moved(Date.parse(restorable.at(-1)!.to), 1))).code).not.toBe(0);
      await page.getByText('Or the nearest point before it').click();
      const orBefore = await command.innerText();
      expect(orBefore).toMatch(/ --at-or-before$/);
      expect(await restoredBy(orBefore)).toMatchObject({ code: 0 });
    });

    test('it is for operators', async () => {
      await ui.ask('POST', '/users', { loginName: 'reader', fullName: 'Reader', groups: [], password: PASSWORD });
      await sees(await ui.open('/backups', { user: 'reader' }), "You don't have permission");
    });

    test.each(SIZE_NAMES)('nothing is wrong with it on a %s', async (size) => {
      if ((await list()).length === 0) await backUp();
      expect(
        await ui.faults('/backups', 'table', { size }, async (page) => {
          await page.getByRole('button', { name: 'Point in time' }).click();
          await page.getByLabel('Point in time, in your time zone').waitFor();
        }),
      ).toEqual([]);
      expect(
        await ui.faults('/backups', 'table', { size }, async (page) => {
          await page.getByRole('button', { name: 'Back up now' }).click();
          await page.getByRole('dialog').getByRole('button', { name: 'Back up' }).waitFor();
        }),
      ).toEqual([]);
    });
  },
  ['--backup-repository', REPOSITORY],
);

atNode('a node without a repository', (ui) => {
  test('says what to set, in each way in which options are given', async () => {
    const page = await ui.open('/backups');
    const command = page.locator('.command code');
    await sees(page, 'Without a backup, lost data stays lost');
    expect(await command.innerText()).toContain('--backup-repository s3://backups');
    await page.getByRole('tab', { name: 'Environment' }).click();
    expect(await command.innerText()).toContain('SERVER_BACKUP__REPOSITORY=');
    await page.getByRole('tab', { name: 'File' }).click();
    expect(await command.innerText()).toContain('Backup:\n  Repository:');
  });

  test.each(SIZE_NAMES)('nothing is wrong with that on a %s', async (size) => {
    expect(await ui.faults('/backups', '.command', { size })).toEqual([]);
  });
});
