import { appendFileSync, readFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

/** Failures that are told once more at the end, and how many characters of the reason of each. */
const FAILURES_TOLD_MAX = 50;
const REASON_LENGTH_MAX = 300;

function reasonOf(error: unknown): string {
  const { message = String(error) } = error as { message?: string };
  return message.replaceAll('\n', ' ').slice(0, REASON_LENGTH_MAX);
}

/** Files whose time is told at the end: those where most is to be saved. */
const DEAREST_FILES = 10;
/** Ticks of the system's clock a second, in which `/proc` tells processor time; Linux has no other. */
const TICKS_PER_SECOND = 100;

/**
 * User and system time in seconds of this process and of all that it and its processes have started and waited for, by
 * `/proc/self/stat` (proc(5): fields 14 to 17); null on systems without it. What another process has taken over, as a
 * server in the background, is not in it.
 */
function processorSeconds(): { readonly user: number; readonly system: number } | null {
  let stat: string;
  try {
    stat = readFileSync('/proc/self/stat', 'latin1');
  } catch {
    return null;
  }
  // The second field is a name in brackets, which may hold anything.
  const [user, system, childrenUser, childrenSystem] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number);
  return { user: (user! + childrenUser!) / TICKS_PER_SECOND, system: (system! + childrenSystem!) / TICKS_PER_SECOND };
}

/** What a file took: its tests, and what it loaded for them. */
function secondsOf(module: TestModule): number {
  const { duration, collectDuration, setupDuration, prepareDuration, environmentSetupDuration } = module.diagnostic();
  return (duration + collectDuration + setupDuration + prepareDuration + environmentSetupDuration) / 1_000;
}

/** Suites that a machine can't run say so in their name: `(skipped: the reason)`. */
function reasonInName(name: string): string | undefined {
  const from = name.indexOf('(skipped: ');
  return from < 0 ? undefined : name.slice(from + '(skipped: '.length, name.indexOf(')', from));
}

/**
 * Prints why tests were skipped, which failed, what the run took, and `N passed, N failed, N skipped` as the very last
 * line, so that a script can read the outcome there. For whoever adds up several runs, the three numbers and the
 * failures are appended to the file that `SKUA_TEST_TOTALS` names. A file that could not be loaded, and an error
 * outside of any test, count as failed: a run is never green by accident.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    const failures = unhandledErrors.map((error) => `outside of any test: ${reasonOf(error)}`);
    let skipped = 0;
    const reasons = new Map<string, number>();
    for (const module of modules) {
      const told = (name: string, errors: readonly unknown[]) =>
        errors.map((error) => `${module.relativeModuleId}${name}: ${reasonOf(error)}`);
      failures.push(...told('', module.errors()));
      for (const suite of module.children.allSuites()) failures.push(...told(` > ${suite.fullName}`, suite.errors()));
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') passed++;
        else if (result.state === 'failed') failures.push(...told(` > ${test.fullName}`, result.errors.slice(0, 1)));
        else {
          skipped++;
          const reason =
            (result.state === 'skipped' && result.note) || reasonInName(test.fullName) || 'no reason given';
          reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        }
      }
    }
    const why = [...reasons]
      .sort(([, a], [, b]) => b - a)
      .map(([reason, count]) => `skipped ${count}: ${reason}\n`)
      .join('');
    const what = failures
      .slice(0, FAILURES_TOLD_MAX)
      .map((failure) => `failed: ${failure}\n`)
      .join('');
    const dearest = modules
      .map((module) => ({ file: module.relativeModuleId, seconds: secondsOf(module) }))
      .sort((a, b) => b.seconds - a.seconds)
      .slice(0, DEAREST_FILES);
    const files = dearest.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}\n`).join('');
    const outcome = `${passed} passed, ${failures.length} failed, ${skipped} skipped\n`;
    const totals = process.env['SKUA_TEST_TOTALS'];
    if (totals !== undefined) appendFileSync(totals, `${what}${passed} ${failures.length} ${skipped}\n`);
    // The default reporter may still print after this hook; these lines wait for the end of the process.
    process.once('exit', () => {
      // Only now have the processes that ran the tests ended, and count.
      const processor = processorSeconds();
      const price = `took ${(performance.now() / 1_000) | 0} s${processor === null ? '' : `, of processors ${processor.user | 0} s user and ${processor.system | 0} s system`}; the dearest files:\n${files}`;
      process.stdout.write(`${why}${what}${price}${outcome}`);
    });
  }
}
