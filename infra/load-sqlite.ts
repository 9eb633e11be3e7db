export type Sqlite = typeof import('node:sqlite');

/**
 * SQLite as Node.js has it. Some releases warn that it is experimental when it is first loaded; only that warning is
 * held back.
 */
export function loadSqlite(): Sqlite {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}
