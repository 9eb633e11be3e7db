import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  flattenSettings,
  isSecretName,
  nestSettings,
  SETTING_NAME_LENGTH_MAX,
  SETTING_VALUE_LENGTH_MAX,
  SETTINGS_MAX,
  spellNames,
} from '../../../core/webhook/format/settings-shape.ts';
import { parseWebhookSettings } from '../../../core/webhook/connectors/connector-settings.ts';
import { SCRIPT_BYTES_MAX } from '../../../core/webhook/api.ts';
import { base64, SCRIPT, settings, signed } from './kit.ts';

const entriesOf = (value: unknown) => Object.fromEntries(flattenSettings(value).settings);
const faultsOf = (value: unknown) => flattenSettings(value).violations;

describe('flattening', () => {
  test.each<[string, unknown, Record<string, string>]>([
    ['flat', { 'a:b': 'x', c: 'y' }, { 'a:b': 'x', c: 'y' }],
    ['nested', { a: { b: 'x', c: { d: 'y' } } }, { 'a:b': 'x', 'a:c:d': 'y' }],
    ['both', { a: { 'b:c': 'x' } }, { 'a:b:c': 'x' }],
    ['lists', { a: ['x', { b: 'y' }] }, { 'a:0': 'x', 'a:1:b': 'y' }],
    ['an empty list', { a: [], b: {} }, { a: '' }],
    [
      'numbers and booleans',
      { a: 1, b: -1.5, c: 1e21, d: true, e: false },
      { a: '1', b: '-1.5', c: '1e+21', d: 'true', e: 'false' },
    ],
    ['nulls', { a: null, b: { c: null }, d: 'x' }, { d: 'x' }],
    [
      'names of prototypes',
      JSON.parse('{"__proto__":{"a":"x"},"constructor":"y"}'),
      { '__proto__:a': 'x', constructor: 'y' },
    ],
  ])('%s', (_name, value, expected) => expect(entriesOf(value)).toEqual(expected));

  test.each([[null], [[]], ['text'], [1]])('%j is no object', (value) => expect(faultsOf(value)).toHaveLength(1));

  test.each<[string, unknown]>([
    ['a name twice in another case', { a: 'x', A: 'y' }],
    ['a name nested and flat', { a: { b: 'x' }, 'A:B': 'y' }],
    ['an empty name', { '': 'x' }],
    ['an empty name within', { a: { '': 'x' } }],
    ['too deep', { a: { a: { a: { a: { a: { a: { a: { a: { a: 'x' } } } } } } } } }],
    ['a long name', { ['n'.repeat(SETTING_NAME_LENGTH_MAX + 1)]: 'x' }],
    ['a long value', { a: 'v'.repeat(SETTING_VALUE_LENGTH_MAX + 1) }],
    ['too many', Object.fromEntries(Array.from({ length: SETTINGS_MAX + 1 }, (_, i) => [`n${i}`, 'x']))],
    ['too much', Object.fromEntries(Array.from({ length: 3 }, (_, i) => [`n${i}`, 'x'.repeat(200_000)]))],
  ])('%s is a violation', (_name, value) => expect(faultsOf(value)).toHaveLength(1));

  const name = fc.stringMatching(/^[a-z]{1,4}$/);
  const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean());
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 5 },
      leaf,
      fc.dictionary(name, tie('node'), { minKeys: 1, maxKeys: 4 }),
      fc.array(tie('node'), { minLength: 1, maxLength: 4 }),
    ),
  })).node;

  test('nesting and flattening again gives the same settings', () => {
    fc.assert(
      fc.property(fc.dictionary(name, tree, { maxKeys: 6 }), (value) => {
        const { settings: flat, violations } = flattenSettings(value);
        fc.pre(violations.length === 0);
        const again = flattenSettings(nestSettings(flat));
        expect(again.violations).toEqual([]);
        expect([...again.settings].toSorted()).toEqual([...flat].toSorted());
      }),
      { seed: 6, numRuns: 500 },
    );
  });

  test('so it does for any flat names, also where one is a setting and a level', () => {
    const part = fc.constantFrom('a', 'b', '0', '1', '2');
    const flatName = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(':'));
    fc.assert(
      fc.property(fc.dictionary(flatName, fc.string(), { maxKeys: 8 }), (value) => {
        const flat = flattenSettings(value).settings;
        expect([...flattenSettings(nestSettings(flat)).settings].toSorted()).toEqual([...flat].toSorted());
      }),
      { seed: 7, numRuns: 500 },
    );
  });

  test('what was nested by people comes out nested', () => {
    const value = {
      instanceTypeName: 'webhook-source',
      signature: { scheme: 'Slack', secrets: ['a', 'b'] },
      allowedHeaders: ['X-A'],
    };
    expect(nestSettings(flattenSettings(value).settings)).toEqual(value);
  });
});

describe('names', () => {
  test.each([
    ['ROUTINGSCRIPT', 'routingScript'],
    ['Signature:Secret', 'signature:secret'],
    ['signature:SECRETS:3', 'signature:secrets:3'],
    ['allowedheaders:07', 'allowedHeaders:7'],
    ['deduplication:maxage', 'deduplication:maxAge'],
  ])('%s is %s', (given, spelled) => {
    expect(spellNames(new Map([[given, 'x']]))).toEqual({ settings: new Map([[spelled, 'x']]), violations: [] });
  });

  test.each([
    ['routingScrip', 'routingScript'],
    ['signature:schema', 'signature:scheme'],
    ['waitforwrites', 'waitForWrite'],
    ['allowedHeader:1', 'allowedHeaders:0'],
    ['deduplicate:enabled', 'deduplication:enabled'],
  ])('%s is refused with %s', (given, near) => {
    const [violation] = spellNames(new Map([[given, 'x']])).violations;
    expect(violation).toMatchObject({ field: given });
    expect(violation!.description).toContain(`'${near}'`);
  });

  test.each([
    [['signature:secrets:#']],
    [['signature:secrets:10']],
    [['allowedHeaders:100']],
    [['streams:100']],
    [['streams', 'streams:0']],
    [['routingScript:0']],
    [['routingScript', 'ROUTINGSCRIPT']],
    [['allowedHeaders', 'allowedHeaders:0']],
    [['__proto__']],
    [['x'.repeat(300)]],
  ])('%j is refused', (names) => {
    expect(spellNames(new Map(names.map((each) => [each, 'x']))).violations).toHaveLength(1);
  });

  test('secrets are known', () => {
    expect(['signature:secret', 'signature:secrets:4', 'signature:scheme', 'routingScript'].map(isSecretName)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('types', () => {
  test('defaults', () => {
    expect(parseWebhookSettings(settings())).toEqual({
      settings: {
        script: SCRIPT,
        skippedStatus: 400,
        waitForWrite: false,
        confirmationTimeoutMs: 30_000,
        signature: null,
        allowedHeaders: ['content-type', 'user-agent', 'x-request-id'],
        streams: null,
        deduplication: { enabled: true, header: null, maxAgeMs: 259_200_000, maxCount: 1_000_000 },
        loggingEnabled: true,
      },
      secrets: [],
      violations: [],
    });
  });

  test('everything given', () => {
    const given = settings({
      'streams:1': 'returns',
      'streams:0': ' orders-* ',
      'streams:4': 'returns',
      waitForWrite: 'True',
      confirmationTimeout: '00:01:00.5',
      skippedStatus: '202',
      'allowedHeaders:1': 'X-B',
      'allowedHeaders:0': 'X-A',
      'allowedHeaders:5': 'x-a',
      'deduplication:enabled': 'false',
      'deduplication:header': 'X-Id',
      'deduplication:maxAge': '1.00:00:00',
      'deduplication:maxCount': '5',
      'logging:enabled': 'FALSE',
      'signature:scheme': 'Generic',
      'signature:header': 'X-Sig',
      'signature:prefix': 'v1=',
      'signature:encoding': 'base64',
      'signature:hash': 'sha512',
      'signature:secrets:3': 'c',
      'signature:secret': 'a',
      'signature:secrets:0': 'b',
      'signature:timestampTolerance': '00:10:00',
    });
    expect(parseWebhookSettings(given)).toEqual({
      settings: {
        script: SCRIPT,
        skippedStatus: 202,
        waitForWrite: true,
        confirmationTimeoutMs: 60_500,
        signature: {
          scheme: 'Generic',
          timestampToleranceMs: 600_000,
          header: 'x-sig',
          prefix: 'v1=',
          encoding: 'base64',
          hash: 'sha512',
        },
        allowedHeaders: ['x-a', 'x-b'],
        streams: ['orders-*', 'returns'],
        deduplication: { enabled: false, header: 'x-id', maxAgeMs: 86_400_000, maxCount: 5 },
        loggingEnabled: false,
      },
      secrets: ['a', 'b', 'c'],
      violations: [],
    });
  });

  test('an empty list of headers allows none', () => {
    expect(parseWebhookSettings(settings({ allowedHeaders: '' })).settings.allowedHeaders).toEqual([]);
  });

  test('72:00:00 is three days', () => {
    expect(parseWebhookSettings(settings({ 'deduplication:maxAge': '72:00:00' })).settings.deduplication.maxAgeMs).toBe(
      259_200_000,
    );
  });

  test.each<[string, Record<string, string>, string]>([
    ['no type', { instanceTypeName: '' }, 'instanceTypeName'],
    ['another type', { instanceTypeName: 'http-sink' }, 'instanceTypeName'],
    ['no script', { routingScript: ' ' }, 'routingScript'],
    ['no Base64', { routingScript: '§§§' }, 'routingScript'],
    ['no UTF-8', { routingScript: Buffer.from([0xff, 0xfe, 0x80]).toString('base64') }, 'routingScript'],
    ['an empty script', { routingScript: base64(' \n') }, 'routingScript'],
    ['a long script', { routingScript: base64('x'.repeat(SCRIPT_BYTES_MAX + 1)) }, 'routingScript'],
    ['no boolean', { waitForWrite: 'yes' }, 'waitForWrite'],
    ...['201', '404', '2e2', 'ok', '-204'].map((each): [string, Record<string, string>, string] => [
      `${each} for what is skipped`,
      { skippedStatus: each },
      'skippedStatus',
    ]),
    ['no time span', { confirmationTimeout: '30' }, 'confirmationTimeout'],
    ['no time', { confirmationTimeout: '00:00:00' }, 'confirmationTimeout'],
    ['a long time', { confirmationTimeout: '01:00:01' }, 'confirmationTimeout'],
    ['61 seconds', { confirmationTimeout: '00:00:61' }, 'confirmationTimeout'],
    ['no header', { 'allowedHeaders:0': 'X A' }, 'allowedHeaders:0'],
    ['headers as one text', { allowedHeaders: 'X-A, X-B' }, 'allowedHeaders'],
    ['streams as one text', { streams: 'a, b' }, 'streams'],
    ['no stream at all', { streams: '' }, 'streams'],
    ['a stream without a name', { 'streams:0': ' ' }, 'streams:0'],
    ['a stream of the system', { 'streams:0': '$settings' }, 'streams:0'],
    ['all streams of the system', { 'streams:0': 'a', 'streams:1': '$*' }, 'streams:1'],
    ['a * inside', { 'streams:0': 'a*b' }, 'streams:0'],
    ['two of them', { 'streams:0': 'a**' }, 'streams:0'],
    ['a name that no stream has', { 'streams:0': 'a\nb' }, 'streams:0'],
    ['a long name', { 'streams:0': 'x'.repeat(1_025) }, 'streams:0'],
    ['no number', { 'deduplication:maxCount': '1e3' }, 'deduplication:maxCount'],
    ['none', { 'deduplication:maxCount': '0' }, 'deduplication:maxCount'],
    ['too many', { 'deduplication:maxCount': '1000001' }, 'deduplication:maxCount'],
    ['a month and more', { 'deduplication:maxAge': '31.00:00:00' }, 'deduplication:maxAge'],
    ['no header of ids', { 'deduplication:header': 'a b' }, 'deduplication:header'],
    ['no scheme', { 'signature:secret': 's' }, 'signature:scheme'],
    ['no secret', { 'signature:scheme': 'GitHub' }, 'signature:secret'],
    ['an empty secret', { 'signature:scheme': 'GitHub', 'signature:secret': '' }, 'signature:secret'],
    ['an unknown scheme', { 'signature:scheme': 'Nobody', 'signature:secret': 's' }, 'signature:scheme'],
    ['a tolerance alone', { 'signature:timestampTolerance': '00:01:00' }, 'signature:scheme'],
    [
      'a long tolerance',
      { 'signature:scheme': 'Slack', 'signature:secret': 's', 'signature:timestampTolerance': '25:00:00' },
      'signature:timestampTolerance',
    ],
    [
      'a secret of another form in a list',
      { 'signature:scheme': 'StandardWebhooks', 'signature:secrets:2': 'no' },
      'signature:secrets:2',
    ],
    [
      'a header for a scheme that has one',
      { 'signature:scheme': 'GitHub', 'signature:secret': 's', 'signature:header': 'X-S' },
      'signature:header',
    ],
  ])('%s is a violation', (_name, more, field) => {
    expect(parseWebhookSettings(settings(more)).violations.map((each) => each.field)).toContain(field);
  });

  test('no violation tells a secret', () => {
    const secret = 'whsec_very-secret-\u{1f9c2}';
    for (const scheme of ['StandardWebhooks', 'Generic', 'Nobody'])
      expect(
        JSON.stringify(parseWebhookSettings(signed(secret, { 'signature:scheme': scheme })).violations),
      ).not.toContain('very-secret');
  });
});
