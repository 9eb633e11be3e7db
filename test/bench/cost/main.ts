// `npm run cost` counts requests and prints the cost page; with --write it goes where it belongs.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { measureCluster } from './cluster.ts';
import { measure } from './measure.ts';
import { costPage } from './page.ts';
import { PRICES } from './prices.ts';

export const COST_PAGE = fileURLToPath(new URL('../../../infra/aws/COST.md', import.meta.url));

if (import.meta.main) {
  const page = costPage(await measure(), await measureCluster(), PRICES);
  if (process.argv.includes('--write')) writeFileSync(COST_PAGE, page);
  else process.stdout.write(page);
}
