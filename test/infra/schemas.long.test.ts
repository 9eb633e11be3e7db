import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

/**
 * What runs in Kubernetes and at GitHub alone, by their schemas: manifests by types and schemas made from the API of
 * Kubernetes, workflows by the parser of GitHub's own editor. The packages stand in test/containers.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGES = path.join(ROOT, 'test/containers/node_modules');
const areHere = existsSync(path.join(PACKAGES, 'kubernetes-models'));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-schemas-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
}

describe.skipIf(!areHere)('a manifest', () => {
  const manifests = globSync('infra/packaging/kubernetes/*.yaml', { cwd: ROOT })
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(path.join(ROOT, file), 'utf8')))
    .map((document) => document.toJS() as Manifest);

  test('has all that its kind must have', async () => {
    expect(manifests.length).toBeGreaterThan(5);
    for (const each of manifests) {
      const { href } = pathToFileURL(path.join(PACKAGES, 'kubernetes-models', each.apiVersion, `${each.kind}.js`));
      const model = (await import(/* @vite-ignore */ href)) as Readonly<
        Record<string, new (data: Manifest) => { validate(): void }>
      >;
      new model[each.kind]!(each).validate();
    }
  });

  /** What TypeScript says of these manifests: it knows of members that there are not, which the schemas let pass. */
  async function problems(of: readonly Manifest[]): Promise<string> {
    const lines = of.map(
      (each, i) =>
        `import type { I${each.kind} as T${i} } from 'kubernetes-models/${each.apiVersion}/${each.kind}';\n` +
        `export const m${i}: T${i} = ${JSON.stringify(each, null, 1)};\n`,
    );
    writeFileSync(path.join(folder, 'manifests.ts'), lines.join(''));
    const config = {
      compilerOptions: {
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        target: 'es2022',
        module: 'node20',
        types: [],
        paths: { 'kubernetes-models/*': [`${PACKAGES}/kubernetes-models/*.d.ts`] },
      },
      files: ['manifests.ts'],
    };
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
    const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
    return await promisify(execFile)(process.execPath, [tsc, '-p', folder]).then(
      () => '',
      (error: { readonly stdout: string }) => error.stdout,
    );
  }

  test('has nothing else', async () => {
    expect(await problems(manifests)).toBe('');
    const wrong = structuredClone(manifests.find(({ kind }) => kind === 'PodDisruptionBudget')!);
    Object.assign((wrong as unknown as { spec: object }).spec, { maxUnavailables: 1 });
    expect(await problems([wrong])).toMatch(/maxUnavailables.* does not exist/);
  });
});

interface Parser {
  parseWorkflow(
    file: { readonly name: string; readonly content: string },
    trace: unknown,
  ): { context: Context; value: unknown };
  convertWorkflowTemplate(context: Context, value: unknown): Promise<{ readonly jobs: readonly unknown[] }>;
  readonly NoOperationTraceWriter: new () => unknown;
}

interface Context {
  readonly errors: { getErrors(): readonly Error[] };
}

describe.skipIf(!areHere)('a workflow', () => {
  /** The parser; it imports JSON as only bundlers take it. */
  async function parser(): Promise<Parser> {
    const outfile = path.join(folder, 'parser.cjs');
    await build({
      stdin: { contents: "export * from '@actions/workflow-parser';", resolveDir: PACKAGES },
      bundle: true,
      platform: 'node',
      format: 'cjs',
      outfile,
      logLevel: 'error',
    });
    return (await import(/* @vite-ignore */ pathToFileURL(outfile).href)) as Parser;
  }

  test('is one for the parser of GitHub', async () => {
    const { parseWorkflow, convertWorkflowTemplate, NoOperationTraceWriter } = await parser();
    async function errorsOf(name: string, content: string): Promise<string[]> {
      const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
      await convertWorkflowTemplate(context, value);
      return context.errors.getErrors().map(({ message }) => message);
    }
    const files = globSync('.github/workflows/*', { cwd: ROOT });
    expect(files.length).toBeGreaterThan(3);
    for (const file of files)
      expect([file, await errorsOf(file, readFileSync(path.join(ROOT, file), 'utf8'))]).toEqual([file, []]);
    const release = readFileSync(path.join(ROOT, '.github/workflows/release.yml'), 'utf8');
    expect(await errorsOf('wrong', release.replace('needs: [npm]', 'needs: [none]'))).toEqual([
      expect.stringContaining("depends on unknown job 'none'"),
    ]);
  });
});
