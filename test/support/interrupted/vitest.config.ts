import { defineConfig } from 'vitest/config';
import { ROOT, tests } from '../../vitest.config.ts';

/** A run that is there to be interrupted. */
export default defineConfig({ root: ROOT, test: { ...tests, include: ['test/support/interrupted/waiting.ts'], reporters: ['default'] } });
