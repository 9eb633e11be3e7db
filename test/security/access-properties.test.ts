import fc from 'fast-check';
import { expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { StreamAction } from '../../core/security/api.ts';
import type { Principal } from '../../core/base/principal.ts';
import { AccessLists } from '../../core/security/stream-access/stream-access.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { json, observe, outcome, setMetadata } from './kit.ts';

const KEYS: Readonly<Record<StreamAction, string>> = {
  read: '$r',
  write: '$w',
  delete: '$d',
  metadataRead: '$mr',
  metadataWrite: '$mw',
};
type Lists = Readonly<Record<string, string | readonly string[]>>;

interface Question {
  readonly who: Principal;
  readonly action: StreamAction;
  readonly stream: string;
  /** Access lists by stream. */
  readonly acls: Readonly<Record<string, Lists | undefined>>;
  readonly user: Lists | undefined;
  readonly system: Lists | undefined;
  readonly allowAnonymous: boolean;
}

/** The rules of access lists once more, as plainly as they can be said. */
function expected({
  who,
  action,
  stream,
  acls,
  user,
  system,
  allowAnonymous,
}: Question): 'ok' | 'access_denied' | 'not_authenticated' {
  const no = who.name === null ? 'not_authenticated' : 'access_denied';
  if (stream === '') return expected({ who, action, stream: '$all', acls, user, system, allowAnonymous });
  if (stream === '$all' && (action === 'write' || action === 'delete')) return no;
  if (stream.startsWith('$$') && action === 'delete') return no;
  if (stream.startsWith('$$') && action === 'read')
    return expected({ who, action: 'metadataRead', stream: stream.slice(2), acls, user, system, allowAnonymous });
  if (stream.startsWith('$$') && action === 'write')
    return expected({ who, action: 'metadataWrite', stream: stream.slice(2), acls, user, system, allowAnonymous });
  if (who.name === null && !allowAnonymous) return no;
  const names = [who.name, ...who.roles];
  if (who.name === 'admin' || who.roles.includes('$admins') || who.roles.includes('$admin')) return 'ok';
  const isSystem = stream.startsWith('$');
  const own = stream.startsWith('$$') ? undefined : acls[stream]?.[KEYS[action]];
  const list = own ?? (isSystem ? system : user)?.[KEYS[action]] ?? (isSystem ? '$admins' : '$all');
  const roles = typeof list === 'string' ? [list] : list;
  return roles.includes('$all') || roles.some((role) => role !== '' && names.includes(role)) ? 'ok' : no;
}

const role = fc.constantFrom('kim', 'lee', 'leads', '$ops', '$admins', '$all', '', 'admin');
const lists: fc.Arbitrary<Lists> = fc.dictionary(
  fc.constantFrom(...Object.values(KEYS)),
  fc.oneof(role, fc.array(role, { maxLength: 3 })),
  { maxKeys: 5 },
);
const STREAMS = ['x', '$x', '$all'];
const who: fc.Arbitrary<Principal> = fc
  .record({
    name: fc.constantFrom(null, 'kim', 'lee', 'admin', 'ops', ''),
    roles: fc.array(fc.constantFrom('leads', '$ops', '$admins', '$admin'), { maxLength: 2 }),
  })
  .map((given) => (given.name === null ? { name: null, roles: [] } : given));

test('access is what a plain reading of the rules says, before and after everything is in memory', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        acls: fc.dictionary(fc.constantFrom(...STREAMS), lists),
        user: fc.option(lists, { nil: undefined }),
        system: fc.option(lists, { nil: undefined }),
        allowAnonymous: fc.boolean(),
      }),
      fc.array(
        fc.record({
          who,
          action: fc.constantFrom(...(Object.keys(KEYS) as StreamAction[])),
          stream: fc.constantFrom('', ...STREAMS, ...STREAMS.map((name) => `$$${name}`), '$$$$x', '$$$$$x'),
        }),
        { minLength: 1, maxLength: 12 },
      ),
      async (world, questions) => {
        const { store } = observe(new ModelStore(new ManualClock(), new SeededIds()));
        for (const [stream, $acl] of Object.entries(world.acls)) await setMetadata(store, stream, { $acl });
        if (world.user !== undefined || world.system !== undefined) {
          await store.append('$settings', -2, [
            json('$settings', {
              ...(world.user && { $userStreamAcl: world.user }),
              ...(world.system && { $systemStreamAcl: world.system }),
            }),
          ]);
        }
        const access = new AccessLists({
          store,
          clock: new ManualClock(0),
          log: silentLog,
          meter: silentMeter,
          allowAnonymous: world.allowAnonymous,
        });
        for (const question of [...questions, ...questions]) {
          expect(await outcome(() => access.check(question.who, question.action, question.stream))).toBe(
            expected({ ...world, ...question }),
          );
        }
      },
    ),
    { seed: 8, numRuns: 400 },
  );
});
