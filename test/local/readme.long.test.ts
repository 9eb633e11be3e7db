import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../local/commands/all.ts';
import { ROOT, Spawned, startedNode } from './spawn.ts';

/** The README's commands really work: each is run as it stands there, with the address of a node on a free port. */

const ADDRESS = 'http://127.0.0.1:2113';
const README = readFileSync(`${ROOT}/README.md`, 'utf8');
const hasCurl = spawnSync('curl', ['--version']).status === 0;

interface Step { readonly command: string; readonly expected: string[] }

/** Commands of the shell blocks of a section, each with the comment lines behind it. */
function stepsOf(section: string): Step[] {
  const text = README.split(/^## /m).find((part) => part.startsWith(section))!;
  const steps: Step[] = [];
  for (const [, block] of text.matchAll(/```sh\n([\s\S]*?)```/g)) {
    let isOpen = false;
    for (const line of block!.split('\n')) {
      if (line === '') continue;
      if (line.startsWith('# ')) steps.at(-1)!.expected.push(line.slice(2));
      else if (isOpen) steps[steps.length - 1] = { command: `${steps.at(-1)!.command}\n${line}`, expected: [] };
      else steps.push({ command: line, expected: [] });
      isOpen = line.endsWith('\\') || (isOpen && line.endsWith(','));
    }
  }
  return steps;
}

const steps = stepsOf('Five minutes with curl').filter((step) => step.command.startsWith('curl'));
const scavengeSteps = stepsOf('Scavenging');
const webhookSteps = stepsOf('Webhooks');
const operatingSteps = stepsOf('Operating a node');
const backupSteps = stepsOf('Backup and restore');

describe.skipIf(!hasCurl)('the tour', () => {
  let node: Awaited<ReturnType<typeof startedNode>>;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'skua-readme-'));
    writeFileSync(path.join(folder, 'token'), 'a token');
    node = await startedNode(['--disable-tls', '--db', path.join(folder, 'data'), '--connectors-data-protection-token-file', path.join(folder, 'token')]);
  });
  afterAll(async () => {
    await node.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('has commands', () => expect(steps.length).toBeGreaterThan(15));

  test.each(steps.map((step, i) => [i + 1, step.command.split('\n')[0]!, step] as const))('%i: %s', async (_, __, { command, expected }) => {
    expect(expected.length).toBeGreaterThan(0);
    const curl = new Spawned('bash', ['-c', `exec ${command.replaceAll(ADDRESS, node.url).replace('curl', 'curl -sS')}`]);
    if (command.includes(' -N ')) {
      // A subscription never ends by itself.
      await Promise.all(expected.map((text) => curl.seen(new RegExp(`^${text}$`, 'm'))));
      curl.child.kill('SIGTERM');
      await curl.ended;
    } else {
      const { code, out, err } = await curl.ended;
      expect({ code, err }).toEqual({ code: 0, err: '' });
      for (const text of expected) expect(out.replaceAll(node.url, ADDRESS)).toContain(text);
    }
  });

  test.each(operatingSteps.map((step, i) => [i + 1, step.command.split('\n')[0]!, step] as const))('operating %i: %s', async (_, __, { command, expected }) => {
    expect(expected.length).toBeGreaterThan(0);
    const here = command.replaceAll(ADDRESS, node.url).replace('npx skua', `'${process.execPath}' local/main.ts`).replace(/^curl/, 'curl -sS');
    const { code, out } = await new Spawned('bash', ['-c', here]).ended;
    expect(code).toBe(0);
    for (const text of expected) expect(out).toContain(text);
  });

  test('has commands for webhooks', () => expect(webhookSteps.length).toBeGreaterThan(8));

  test.each(webhookSteps.map((step, i) => [i + 1, step.command.split('\n')[0]!, step] as const))('webhooks %i: %s', async (_, __, { command, expected }) => {
    // What writes a file for a later step prints nothing.
    if (!/ > \S+$/.test(command)) expect(expected.length).toBeGreaterThan(0);
    const here = command.replaceAll(ADDRESS, node.url).replace(/^npx skua/, `'${process.execPath}' '${ROOT}/local/main.ts'`).replace(/^curl/, 'curl -sS');
    const { code, out } = await new Spawned('bash', ['-c', `cd '${folder}' && ${here}`]).ended;
    expect(code).toBe(0);
    for (const text of expected) expect(out).toContain(text);
  });

  test('has commands for backups', () => expect(backupSteps.length).toBeGreaterThan(8));

  test.each(backupSteps.map((step, i) => [i + 1, step.command, step] as const))('backups %i: %s', async (_, __, { command, expected }) => {
    expect(expected.length).toBeGreaterThan(0);
    const here = command.replaceAll(ADDRESS, node.url).replace(/^npx skua/, `SKUA_NODE='${node.url}' SKUA_USER=keeper SKUA_PASSWORD='secret3!' '${process.execPath}' '${ROOT}/local/main.ts'`).replace(/^curl/, 'curl -sS');
    const { code, out, err } = await new Spawned('bash', ['-c', `cd '${folder}' && ${here}`]).ended;
    expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' });
    for (const text of expected) expect(out).toContain(text);
  });

  test('has commands for scavenging', () => expect(scavengeSteps.length).toBeGreaterThan(7));

  test.each(scavengeSteps.map((step, i) => [i + 1, step.command, step] as const))('scavenging %i: %s', async (_, __, { command, expected }) => {
    expect(expected.length).toBeGreaterThan(0);
    const here = command.replaceAll(ADDRESS, node.url).replace('./data', path.join(folder, 'data')).replace(/^npx skua/, `'${process.execPath}' local/main.ts`).replace(/^curl/, 'curl -sS');
    const { code, out } = await new Spawned('bash', ['-c', `exec ${here}`], { SKUA_NODE: node.url, SKUA_USER: 'ops', SKUA_PASSWORD: 'changeit' }).ended;
    expect(code).toBe(0);
    for (const text of expected) expect(out).toContain(text);
  });
});

test('the command table names every command', () => {
  for (const { name } of COMMANDS) expect(README).toContain(`| \`skua ${name}`);
});

test('the commands that npm runs exist', () => {
  const { scripts, bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as { scripts: Record<string, string>; bin: Record<string, string> };
  for (const [, name] of README.matchAll(/npm (?:run )?(start|test|demo)\b/g)) expect(scripts).toHaveProperty(name!);
  expect(bin).toEqual({ skua: './local/skua.mjs' });
});
