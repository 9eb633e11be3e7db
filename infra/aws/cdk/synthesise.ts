import { App } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { SkuaStack } from './stack.ts';

/** The template of a stack with these bundles, as a plain document. */
export function synthesise(bundles: string): Record<string, unknown> {
  const stack = new SkuaStack(new App({ analyticsReporting: false }), 'Skua', { bundles });
  return Template.fromStack(stack).toJSON();
}
