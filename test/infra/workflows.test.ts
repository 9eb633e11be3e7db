import { execFile } from 'node:child_process';
import { accessSync, constants, copyFileSync, existsSync, globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { NODE_MIN } from '../../local/node-version.mjs';

/** The workflows of GitHub, which run nowhere but there: as far as files can tell, and what can be run of them here. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { scripts, devDependencies, version, ...about } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly version: string;
  readonly private?: boolean;
  readonly publishConfig: unknown;
};

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly run?: string;
}

interface Job {
  readonly uses?: string;
  readonly needs?: readonly string[];
  readonly 'runs-on'?: string;
  readonly 'timeout-minutes'?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> };
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly name: string;
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: unknown;
  readonly concurrency: { readonly group: string };
  readonly jobs: Readonly<Record<string, Job>>;
}

/** Actions by the major version that was looked up: all are of GitHub itself. */
const ACTIONS: Readonly<Record<string, string>> = {
  'actions/checkout': 'v7',
  'actions/setup-node': 'v7',
  'actions/upload-artifact': 'v7',
  'actions/download-artifact': 'v8',
};
/** What jobs may do beyond reading the repository. */
const PERMISSIONS: Readonly<Record<string, readonly string[]>> = {
  'release.yml npm': ['id-token'],
  'release.yml downloads': ['contents', 'packages'],
};
/** Paths of this repository in a line of a shell. */
const OWN_PATH = /(?<![\w./-])(?:\.ci|infra|test|local)\/[\w./-]+/g;
/** Made by the step that names it. */
const MADE = /^infra\/packaging\/secrets(?:\/|$)/;

const workflows = globSync('.github/workflows/*', { cwd: ROOT })
  .sort()
  .map((file) => {
    const document = parseDocument(readFileSync(join(ROOT, file), 'utf8'));
    expect([file, document.errors, document.warnings]).toEqual([file, [], []]);
    return { file: file.split('/').at(-1)!, workflow: document.toJS() as Workflow };
  });
const jobs = workflows.flatMap(({ file, workflow }) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ id: `${file} ${name}`, workflow, job })),
);
const steps = jobs.flatMap(({ id, job }) => (job.steps ?? []).map((step) => ({ id, step })));
const lines = steps.flatMap(({ id, step }) => (step.run === undefined ? [] : [{ id, run: step.run }]));
const workflowOf = (file: string): Workflow => workflows.find((each) => each.file === file)!.workflow;
function runOf(id: string, name: string): string {
  return steps.find((each) => each.id === id && each.step.name === name)!.step.run!;
}

describe('workflows', () => {
  test('are there for tests, the package, the archives and the image, a week and a release', () => {
    expect(workflows.map(({ file, workflow: { on } }) => [file, ...Object.keys(on)])).toEqual([
      ['image.yml', 'push', 'pull_request', 'workflow_call'],
      ['package.yml', 'push', 'pull_request', 'workflow_call'],
      ['release.yml', 'push'],
      ['tests.yml', 'push', 'pull_request', 'workflow_call'],
      ['weekly.yml', 'schedule', 'workflow_dispatch'],
    ]);
    expect(workflowOf('release.yml').on).toEqual({ push: { tags: ['v*'] } });
    const all = lines.map(({ id, run }) => `${id}: ${run}`);
    expect(all).toEqual(
      expect.arrayContaining([
        'tests.yml tests: .ci/run',
        'weekly.yml all: npm run test:all',
        'image.yml image: npm run build:archive',
        'release.yml npm: npm publish',
      ]),
    );
  });

  test('may read the repository, and jobs no more than they need', () => {
    for (const { workflow } of workflows) {
      expect(workflow.permissions).toEqual({ contents: 'read' });
      expect(workflow.concurrency.group).not.toBe('');
    }
    for (const { id, job } of jobs) {
      const granted = Object.entries(job.permissions ?? {}).filter(([, access]) => access !== 'read');
      expect([id, granted.map(([name]) => name)]).toEqual([id, PERMISSIONS[id] ?? []]);
    }
  });

  test('use actions of known versions, which keep no credentials, and workflows that can be called', () => {
    for (const { id, job } of jobs) {
      if (job.uses === undefined) continue;
      const file = /^\.\/\.github\/workflows\/(\w+\.yml)$/.exec(job.uses)![1]!;
      expect([id, Object.keys(workflowOf(file).on)]).toEqual([id, expect.arrayContaining(['workflow_call'])]);
    }
    for (const { id, step } of steps) {
      if (step.uses === undefined) continue;
      const [name, used] = step.uses.split('@');
      expect([id, name, used]).toEqual([id, name, ACTIONS[name!]]);
      if (name === 'actions/checkout') expect([id, step.with]).toEqual([id, { 'persist-credentials': false }]);
    }
  });

  test('have an end, wait for jobs that there are, and build each architecture on its own machine', () => {
    for (const { id, workflow, job } of jobs) {
      for (const name of job.needs ?? []) expect(Object.keys(workflow.jobs)).toContain(name);
      if (job.uses === undefined)
        expect([id, job['timeout-minutes']! > 0, job['runs-on']]).toEqual([id, true, expect.any(String)]);
    }
    expect(workflowOf('image.yml').jobs['image']!.strategy!.matrix['include']).toEqual([
      { arch: 'amd64', runner: 'ubuntu-24.04' },
      { arch: 'arm64', runner: 'ubuntu-24.04-arm' },
    ]);
  });

  test('take the Node.js that the project pins, and run the package on the oldest that it allows', () => {
    const pinned = devDependencies['node']!.split('.')[0];
    const versions = steps.flatMap(({ step }) => step.with?.['node-version'] ?? []).map(String);
    expect(new Set(versions)).toEqual(new Set([pinned, '${{ matrix.node }}']));
    expect(workflowOf('package.yml').jobs['package']!.strategy!.matrix['node']).toEqual([NODE_MIN, pinned]);
  });

  test('run scripts of npm and files that there are', () => {
    const named = lines.flatMap(({ run }) => [...run.matchAll(/\bnpm run (\S+)/g)].map(([, name]) => name!));
    expect(named.length).toBeGreaterThan(1);
    for (const name of named) expect(scripts).toHaveProperty([name]);
    const paths = lines.flatMap(({ run }) => [...run.matchAll(OWN_PATH)].map(([path]) => path));
    expect(paths.length).toBeGreaterThan(5);
    for (const path of paths.filter((each) => !MADE.test(each)))
      expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
    accessSync(join(ROOT, '.ci/run'), constants.X_OK);
  });

  test('are sound for the shell, and put nothing that others write into its lines', async () => {
    for (const { id, run } of lines) {
      const expressions = [...run.matchAll(/\$\{\{ *(.*?) *\}\}/g)].map(([, text]) => text!);
      for (const text of expressions) expect([id, text]).toEqual([id, expect.stringMatching(/^matrix\.\w+$/)]);
      await promisify(execFile)('bash', ['-n', '-c', run.replaceAll(/\$\{\{.*?\}\}/g, 'x')]);
    }
  });
});

describe('a release', () => {
  /** Runs a step of the release in a folder with nothing but package.json, as a runner of GitHub does. */
  async function ran(name: string, env: Readonly<Record<string, string>>) {
    const folder = await mkdtemp(join(tmpdir(), 'skua-release-'));
    try {
      copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
      await promisify(execFile)(
        'bash',
        ['--noprofile', '--norc', '-eo', 'pipefail', '-c', runOf('release.yml npm', name)],
        {
          cwd: folder,
          env: { ...process.env, ...env },
        },
      );
      return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>;
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  test('is published by the workflow alone, with its provenance', async () => {
    expect([about.private, about.publishConfig]).toEqual([true, { access: 'public', provenance: true }]);
    const url = 'https://git.example.test/org/skua';
    const published = await ran('Make the package public, and say where it comes from', {
      GITHUB_SERVER_URL: 'https://git.example.test',
      GITHUB_REPOSITORY: 'org/skua',
    });
    expect(published).toMatchObject({
      repository: { type: 'git', url: `git+${url}.git` },
      homepage: `${url}#readme`,
      bugs: { url: `${url}/issues` },
      version,
    });
    expect(published).not.toHaveProperty('private');
  });

  test('has the version of its tag', async () => {
    await ran('The tag is the version of the package', { GITHUB_REF_NAME: `v${version}` });
    await expect(ran('The tag is the version of the package', { GITHUB_REF_NAME: 'v9.9.9' })).rejects.toThrow();
  });

  test('waits for all that is tested', () => {
    const { jobs: all } = workflowOf('release.yml');
    expect([all['npm']!.needs, all['downloads']!.needs]).toEqual([['tests', 'package', 'image'], ['npm']]);
  });
});
