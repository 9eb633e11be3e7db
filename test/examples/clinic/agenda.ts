import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { START, streamNameFilter } from '@kurrent/kurrentdb-client';
import type { AllStreamRecordedEvent, AllStreamSubscription, KurrentDBClient } from '@kurrent/kurrentdb-client';

const RETRY_MS = 1_000;

/** Deleted rows are overwritten: what is erased in the store must not stay in this file. */
const SCHEMA = `
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS patient (stream TEXT PRIMARY KEY, name TEXT);
CREATE TABLE IF NOT EXISTS appointment (day TEXT, time TEXT, patient TEXT, PRIMARY KEY (day, time));
CREATE TABLE IF NOT EXISTS checkpoint (id INTEGER PRIMARY KEY, "commit" INTEGER, prepare INTEGER)`;

type Data = { name: string; time: string; patient: string };
type Change = [sql: string, ...values: string[]];

/** What an event changes. The last event of a stream that is deleted for good is `$streamDeleted`. */
const CHANGES: Readonly<Record<string, (stream: string, data: Data) => Change>> = {
  PatientRegistered: (stream, { name }) => ['INSERT INTO patient VALUES (?, ?)', stream, name],
  AppointmentBooked: (day, { time, patient }) => ['INSERT INTO appointment VALUES (?, ?, ?)', day, time, patient],
  AppointmentCancelled: (day, { time }) => ['DELETE FROM appointment WHERE day = ? AND time = ?', day, time],
  $streamDeleted: (stream) => ['DELETE FROM patient WHERE stream = ?', stream],
};

/** The read model: the appointments of a day with names, in tables that a subscription keeps up to date. */
export class Agenda {
  readonly #db: DatabaseSync;
  #subscription: AllStreamSubscription | null = null;
  #isClosed = false;

  constructor(file: string) {
    this.#db = new DatabaseSync(file);
    this.#db.exec(SCHEMA);
  }

  /** The name is null where the patient was erased. */
  day(date: string): unknown[] {
    const columns = 'time, appointment.patient, name';
    const join = `LEFT JOIN patient ON stream = 'patient-' || appointment.patient`;
    return this.#db
      .prepare(`SELECT ${columns} FROM appointment ${join} WHERE day = ? ORDER BY time`)
      .all(`day-${date}`);
  }

  /** Takes in what comes behind the checkpoint until `close`. After a failure, such as a restart of the node, again. */
  async follow(client: KurrentDBClient): Promise<void> {
    const filter = streamNameFilter({ prefixes: ['patient-', 'day-'] });
    while (!this.#isClosed) {
      try {
        this.#subscription = client.subscribeToAll({ fromPosition: this.#checkpoint() ?? START, filter });
        for await (const { event } of this.#subscription) this.#take(event!);
      } catch (error) {
        if (this.#isClosed) return;
        console.error(`The agenda is behind: ${String(error)}`);
        await sleep(RETRY_MS);
      }
    }
  }

  #checkpoint(): { commit: bigint; prepare: bigint } | undefined {
    const select = this.#db.prepare('SELECT "commit", prepare FROM checkpoint');
    select.setReadBigInts(true);
    return select.get() as { commit: bigint; prepare: bigint } | undefined;
  }

  /** One transaction for an event and the checkpoint behind it: whenever the process dies, each event counts once. */
  #take({ streamId, type, data, position }: AllStreamRecordedEvent): void {
    const change = CHANGES[type]?.(streamId, data as Data);
    this.#db.exec('BEGIN');
    try {
      if (change !== undefined) this.#run(...change);
      this.#run('INSERT OR REPLACE INTO checkpoint VALUES (1, ?, ?)', position.commit, position.prepare);
      this.#db.exec('COMMIT');
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #run(sql: string, ...values: (string | bigint)[]): void {
    this.#db.prepare(sql).run(...values);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#subscription?.unsubscribe();
    this.#db.close();
  }
}
