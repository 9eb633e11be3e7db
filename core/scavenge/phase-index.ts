import { EXECUTE_TABLE_JOB, type ExecuteTableArgs, type ExecuteTableResult } from './index-execution.ts';
import { type RunContext, withFiles } from './run-context.ts';

/** Index execution, scavenge.md section 8: the entries of what was removed leave the tables there are now. */
export async function executeIndex(run: RunContext): Promise<void> {
  const { data: { index }, ports: { storage } } = run.deps;
  const sizes = new Map<string, number>();
  for (const { file } of index.tables()) sizes.set(file, (await storage.size(file)) ?? 0);
  run.progress.begin('Index execution', 0, [...sizes.values()].reduce((sum, size) => sum + size, 0));
  // A large merge may be under way, for which a stop does not wait.
  const holding = index.holdMerges();
  let release: () => void;
  try {
    release = await run.orAborted(holding);
  } catch (error) {
    void holding.then((letGo) => letGo(), () => {});
    throw error;
  }
  try {
    await scavengeTables(run, sizes);
  } finally {
    release();
  }
}

async function scavengeTables(run: RunContext, sizes: ReadonlyMap<string, number>): Promise<void> {
  await run.deps.data.index.scavengeTables({
    jobOptions: { signal: run.signal },
    execute: (execution) => {
      const part = Symbol();
      const bytes = sizes.get(execution.source) ?? 0;
      return withFiles(run.deps.data, false, async (files) => {
        const args: ExecuteTableArgs = { ...execution, files, settings: run.settings() };
        const result = await run.job<ExecuteTableResult>(EXECUTE_TABLE_JOB, args, (told) => run.progress.ofPart(part, told, bytes));
        run.throttle.restedMs = result.restedMs;
        return result;
      }).finally(() => run.progress.endPart(part, bytes, 0));
    },
    onTable: (report) => {
      run.history.tableDone(report);
      run.progress.bytesReclaimed += report.spaceSaved;
      run.lines.table(report);
    },
  });
}
