import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { Log } from '../../core/ports/log.ts';
import type { LoadedCertificate, ReloadResult } from '../../handlers/documents/node.ts';
import type { CertificateSet } from '../tls/certificate-set.ts';
import { isSameSet } from '../tls/certificate-set.ts';

interface OptionChange {
  readonly name: string;
  /** As text; masked where it is secret. */
  readonly from: string;
  readonly to: string;
  readonly isReloadable: boolean;
}

/** What a reload needs of the options. */
export interface ReloadableConfig<Values> {
  readonly values: Values;
  /** The options with the configuration file as it is now. Throws when it can't be read, or anything in it is wrong. */
  reread(): ReloadableConfig<Values>;
  /** The options whose values differ, from here to there. */
  diff(other: ReloadableConfig<Values>): readonly OptionChange[];
}

export interface ReloaderOptions<Values> {
  readonly config: ReloadableConfig<Values>;
  /** The certificates in force, and how to get and use others; or why there are none to reload. */
  readonly certificates: ReloadableCertificates<Values> | { readonly skipped: string };
  /** Puts the reloadable options other than certificates into force, such as the log level. Must not fail half way. */
  readonly apply: (values: Values, changed: ReadonlySet<string>) => void;
  readonly log: Log;
}

interface ReloadableCertificates<Values> {
  readonly inForce: CertificateSet;
  /** Loads and verifies. */
  readonly load: (values: Values) => Promise<CertificateSet>;
  readonly use: (certificates: CertificateSet) => void;
}

export interface Reloader<Values> {
  /**
   * Takes the configuration file and the certificates up again, all or nothing. A request during a reload waits for it
   * and for one more, which all that wait share: what they want was perhaps changed after the running one looked.
   * Errors: `reload_failed` (data: file, reason): nothing was changed.
   */
  reload(trigger: string): Promise<ReloadResult>;
  /** The options as they were read last; those that are not reloadable may not be in force. */
  readonly config: ReloadableConfig<Values>;
  /** Null where there are none to reload. */
  readonly certificates: CertificateSet | null;
}

export function createReloader<Values>({
  config: first,
  certificates: source,
  apply,
  log,
}: ReloaderOptions<Values>): Reloader<Values> {
  let config = first;
  let certificates = 'skipped' in source ? null : source.inForce;
  let running: Promise<ReloadResult> | null = null;
  let next: Promise<ReloadResult> | null = null;

  async function reloadNow(trigger: string): Promise<ReloadResult> {
    log.info('reloading the configuration', { trigger });
    try {
      const result = await takeUp();
      log.info('the configuration was reloaded', summary(result));
      return result;
    } catch (error) {
      const failed = reloadFailed(error);
      log.error('the configuration was not reloaded: nothing was changed', { trigger, ...failed.data });
      throw failed;
    }
  }

  /** All that can fail comes before the first change. */
  async function takeUp(): Promise<ReloadResult> {
    const read = config.reread();
    const options = config.diff(read).filter(({ isReloadable }) => isReloadable);
    // Compared with the start, since they stay without effect however often they are read.
    const ignoredOptions = first
      .diff(read)
      .filter(({ isReloadable }) => !isReloadable)
      .map(({ name }) => name);
    const loaded = 'skipped' in source ? null : await source.load(read.values);
    const isOther = loaded !== null && !isSameSet(loaded, certificates!);
    if ('skipped' in source) log.info(`certificates are not reloaded: ${source.skipped}`);
    else source.use(loaded!);
    try {
      apply(read.values, new Set(options.map(({ name }) => name)));
    } catch (error) {
      if (!('skipped' in source)) source.use(certificates!);
      throw error;
    }
    config = read;
    certificates = loaded;
    return {
      options: options.map(({ name, from, to }) => ({ name, from, to })),
      ignoredOptions,
      certificatesChanged: isOther,
      certificates: loaded?.loaded ?? [],
    };
  }

  const run = (trigger: string): Promise<ReloadResult> => {
    running = reloadNow(trigger).finally(() => {
      running = null;
    });
    return running;
  };
  return {
    get config() {
      return config;
    },
    get certificates() {
      return certificates;
    },
    reload: (trigger) => {
      if (next !== null) return next;
      if (running === null) return run(trigger);
      next = running
        .catch(() => {})
        .then(() => {
          next = null;
          return run(trigger);
        });
      return next;
    },
  };
}

/** Roots can be many, and are rarely what an operator looks for. */
const CERTIFICATES_LOGGED_MAX = 20;

function summary({
  options,
  ignoredOptions,
  certificatesChanged,
  certificates,
}: ReloadResult): Record<string, unknown> {
  const brief = ({ kind, subject, serial, daysLeft }: LoadedCertificate) => ({ kind, subject, serial, daysLeft });
  return {
    options,
    ...(ignoredOptions.length > 0 && { needsRestart: ignoredOptions }),
    ...(certificates.length > 0 && {
      certificatesChanged,
      certificates: certificates.slice(0, CERTIFICATES_LOGGED_MAX).map(brief),
      certificateCount: certificates.length,
    }),
  };
}

function reloadFailed(error: unknown): SkuaError {
  const { file, reason } = blame(error);
  return new SkuaError(
    'reload_failed',
    `Nothing was changed. ${file === null ? '' : `${file}: `}${reason}`,
    { file, reason },
    error,
  );
}

/** Which file, and why: certificates say it in their data, the configuration in its error. */
function blame(error: unknown): { file: string | null; reason: string } {
  if (isSkuaError(error, 'certificate_invalid')) {
    const { file = null, reason = error.message, problems: [, ...more] = [] } = error.data;
    return { file, reason: [reason, ...more.map((problem) => `${problem.file}: ${problem.reason}`)].join(' ') };
  }
  const file: unknown = (error as { file?: unknown } | null)?.file;
  return {
    file: typeof file === 'string' ? file : null,
    reason: error instanceof Error ? error.message : String(error),
  };
}
