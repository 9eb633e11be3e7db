import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { isMember } from '../../local/config/cluster-settings.ts';
import { loadConfig } from '../../local/config/load-config.ts';
import { METRICS } from '../../local/metrics/table.ts';

/** What operators install: as far as it can be tried without systemd or Grafana. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, 'infra/packaging');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

describe('Grafana dashboard', () => {
  interface Panel {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly description?: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
  }
  const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
    panels: readonly Panel[];
    annotations: { list: readonly { expr: string }[] };
    templating: { list: readonly { name: string }[] };
  };
  const expressions = [
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...dashboard.annotations.list.map(({ expr }) => expr),
  ];

  /** The metric behind a name: those of histograms have endings. */
  function definitionOf(name: string) {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    return METRICS[name] ?? (METRICS[base]?.kind === 'histogram' ? METRICS[base] : undefined);
  }

  test('asks for metrics that exist, by labels that they have', () => {
    expect(expressions.length).toBeGreaterThan(40);
    for (const expr of expressions) {
      const uses = [...expr.matchAll(/(eventstore_\w+)(?:\{([^}]*)\})?/g)];
      expect(uses, expr).not.toEqual([]);
      for (const [, name, selector = ''] of uses) {
        const definition = definitionOf(name!);
        expect(definition, `${name} in ${expr}`).toBeDefined();
        const labels = [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!);
        expect(['instance', 'le', ...(definition!.labels ?? [])], `${name} in ${expr}`).toEqual(
          expect.arrayContaining(labels),
        );
      }
    }
  });

  test('adds up by labels, and writes legends with labels, that are there', () => {
    for (const { title, targets = [] } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const known = new Set([
          'instance',
          ...[...expr.matchAll(/eventstore_\w+/g)].flatMap(([name]) => definitionOf(name)?.labels ?? []),
          ...(expr.includes('_bucket') ? ['le'] : []),
        ]);
        const grouped = [...expr.matchAll(/\b(?:by|ignoring) \(([^)]*)\)/g)].flatMap(([, list]) =>
          list!.split(',').map((label) => label.trim()),
        );
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
        for (const label of [...grouped, ...shown]) expect([...known], `${title}: ${label}`).toContain(label);
        // What was summed away can't be shown.
        const outer = /^(?:sum|histogram_quantile\([\d.]+, sum) by \(([^)]*)\)/.exec(expr)?.[1];
        if (outer !== undefined)
          for (const label of shown)
            expect(
              outer.split(',').map((each) => each.trim()),
              title,
            ).toContain(label);
      }
    }
  });

  test('rates are of counters and histograms only, and counters are not shown raw', () => {
    for (const expr of expressions) {
      const rated = [...expr.matchAll(/(?:rate|increase)\((eventstore_\w+)/g)].map(([, name]) => name!);
      for (const name of rated) expect(['counter', 'histogram'], name).toContain(definitionOf(name)!.kind);
      const raw = [...expr.matchAll(/eventstore_\w+/g)]
        .map(([name]) => name)
        .filter((name) => !rated.includes(name) && name !== 'eventstore_proc_up_time_seconds_total');
      for (const name of raw) expect(['gauge', 'recent-max'], `${name} in ${expr}`).toContain(definitionOf(name)!.kind);
    }
  });

  test('has panels that say what they show and do not cover each other', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const [i, { type, title, description, gridPos: a, targets }] of panels.entries()) {
      expect(title).not.toBe('');
      if (type !== 'row') expect([title, description?.endsWith('.'), targets!.length > 0]).toEqual([title, true, true]);
      expect(a.x + a.w).toBeLessThanOrEqual(24);
      for (const { gridPos: b } of panels.slice(i + 1))
        expect(a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h, title).toBe(false);
    }
    const variables = new Set(
      expressions
        .flatMap((expr) => [...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name!))
        .filter((name) => !name.startsWith('__')),
    );
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(expect.arrayContaining([...variables]));
  });
});

describe('systemd unit', () => {
  const unit = read('skua.service');
  const entries = unit
    .split('\n')
    .filter((line) => /^\w+=/.test(line))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const);
  const of = (name: string): string | undefined => entries.find(([key]) => key === name)?.[1];

  test('starts the node, reloads it by the signal that it knows, and starts it again only after failures that may pass', () => {
    expect(of('ExecStart')).toBe('/opt/skua/bin/skua start');
    expect([of('ExecReload'), of('Restart'), of('RestartPreventExitStatus')]).toEqual([
      '/bin/kill -HUP $MAINPID',
      'on-failure',
      '2 4',
    ]);
    // The node does not speak sd_notify.
    expect(of('Type')).toBe('exec');
  });

  test('names every directive once', () => {
    const names = entries.map(([name]) => name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  const tool = '/usr/bin/systemd-analyze';
  test.skipIf(!existsSync(tool))('is sound for systemd, and well closed off', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'skua-unit-'));
    try {
      // The program and the user exist where it is installed.
      const path = join(folder, 'skua.service');
      await writeFile(
        path,
        unit.replace(/^ExecStart=.*/m, 'ExecStart=/bin/true').replace(/^(User|Group)=.*/gm, '$1=root'),
      );
      expect(execFileSync(tool, ['verify', '--man=no', path], { encoding: 'utf8', stdio: 'pipe' })).toBe('');
      expect(
        execFileSync(tool, ['security', '--offline=true', '--threshold=40', '--no-pager', path], {
          encoding: 'utf8',
          stdio: 'pipe',
        }),
      ).toContain('exposure level');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

test('a member of a cluster starts by the options of the example, without a warning', () => {
  const { values, given, warnings } = loadConfig({ argv: ['--config', 'member.conf'], env: {}, readFile: read });
  expect([isMember(values, given), values.ClusterSize, warnings]).toEqual([true, 3, []]);
});

describe('health check', () => {
  const run = (env: Record<string, string>) =>
    new Promise<{ code: number; stderr: string }>((resolve) => {
      execFile(process.execPath, [join(FOLDER, 'healthcheck.mjs')], { env }, (error, _, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stderr }),
      );
    });

  test('tells a node that serves from one that does not, or is not there', async () => {
    let status = 204;
    const server = createServer((request, response) =>
      response.writeHead(request.url === '/health/live' ? status : 404).end(),
    );
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const port = String((server.address() as AddressInfo).port);
    expect(await run({ SERVER_NODE_PORT: port })).toEqual({ code: 0, stderr: '' });
    expect((await run({ SKUA_HEALTH_URL: `http://127.0.0.1:${port}/other` })).code).toBe(1);
    status = 503;
    expect(await run({ SERVER_NODE_PORT: port })).toMatchObject({ code: 1, stderr: expect.stringContaining('503') });
    await new Promise((resolve) => {
      server.close(resolve);
    });
    expect(await run({ SERVER_NODE_PORT: port })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no answer'),
    });
  });
});

describe('a folder that builds write to', () => {
  const emptyBuilt = async (folder: string, isBuilt: (file: string) => boolean): Promise<void> => {
    const built = (await import('../../infra/packaging/built.mjs' as string)) as {
      emptyBuilt(at: string, isOurs: (file: string) => boolean): Promise<void>;
    };
    return built.emptyBuilt(folder, isBuilt);
  };

  test('is emptied of what builds give; with anything else in it nothing is removed, and that is named', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'skua-built-'));
    try {
      const isBuilt = (file: string) => /^(main\.js|ui\/index\.html)$/.test(file);
      await emptyBuilt(join(folder, 'absent'), isBuilt);
      await mkdir(join(folder, 'ui'));
      for (const name of ['main.js', 'ui/index.html', '.DS_Store', 'ui/notes.txt'])
        await writeFile(join(folder, name), name);
      await expect(emptyBuilt(folder, isBuilt)).rejects.toThrow('ui/notes.txt');
      expect(existsSync(join(folder, 'main.js'))).toBe(true);
      await rm(join(folder, 'ui/notes.txt'));
      await emptyBuilt(folder, isBuilt);
      expect(await readdir(folder)).toEqual(['.DS_Store']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
