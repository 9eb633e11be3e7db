import { afterAll, beforeAll, describe } from 'vitest';
import { ClientNode } from './nodes.ts';
import type { Client, Library } from './nodes.ts';
import type { Suite } from './suites/suite.ts';

/** The same tests at a node with TLS and users, and, if `isBoth`, at one without. */
export function describeClient(
  lib: Library,
  { isNew, isBoth }: { readonly isNew: boolean; readonly isBoth: boolean },
  tests: (suite: Suite) => void,
): void {
  describe.each(isBoth ? [true, false] : [true])('with TLS and users: %s', (isSecure) => {
    let node: ClientNode;
    let client: Client;
    let streams = 0;
    beforeAll(async () => {
      node = await ClientNode.start(isSecure);
      client = node.client(lib);
    });
    afterAll(() => node.stop());
    tests({ lib, isNew, isSecure, node: () => node, client: () => client, stream: () => `parcels${++streams}` });
  });
}
