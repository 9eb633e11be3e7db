import { afterAll, beforeAll, expect, test } from 'vitest';
import { isTestedElsewhere, pages, programsOf } from './guide-blocks.ts';
import { linkBeside, runProgram } from './guide-runner.ts';
import { packed } from './packed.ts';
import type { Packed } from './packed.ts';

/** The programs of the README and the guide, as they stand there, with the packed package and the official clients. */

const programs = pages()
  .filter((page) => !isTestedElsewhere(page))
  .flatMap(programsOf);

let all: Packed;
beforeAll(async () => {
  all = await packed();
  linkBeside(all);
});
afterAll(() => all.remove());

test('each surface of the package, and a client, has a program', () => {
  const modules = new Set(programs.flatMap((program) => program.modules));
  const surfaces = ['client', 'dcb', 'embedded', 'emmett', 'events', 'project', 'project-sqlite', 'testing'].map(
    (surface) => `skua/${surface}`,
  );
  for (const name of [...surfaces, '@kurrent/kurrentdb-client']) expect(modules).toContain(name);
});

test.for(programs.map((program, i) => [i + 1, program.page, program.modules.join(', '), program] as const))(
  '%i %s: %s',
  ([, , , program]) => runProgram(program, all),
);
