import { writeFileSync } from 'node:fs';
import { optionsPage } from './show-options.ts';

/** Writes the documentation page of the options: `node local/config/write-page.ts`. */
writeFileSync(new URL('OPTIONS.md', import.meta.url), optionsPage());
