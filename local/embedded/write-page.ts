import { writeFileSync } from 'node:fs';
import { referencePage } from './reference.ts';

/** Writes the reference page of `skua/embedded`: `npm run reference`. */
writeFileSync(new URL('REFERENCE.md', import.meta.url), referencePage());
