import { appendFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

/**
 * Prints why tests were skipped, and `N passed, N failed, N skipped` as the very last line, so that a script can read the outcome
 * there; appends the three numbers to the file that `SKUA_TEST_TOTALS` names, for whoever adds up several runs. A file that could not
 * be loaded, and an error outside of any test, count as failed: a run is never green by accident.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    let skipped = 0;
    const reasons = new Map<string, number>();
    for (const module of modules) {
      failed += module.errors().length;
      for (const suite of module.children.allSuites()) failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') passed++;
        else if (result.state === 'failed') failed++;
        else {
          skipped++;
          const reason = (result.state === 'skipped' && result.note) || 'no reason given';
          reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        }
      }
    }
    const why = [...reasons].sort(([, a], [, b]) => b - a).map(([reason, count]) => `skipped ${count}: ${reason}\n`).join('');
    const line = `${why}${passed} passed, ${failed} failed, ${skipped} skipped\n`;
    const totals = process.env['SKUA_TEST_TOTALS'];
    if (totals !== undefined) appendFileSync(totals, `${passed} ${failed} ${skipped}\n`);
    // The default reporter may still print after this hook; these lines wait for the end of the process.
    process.once('exit', () => process.stdout.write(line));
  }
}
