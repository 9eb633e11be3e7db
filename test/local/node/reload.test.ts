import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { Log } from '../../../core/ports/log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { loadConfig } from '../../../local/config/load-config.ts';
import type { Values as AllValues } from '../../../infra/runtime/config/options.ts';
import { createReloader } from '../../../local/node/reload.ts';
import type { ReloadableConfig, ReloaderOptions } from '../../../local/node/reload.ts';
import { listenForHangUp } from '../../../local/cli/signals.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';

interface Values {
  readonly level: string;
  readonly port: number;
}

/** Options whose file is what the test says it is. */
class Options implements ReloadableConfig<Values> {
  readonly values: Values;
  readonly #file: () => Values;

  constructor(file: () => Values) {
    this.values = file();
    this.#file = file;
  }

  reread(): Options {
    return new Options(this.#file);
  }

  diff(other: ReloadableConfig<Values>) {
    const names = (['level', 'port'] as const).filter((name) => this.values[name] !== other.values[name]);
    return names.map((name) => ({
      name,
      from: String(this.values[name]),
      to: String(other.values[name]),
      isReloadable: name === 'level',
    }));
  }
}

function certificate(serial: string): CertificateSet {
  const loaded = [
    { kind: 'node', subject: 'CN=n', serial, thumbprint: serial, notAfter: '2027-01-01T00:00:00.000Z', daysLeft: 40 },
  ] as const;
  return {
    secureContext: { cert: 'c', key: 'a secret', ca: [] },
    reservedNodeCommonName: 'n',
    trustsNodes: true,
    loaded,
    notAfterMs: 0,
    remindDays: 30,
    isMadeAtStart: false,
  };
}

function world(changed: Partial<ReloaderOptions<Values>> = {}) {
  const state = {
    file: { level: 'info', port: 1 } as Values | Error,
    disk: certificate('1') as CertificateSet | Error,
    used: ['1'],
    applied: [] as unknown[],
    loads: 0,
  };
  const lines: [string, string, Record<string, unknown> | undefined][] = [];
  const log: Log = {
    ...silentLog,
    info: (message, fields) => {
      lines.push(['info', message, fields]);
    },
    error: (message, fields) => {
      lines.push(['error', message, fields]);
    },
  };
  const reloader = createReloader<Values>({
    config: new Options(() => {
      if (state.file instanceof Error) throw state.file;
      return state.file;
    }),
    certificates: {
      inForce: certificate('1'),
      load: async () => {
        state.loads++;
        await gate.promise;
        if (state.disk instanceof Error) throw state.disk;
        return state.disk;
      },
      use: ({ loaded }) => {
        state.used.push(loaded[0]!.serial);
      },
    },
    apply: (values, names) => {
      state.applied.push([values.level, [...names]]);
    },
    log,
    ...changed,
  });
  const gate = { promise: Promise.resolve() };
  return { state, lines, reloader, gate };
}

describe('a reload', () => {
  test('takes up options and certificates, tells what changed, and logs it on one line without secrets', async () => {
    const { state, lines, reloader } = world();
    state.file = { level: 'debug', port: 2 };
    state.disk = certificate('2');
    const result = await reloader.reload('a test');
    expect(result).toEqual({
      options: [{ name: 'level', from: 'info', to: 'debug' }],
      ignoredOptions: ['port'],
      certificatesChanged: true,
      certificates: certificate('2').loaded,
    });
    expect(state).toMatchObject({ used: ['1', '2'], applied: [['debug', ['level']]] });
    expect([reloader.config.values, reloader.certificates?.loaded[0]?.serial]).toEqual([
      { level: 'debug', port: 2 },
      '2',
    ]);
    expect(lines).toEqual([
      ['info', 'reloading the configuration', { trigger: 'a test' }],
      [
        'info',
        'the configuration was reloaded',
        {
          options: result.options,
          needsRestart: ['port'],
          certificatesChanged: true,
          certificateCount: 1,
          certificates: [{ kind: 'node', subject: 'CN=n', serial: '2', daysLeft: 40 }],
        },
      ],
    ]);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });
  test('of nothing new changes nothing, and says again what needs a restart', async () => {
    const { state, reloader } = world();
    state.file = { level: 'info', port: 2 };
    for (let i = 0; i < 2; i++)
      expect(await reloader.reload('a test')).toMatchObject({
        options: [],
        ignoredOptions: ['port'],
        certificatesChanged: false,
      });
  });
  test.each([
    [
      'options',
      (state: ReturnType<typeof world>['state']) => {
        state.file = Object.assign(new Error('LogLevel must be one of these.'), { file: '/etc/x.conf' });
      },
      '/etc/x.conf',
      'LogLevel must be one of these.',
    ],
    [
      'options of no file',
      (state: ReturnType<typeof world>['state']) => {
        state.file = new Error('wrong');
      },
      null,
      'wrong',
    ],
    [
      'certificates',
      (state: ReturnType<typeof world>['state']) => {
        const problems = [
          { file: '/a.key', reason: 'Broken.' },
          { file: '/b.crt', reason: 'Expired.' },
        ];
        state.disk = new SkuaError('certificate_invalid', 'all', { ...problems[0], problems });
      },
      '/a.key',
      'Broken. /b.crt: Expired.',
    ],
  ])('changes nothing when it fails: %s', async (_, breakIt, file, reason) => {
    const { state, lines, reloader } = world();
    const before = reloader.config;
    state.file = { level: 'debug', port: 1 };
    state.disk = certificate('2');
    breakIt(state);
    await expect(reloader.reload('a test')).rejects.toMatchObject({
      code: 'reload_failed',
      data: { file, reason },
      message: expect.stringContaining(reason),
    });
    expect(state).toMatchObject({ used: ['1'], applied: [] });
    expect([reloader.config, reloader.certificates?.loaded[0]?.serial]).toEqual([before, '1']);
    expect(lines.slice(1)).toEqual([
      ['error', expect.stringContaining('nothing was changed'), { trigger: 'a test', file, reason }],
    ]);
    state.file = { level: 'debug', port: 1 };
    state.disk = certificate('3');
    expect(await reloader.reload('a test')).toMatchObject({ certificatesChanged: true, options: [{ name: 'level' }] });
  });
  test('an option that can not be applied takes the certificates back', async () => {
    const { state, reloader } = world({
      apply: () => {
        throw new Error('no such level');
      },
    });
    state.disk = certificate('2');
    await expect(reloader.reload('a test')).rejects.toMatchObject({
      code: 'reload_failed',
      data: { reason: 'no such level' },
    });
    expect(state.used).toEqual(['1', '2', '1']);
    expect(reloader.certificates?.loaded[0]?.serial).toBe('1');
  });
  test('requests during a reload wait for it, and share one more that sees what is there by then', async () => {
    const { state, reloader, gate } = world();
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.promise = promise;
    const first = reloader.reload('first');
    const others = [reloader.reload('second'), reloader.reload('third')];
    resolve();
    expect((await first).certificatesChanged).toBe(false);
    state.disk = certificate('2');
    const [second, third] = await Promise.all(others);
    expect(second).toBe(third);
    expect(state.loads).toBe(2);
    await reloader.reload('fourth');
    expect(state.loads).toBe(3);
  });
  test('one that fails does not take the waiting one with it', async () => {
    const { state, reloader } = world();
    state.disk = new SkuaError('certificate_invalid', 'x', { problems: [{ file: 'f', reason: 'r' }] });
    const failed = reloader.reload('first').catch((error: unknown) => {
      state.disk = certificate('2');
      return error;
    });
    const second = reloader.reload('second');
    expect(await failed).toMatchObject({ code: 'reload_failed' });
    expect((await second).certificatesChanged).toBe(true);
  });
  test('without certificates to reload the options are taken up all the same', async () => {
    const { state, lines, reloader } = world({ certificates: { skipped: 'TLS is off' } });
    state.file = { level: 'debug', port: 1 };
    expect(await reloader.reload('a test')).toEqual({
      options: [{ name: 'level', from: 'info', to: 'debug' }],
      ignoredOptions: [],
      certificatesChanged: false,
      certificates: [],
    });
    expect(reloader.certificates).toBeNull();
    expect(lines.map(([, message]) => message)).toContain('certificates are not reloaded: TLS is off');
  });
});

test('with the options of a node: what is reloadable, what needs a restart, and a file that is wrong', async () => {
  let yaml = 'LogLevel: Information\nNodePort: 2113\nCertificatePassword: hush\n';
  const config = loadConfig({ argv: ['--config', '/x.conf'], env: {}, readFile: () => yaml });
  const levels: string[] = [];
  const reloader = createReloader<AllValues>({
    config,
    certificates: { skipped: 'TLS is off' },
    apply: ({ LogLevel }) => {
      levels.push(LogLevel);
    },
    log: silentLog,
  });
  yaml = 'LogLevel: Debug\nNodePort: 2114\nCertificatePassword: hush2\n';
  expect(await reloader.reload('a test')).toEqual({
    options: [
      { name: 'CertificatePassword', from: '********', to: '********' },
      { name: 'LogLevel', from: 'Information', to: 'Debug' },
    ],
    ignoredOptions: ['NodePort'],
    certificatesChanged: false,
    certificates: [],
  });
  for (const broken of ['LogLevel: [', 'LogLevel: loud', 'NodePort: many', 'Unknown: 1']) {
    yaml = broken;
    await expect(reloader.reload('a test'), broken).rejects.toMatchObject({
      code: 'reload_failed',
      data: { file: '/x.conf' },
    });
  }
  expect(levels).toEqual(['Debug']);
  expect(reloader.config.values.NodePort).toBe(2114);
});

test('SIGHUP is noted during the start, reloads afterwards, and survives a reload that fails', () => {
  const signals = new EventEmitter();
  const lines: string[] = [];
  let count = 0;
  const hangUp = listenForHangUp(signals, {
    ...silentLog,
    info: (message) => {
      lines.push(message);
    },
  });
  signals.emit('SIGHUP');
  expect(lines).toEqual([expect.stringContaining('still starting')]);
  hangUp.attach(() => Promise.reject(new Error(String(++count))));
  signals.emit('SIGHUP');
  signals.emit('SIGHUP');
  expect(count).toBe(2);
  hangUp.release();
  expect(signals.listenerCount('SIGHUP')).toBe(0);
});
