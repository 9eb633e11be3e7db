import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { App } from 'aws-cdk-lib';
import { SkuaStack } from './stack.ts';

const app = new App();
const context = (name: string) => app.node.tryGetContext(name) as string | undefined;
const bundles = context('bundles') ?? fileURLToPath(new URL('../../../dist/functions', import.meta.url));
if (!existsSync(bundles))
  throw new Error(`${bundles} does not exist: run \`npm run build\` in the project folder first.`);
new SkuaStack(app, context('stack') ?? 'Skua', { bundles, description: 'Skua, an event store' });
