// 16 writers for ten minutes on the S3 server that is there: `node test/shared-log/processes/long.ts [seconds]
// [writers] [seed]`.
import { s3ForTests } from '../../support/s3/s3-for-tests.ts';
import { runProcesses } from './run.ts';

const [seconds = 600, writers = 16, seed = 1] = process.argv.slice(2).map(Number);
const s3 = await s3ForTests();
const report = await runProcesses({ place: s3.place('long'), env: s3.env, writers, seconds, seed });
process.stdout.write(`${JSON.stringify({ server: s3.kind, seconds, writers, seed, ...report }, null, 2)}\n`);
await s3.close();
process.exitCode = report.problems.length === 0 ? 0 : 1;
