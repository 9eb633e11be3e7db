import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildFunctions } from '../../../infra/aws/build.mjs';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const WEBHOOK_BYTES_MAX = 1_000_000;
/** Loads a module in a process of its own, and prints how long that took. */
const PROBE = `const begin = performance.now(); for (const path of process.argv.slice(1)) await import(path); process.stdout.write(String(performance.now() - begin)); process.exit(0);`;

export const functionBundle: Figure = {
  name: 'function-bundle',
  how: "The bundle of the webhook function, built as for a deployment, in a folder without node_modules. Its size is that of all its code, also of what is loaded only when it is first needed, without source maps and the sandbox's WebAssembly. The time to load it is that of an import in a fresh process, and another time with every part that it would load later, beside a bundle of the S3 client of the SDK alone, made by the same tool.",
  async run(settings) {
    const folder = join(settings.folder, 'bundles');
    mkdirSync(folder, { recursive: true });
    const sizes = await buildFunctions(join(folder, 'functions'));
    const webhook = sizes.find(({ name }) => name === 'webhook')!;
    await build({
      stdin: {
        contents:
          'import { S3Client, GetObjectCommand, PutObjectCommand, ListObjectsV2Command } from "@aws-sdk/client-s3"; export const client = new S3Client({ region: "us-east-1" }); export { GetObjectCommand, PutObjectCommand, ListObjectsV2Command };',
        resolveDir: ROOT,
      },
      outfile: join(folder, 'sdk.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node24',
      minify: true,
      mainFields: ['module', 'main'],
      logLevel: 'error',
      banner: {
        js: 'import{createRequire as __createRequire}from"node:module";const require=__createRequire(import.meta.url);',
      },
    });
    const ours = join(folder, 'functions', 'webhook', 'index.mjs');
    const parts = readdirSync(join(folder, 'functions', 'webhook', 'parts'))
      .filter((name) => name.endsWith('.mjs'))
      .map((name) => join(folder, 'functions', 'webhook', 'parts', name));
    const load = (...paths: string[]): number => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', PROBE, ...paths], {
        encoding: 'utf8',
        env: { ...process.env, AWS_REGION: 'us-east-1' },
      });
      if (status !== 0) throw new Error(`The bundle could not be loaded: ${stderr}`);
      return Number(stdout);
    };
    load(ours);
    load(join(folder, 'sdk.mjs'));
    const times = await alternate(
      3 * settings.windows,
      () => load(join(folder, 'sdk.mjs')),
      () => load(ours),
    );
    return [
      row(
        'bundle of the webhook function',
        'bytes',
        { limit: [WEBHOOK_BYTES_MAX], ours: [webhook.bytes] },
        { kind: 'below', value: 1 },
        [
          `${webhook.indexBytes} bytes are loaded at the start`,
          ...sizes.map(({ name, bytes }) => `${name}: ${bytes} bytes`),
        ],
      ),
      row('time to load the webhook function', 'ms', times, { kind: 'at most', value: 1.5 }),
      row(
        'time to load it with every part it has',
        'ms',
        await alternate(
          3 * settings.windows,
          () => load(join(folder, 'sdk.mjs')),
          () => load(ours, ...parts),
        ),
        null,
      ),
    ];
  },
};
